//! A host for tests: it notes what it is asked for.
//!
//! Statements it knows: `select <values>` (columns a, b, …), `rows <n> [start]` (so many rows: a counts from start, b is a text), `insert <n>` (so many rows
//! changed), `insert <n> returning <values>`, `create`, `fail '<sqlstate>' '<message>'`.

use super::expressions::{Reader, shown};
use crate::frame::Frame;
use crate::host::*;
use crate::names::Reference;
use crate::{Ended, Options, compile, run};
use base::{Result, SqlError, SqlState, bail};
use expr::TypeRef;
use std::collections::HashMap;
use std::sync::Arc;
use types::{Datum, RecordColumn, Text, oids};

#[derive(Default)]
pub(super) struct Mock {
    /// What happened, line by line.
    pub log: Vec<String>,
    pub cursors: HashMap<String, (Columns, Vec<Vec<Datum>>, usize)>,
    pub opened: u32,
    /// Interrupts that may pass.
    pub patience: Option<u64>,
    pub used: Vec<Reference>,
}

fn of(oid: base::Oid) -> TypeRef {
    TypeRef { oid, typmod: -1 }
}

fn type_of(value: &Datum) -> TypeRef {
    of(match value {
        Datum::Int4(_) => oids::INT4,
        Datum::Bool(_) => oids::BOOL,
        Datum::Array(_) => oids::INT4_ARRAY,
        Datum::Record(_) => oids::RECORD,
        _ => oids::TEXT,
    })
}

fn columns_of(row: &[Datum]) -> Columns {
    let names = "abcdefghij".chars();
    let column = |(name, value): (char, &Datum)| RecordColumn {
        name: Text::from(name.to_string().as_str()),
        type_oid: type_of(value).oid,
        typmod: -1,
    };
    names.zip(row).map(column).collect()
}

impl Mock {
    fn values(&mut self, site: &Site, text: &str, frame: &Frame) -> Result<Vec<Datum>> {
        let names = frame.names(site);
        let used = std::cell::RefCell::new(Vec::new());
        let lookup = |path: &[String]| -> Result<Option<Datum>> {
            let Some(found) = names.find(path, false, true)? else { return Ok(None) };
            assert_eq!(frame.type_of(&found.reference).unwrap(), found.ty);
            used.borrow_mut().push(found.reference.clone());
            frame.value(&found.reference).map(Some)
        };
        let mut reader = Reader::new(text, &lookup, false);
        let all = reader.all();
        self.used = used.into_inner();
        all
    }

    /// A statement's kind, rows changed, and result.
    fn statement(
        &mut self,
        text: &str,
        mut values: impl FnMut(&mut Mock, &str) -> Result<Vec<Datum>>,
    ) -> Result<(Command, u64, Option<Vec<Vec<Datum>>>)> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match word.to_lowercase().as_str() {
            "select" => {
                let row = values(self, rest)?;
                Ok((Command::Select, 1, Some(vec![row])))
            }
            "rows" => {
                let given = values(self, rest)?;
                let number = |at: usize| match given.get(at) {
                    Some(Datum::Int4(n)) => *n,
                    _ => 1,
                };
                let row = |n: i32| vec![Datum::Int4(n), Datum::text(format!("row {n}"))];
                let rows: Vec<_> = (0..number(0)).map(|n| row(n + number(1))).collect();
                Ok((Command::Select, rows.len() as u64, Some(rows)))
            }
            "insert" => {
                let (count, returning) = match rest.split_once("returning") {
                    Some((count, returning)) => (count.trim(), Some(returning)),
                    None => (rest, None),
                };
                let count: u64 = count.parse().unwrap_or(0);
                let rows = match returning {
                    Some(r) => Some(vec![values(self, r)?; count as usize]),
                    None => None,
                };
                Ok((Command::Insert, count, rows))
            }
            "create" => Ok((Command::Utility, 0, None)),
            "fail" => {
                let given = rest.split('\'').collect::<Vec<_>>();
                let state = crate::conditions::sqlstate(given.get(1).unwrap_or(&"")).unwrap();
                Err(SqlError::new(state, *given.get(3).unwrap_or(&"")).into())
            }
            _ => bail!(SYNTAX_ERROR, "syntax error at or near \"{word}\""),
        }
    }

    fn source(
        &mut self,
        source: Source<'_>,
        frame: &Frame,
    ) -> Result<(Command, u64, Option<Vec<Vec<Datum>>>)> {
        match source {
            Source::Site(site) => {
                self.log.push(format!("run {}", site.text));
                let text = site.text.to_string();
                self.statement(&text, |m, t| m.values(site, t, frame))
                    .map_err(|e| e.within(site.context()))
            }
            Source::Text { text, using } => {
                let given: Vec<String> = using.iter().map(|v| shown(&v.value)).collect();
                self.log.push(format!("run text {text} using {}", given.join(" ")));
                self.statement(text, |_, t| Reader::new(t, &|_| Ok(None), false).all())
                    .map_err(|e| e.within(format!("SQL statement \"{text}\"")))
            }
        }
    }
}

impl Host for Mock {
    fn check_syntax(&mut self, site: &Site) -> Result<()> {
        match site.mode {
            Mode::Statement => Ok(()),
            Mode::Expression => Reader::new(&site.text, &|_| Ok(None), true).all().map(|_| ()),
            Mode::Assignment { expression_at } if site.sql().is_empty() => {
                assert!(expression_at > 0);
                Ok(())
            }
            Mode::Assignment { expression_at } => {
                let moved = |e: base::Error| {
                    let mut e = e.to_sql_error();
                    e.position = e.position.map(|p| p + expression_at);
                    base::Error::from(e)
                };
                Reader::new(site.sql(), &|_| Ok(None), true).all().map(|_| ()).map_err(moved)
            }
        }
    }
    fn type_of_text(&mut self, text: &str) -> Result<TypeRef> {
        Ok(of(match text {
            "int" | "integer" => oids::INT4,
            "bigint" => oids::INT8,
            "text" => oids::TEXT,
            "bool" | "boolean" => oids::BOOL,
            "int[]" => oids::INT4_ARRAY,
            "record" => oids::RECORD,
            "refcursor" => oids::REFCURSOR,
            "anyelement" => oids::ANYELEMENT,
            "varchar(3)" => return Ok(TypeRef { oid: oids::VARCHAR, typmod: 7 }),
            "pair" => base::Oid(20000),
            _ => {
                let text = format!("type \"{text}\" does not exist");
                return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, text).at(1).into());
            }
        }))
    }
    fn type_of_column(&mut self, names: &[String]) -> Result<TypeRef> {
        match names {
            [table, column] if table == "t" && column == "a" => Ok(of(oids::INT4)),
            _ => bail!(UNDEFINED_TABLE, "relation \"{}\" does not exist", names[0]),
        }
    }
    fn type_of_row(&mut self, names: &[String]) -> Result<TypeRef> {
        match names {
            [table] if table == "pair" => Ok(of(base::Oid(20000))),
            _ => bail!(UNDEFINED_TABLE, "relation \"{}\" does not exist", names[0]),
        }
    }
    fn check_collation(&mut self, _: &[String], ty: TypeRef) -> Result<()> {
        if ty.oid == oids::TEXT {
            return Ok(());
        }
        bail!(DATATYPE_MISMATCH, "collations are not supported by type integer")
    }
    fn kind_of(&mut self, ty: TypeRef) -> Result<TypeKind> {
        Ok(match ty.oid {
            oids::RECORD => TypeKind::AnyRow,
            oids::ANYELEMENT => TypeKind::Pseudo,
            base::Oid(20000) => TypeKind::Row {
                columns: [("x", oids::INT4), ("y", oids::TEXT)]
                    .into_iter()
                    .map(|(name, type_oid)| RecordColumn {
                        name: Text::from(name),
                        type_oid,
                        typmod: -1,
                    })
                    .collect(),
                checked: false,
            },
            _ => TypeKind::Scalar { checked: false },
        })
    }
    fn cast(&mut self, value: Datum, from: TypeRef, to: TypeRef) -> Result<Datum> {
        let shown = shown(&value);
        Ok(match (value, to.oid) {
            (Datum::Null, _) => Datum::Null,
            (_, oids::TEXT | oids::REFCURSOR) => Datum::text(&shown),
            (_, oids::VARCHAR) if to.typmod >= 0 && shown.len() as i32 > to.typmod - 4 => {
                bail!(STRING_DATA_RIGHT_TRUNCATION, "value too long for type character varying(3)")
            }
            (_, oids::VARCHAR) => Datum::text(&shown),
            (Datum::Int8(n), oids::INT4) => Datum::Int4(n as i32),
            (Datum::Int4(n), oids::INT8) => Datum::Int8(i64::from(n)),
            (Datum::Int4(n), oids::BOOL) => Datum::Bool(n != 0),
            (value @ Datum::Int4(_), oids::INT4) => value,
            (Datum::Text(t), oids::INT4) => match t.parse() {
                Ok(n) => Datum::Int4(n),
                Err(_) => bail!(
                    INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type integer: \"{t}\""
                ),
            },
            (value @ Datum::Record(_), _) => value,
            _ => bail!(CANNOT_COERCE, "cannot cast type {} to {}", from.oid.0, to.oid.0),
        })
    }
    fn text(&mut self, value: &Datum, _: TypeRef) -> Result<String> {
        Ok(shown(value))
    }
    fn evaluate(&mut self, site: &Site, frame: &Frame) -> Result<Value> {
        let mut values = self.values(site, site.sql(), frame)?;
        if values.len() != 1 {
            bail!(SYNTAX_ERROR, "query returned {} columns", values.len());
        }
        let value = values.remove(0);
        let ty = type_of(&value);
        Ok(Value { value, ty })
    }
    fn run(&mut self, source: Source<'_>, frame: &Frame, want: Want) -> Result<Outcome> {
        let (command, mut processed, rows) = self.source(source, frame)?;
        let columns = rows.as_ref().map(|r| columns_of(r.first().map_or(&[], |r| &r[..])));
        let mut rows = rows.unwrap_or_default();
        match want {
            Want::Count => rows.clear(),
            Want::UpTo(n) => {
                rows.truncate(n as usize);
                if command == Command::Select {
                    processed = rows.len() as u64;
                }
            }
            Want::All => {}
        }
        Ok(Outcome { command, processed, columns, rows })
    }
    fn open(&mut self, cursor: OpenCursor<'_>, frame: &Frame) -> Result<String> {
        self.opened += 1;
        let made = format!("<unnamed portal {}>", self.opened);
        let name = cursor.name.map_or(made, str::to_owned);
        if self.cursors.contains_key(&name) {
            bail!(DUPLICATE_CURSOR, "cursor \"{name}\" already in use");
        }
        let (_, _, rows) = self.source(cursor.source, frame)?;
        let rows = rows.unwrap_or_default();
        let columns = columns_of(rows.first().map_or(&[], |r| &r[..]));
        self.cursors.insert(name.clone(), (columns, rows, 0));
        self.log.push(format!("open {name}"));
        Ok(name)
    }
    fn fetch(&mut self, name: &str, direction: Direction, want: Want) -> Result<Outcome> {
        let Some((columns, rows, at)) = self.cursors.get_mut(name) else {
            bail!(INVALID_CURSOR_NAME, "cursor \"{name}\" does not exist");
        };
        self.log.push(format!("fetch {name} {direction:?}"));
        let (from, to) = match direction {
            Direction::Forward(n) => (*at, at.saturating_add(n as usize).min(rows.len())),
            Direction::Backward(_) => (at.saturating_sub(2), at.saturating_sub(1)),
            Direction::Absolute(n) => ((n - 1).max(0) as usize, n.max(0) as usize),
            Direction::Relative(n) => (*at + n as usize - 1, *at + n as usize),
        };
        *at = to;
        let got = rows.get(from..to.min(rows.len())).unwrap_or(&[]).to_vec();
        let processed = got.len() as u64;
        let rows = if want == Want::Count { Vec::new() } else { got };
        let columns = Some(Arc::clone(columns));
        Ok(Outcome { command: Command::Select, processed, columns, rows })
    }
    fn close(&mut self, name: &str, in_loop: bool) -> Result<()> {
        self.log.push(format!("close {name}"));
        match self.cursors.remove(name) {
            None if !in_loop => bail!(INVALID_CURSOR_NAME, "cursor \"{name}\" does not exist"),
            _ => Ok(()),
        }
    }
    fn begin_subtransaction(&mut self) -> Result<()> {
        self.log.push("begin".to_owned());
        Ok(())
    }
    fn release_subtransaction(&mut self) -> Result<()> {
        self.log.push("release".to_owned());
        Ok(())
    }
    fn roll_back_subtransaction(&mut self) -> Result<()> {
        self.log.push("undo".to_owned());
        Ok(())
    }
    fn commit(&mut self, chain: bool) -> Result<()> {
        self.log.push(format!("commit {chain}"));
        Ok(())
    }
    fn roll_back(&mut self, chain: bool) -> Result<()> {
        self.log.push(format!("rollback {chain}"));
        Ok(())
    }
    fn report(&mut self, level: Level, message: SqlError) -> Result<()> {
        let level = format!("{level:?}").to_uppercase();
        self.log.push(format!("{level} {} {}", message.state, message.message));
        if let Some(detail) = message.detail {
            self.log.push(format!("detail {detail}"));
        }
        Ok(())
    }
    fn check_interrupts(&mut self) -> Result<()> {
        if let Some(left) = &mut self.patience {
            if *left == 0 {
                bail!(QUERY_CANCELED, "canceling statement due to user request");
            }
            *left -= 1;
        }
        Ok(())
    }
    fn parameters(&mut self, _: &Site) -> Vec<Reference> {
        self.used.clone()
    }
}

/// Runs a body, and says what happened.
pub(super) fn ran(body: &str) -> Vec<String> {
    ran_with(body, &Options::default(), Mock::default())
}

pub(super) fn ran_with(body: &str, options: &Options, mut mock: Mock) -> Vec<String> {
    let done = compile(body, options, &mut mock)
        .and_then(|routine| run(&mut Frame::new(routine), &mut mock));
    match done {
        Ok(Ended::Returned(value)) => mock.log.push(format!("returned {}", shown(&value.value))),
        Ok(_) => {}
        Err(error) => {
            let error = error.to_sql_error();
            let mut text = format!("ERROR {} {}", error.state, error.message);
            if let Some(at) = error.internal_position {
                text.push_str(&format!(" @{at}"));
            }
            mock.log.push(text);
            let parts = [("detail", error.detail), ("hint", error.hint), ("in", error.context)];
            for (what, part) in parts {
                for line in part.iter().flat_map(|p| p.lines()) {
                    mock.log.push(format!("{what} {line}"));
                }
            }
        }
    }
    mock.log
}

/// The messages of a body that ends well.
pub(super) fn said(body: &str) -> Vec<String> {
    let all = ran(body);
    let wrong = all.iter().any(|l| l.starts_with("ERROR"));
    assert!(!wrong, "{all:#?}");
    all.iter().filter_map(|l| l.strip_prefix("NOTICE 00000 ").map(str::to_owned)).collect()
}

/// The error of a body: its first line.
pub(super) fn fails(body: &str) -> String {
    let all = ran(body);
    match all.iter().find_map(|l| l.strip_prefix("ERROR ")) {
        Some(error) => error.to_owned(),
        None => panic!("no error: {all:#?}"),
    }
}
