//! `value['a'][1] := part`: the left of an assignment.
//!
//! What the path lacks is made: objects for names, arrays for numbers, with nulls up to the place.

use super::raw::path_index;
use super::stored::{self, Members};
use super::{Jsonb, Object, View, view};
use crate::Datum;
use base::{Result, SqlError, SqlState, bail};

/// One subscript.
#[derive(Clone, Debug)]
pub enum Subscript {
    /// Of an object; in an array it must read as a number.
    Name(String),
    /// Of an array; in an object it is a name.
    Number(i32),
}

/// As many elements as PostgreSQL lets an array have.
const ELEMENTS_MAX: usize = 44_739_242;

fn check_count(elements: usize) -> Result<()> {
    if elements > ELEMENTS_MAX {
        bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})"
        );
    }
    Ok(())
}

/// `target` with `new` (NULL: JSON's null) in the place that the path leads to.
///
/// # Errors
/// `22023` where the path goes through a scalar, or before an array's beginning; `22P02` for a name in an array.
pub fn assign(target: &Datum, path: &[Subscript], new: &Datum) -> Result<Datum> {
    let names: Vec<String> = path
        .iter()
        .map(|step| match step {
            Subscript::Name(name) => name.clone(),
            Subscript::Number(n) => n.to_string(),
        })
        .collect();
    let mut value = Vec::new();
    match new {
        Datum::Jsonb(new) => value.extend_from_slice(new.bytes()),
        _ => stored::put_null(&mut value),
    }
    let way = Way { path: &names, new: &value };
    let written = Jsonb::write(|out| match target {
        Datum::Jsonb(target) => way.put(target.bytes(), 0, out),
        _ if matches!(path.first(), Some(Subscript::Number(_))) => way.put_elements(&[], 0, out),
        _ => way.make(0, out),
    })?;
    Ok(Datum::Jsonb(written))
}

struct Way<'a> {
    path: &'a [String],
    new: &'a [u8],
}

impl Way<'_> {
    fn is_last(&self, level: usize) -> bool {
        level + 1 == self.path.len()
    }

    /// Writes what stands at `level`, changed.
    fn put(&self, bytes: &[u8], level: usize, out: &mut Vec<u8>) -> Result<()> {
        match view(bytes) {
            View::Object(members) => self.put_members(members, level, out),
            View::Array(items) => {
                let items: Vec<&[u8]> = items.iter().collect();
                self.put_elements(&items, level, out)
            }
            _ => {
                let detail =
                    "The path assumes key is a composite object, but it is a scalar value.";
                Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "cannot replace existing key")
                    .detail(detail)
                    .into())
            }
        }
    }

    fn put_members(&self, object: Object, level: usize, out: &mut Vec<u8>) -> Result<()> {
        let name = self.path[level].as_str();
        let mut members = Members::default();
        for (key, value) in object.iter().filter(|(key, _)| *key != name) {
            members.add(key, |out| {
                out.extend_from_slice(value);
                Ok(())
            })?;
        }
        members.add(name, |out| match object.get(name) {
            Some(there) if !self.is_last(level) => self.put(there, level + 1, out),
            _ => self.make(level + 1, out),
        })?;
        members.put(out)
    }

    fn put_elements(&self, items: &[&[u8]], level: usize, out: &mut Vec<u8>) -> Result<()> {
        let (name, position) = (&self.path[level], level + 1);
        let Some(number) = path_index(name) else {
            bail!(
                INVALID_TEXT_REPRESENTATION,
                "path element at position {position} is not an integer: \"{name}\""
            )
        };
        let at = match usize::try_from(number) {
            Ok(at) => at,
            Err(_) => match items.len().checked_sub(number.unsigned_abs() as usize) {
                Some(at) => at,
                None => bail!(
                    INVALID_PARAMETER_VALUE,
                    "path element at position {position} is out of range: {number}"
                ),
            },
        };
        check_count(items.len().max(at + 1))?;
        stored::put_array(out, |out, ended| {
            for n in 0..items.len().max(at + 1) {
                match items.get(n) {
                    Some(there) if n != at => out.extend_from_slice(there),
                    Some(there) if !self.is_last(level) => self.put(there, level + 1, out)?,
                    _ if n == at => self.make(level + 1, out)?,
                    _ => stored::put_null(out),
                }
                ended(out.len());
            }
            Ok(())
        })
    }

    /// Writes what is not there yet: from `level` on to the new value.
    fn make(&self, level: usize, out: &mut Vec<u8>) -> Result<()> {
        let Some(name) = self.path.get(level) else {
            out.extend_from_slice(self.new);
            return Ok(());
        };
        // The first in an empty value makes an object of it, unless it is a number: that is seen to before.
        match path_index(name) {
            Some(number) if level > 0 => stored::put_array(out, |out, ended| {
                check_count(usize::try_from(number).unwrap_or(0) + 1)?;
                for _ in 0..number {
                    stored::put_null(out);
                    ended(out.len());
                }
                self.make(level + 1, out)?;
                ended(out.len());
                Ok(())
            }),
            _ => {
                let mut members = Members::default();
                members.add(name.as_str(), |out| self.make(level + 1, out))?;
                members.put(out)
            }
        }
    }
}
