//! `has_*_privilege`, `pg_has_role`, and ACLs taken apart.

use super::names::{self, row_by_oid};
use super::{Bodies, rows, state};
use crate::acl::{self, AclItem, PRIVILEGES};
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind};
use types::FunctionBody::{Scalar, Set};
use types::args::{char1, oid, text};
use types::{Datum, Env, oids};

/// What stands before the privilege, besides the role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Relation,
    Database,
    Schema,
    Sequence,
    Type,
    /// Usable by everybody.
    Public,
}

pub(super) const BODIES: Bodies = &[
    ("has_table_privilege", Scalar(|env, a| has(env, a, Kind::Relation))),
    ("has_sequence_privilege", Scalar(|env, a| has(env, a, Kind::Sequence))),
    ("has_any_column_privilege", Scalar(super::column_privileges::has_any)),
    ("has_column_privilege", Scalar(super::column_privileges::has)),
    ("has_database_privilege", Scalar(|env, a| has(env, a, Kind::Database))),
    ("has_schema_privilege", Scalar(|env, a| has(env, a, Kind::Schema))),
    ("has_function_privilege", Scalar(super::function_rights::has_function)),
    ("has_language_privilege", Scalar(|env, a| has(env, a, Kind::Public))),
    ("has_type_privilege", Scalar(|env, a| has(env, a, Kind::Type))),
    (
        "has_tablespace_privilege",
        Scalar(|env, a| {
            let (state, role, _) = who(env, a, 2)?;
            acl::is_superuser(state, role).map(Datum::Bool)
        }),
    ),
    (
        "has_parameter_privilege",
        Scalar(|env, a| {
            let (state, role, _) = who(env, a, 2)?;
            acl::is_superuser(state, role).map(Datum::Bool)
        }),
    ),
    ("has_foreign_data_wrapper_privilege", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("has_server_privilege", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("has_largeobject_privilege", Scalar(|_, _| Ok(Datum::Bool(false)))),
    ("pg_has_role", Scalar(|env, a| has_role(env, a))),
    ("aclexplode", Set(|env, a| explode(env, a))),
    ("acldefault", Scalar(|env, a| default_acl(env, a))),
    ("pg_get_acl", Scalar(|env, a| object_acl(env, a))),
    ("row_security_active", Scalar(|_, _| Ok(Datum::Bool(false)))),
];

/// A role given by name or OID; PUBLIC is 0.
fn role(state: &SessionState, value: &Datum) -> Result<Oid> {
    match value {
        Datum::Text(name) if name == "public" => Ok(Oid::INVALID),
        Datum::Text(name) => match state.role_by_name(name)? {
            Some(oid) => Ok(oid),
            None => bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"),
        },
        Datum::Oid(oid) => Ok(*oid),
        _ => bail!(INTERNAL_ERROR, "a role was expected"),
    }
}

/// The session, the role asked about, and the arguments after it, of which there are `others`.
pub(super) fn who<'a>(
    env: &'a dyn Env,
    a: &'a [Datum],
    others: usize,
) -> Result<(&'a SessionState, Oid, &'a [Datum])> {
    let state = state(env)?;
    if a.len() > others {
        Ok((state, role(state, &a[0])?, &a[1..]))
    } else {
        Ok((state, state.current_user.borrow().oid, a))
    }
}

/// The bits of each alternative in `SELECT, INSERT WITH GRANT OPTION`, and whether it is the option.
pub(super) fn parse(text: &str) -> Result<Vec<(u32, bool)>> {
    text.split(',')
        .map(|word| {
            let upper = word.trim().to_ascii_uppercase();
            let (name, option) = match upper.strip_suffix(" WITH GRANT OPTION") {
                Some(name) => (name.trim_end(), true),
                None => (upper.as_str(), false),
            };
            let name = if name == "TEMP" { "TEMPORARY" } else { name };
            match PRIVILEGES.iter().find(|p| p.2 == name) {
                // Of what has no privileges of its own here.
                _ if matches!(name, "EXECUTE" | "RULE" | "SET" | "ALTER SYSTEM") => Ok((0, option)),
                Some((bit, ..)) => Ok((*bit, option)),
                None => {
                    bail!(
                        INVALID_PARAMETER_VALUE,
                        "unrecognized privilege type: \"{}\"",
                        word.trim()
                    )
                }
            }
        })
        .collect()
}

fn has(env: &dyn Env, a: &[Datum], kind: Kind) -> Result<Datum> {
    let (state, role, rest) = who(env, a, 2)?;
    let wanted = parse(text(rest, rest.len() - 1)?)?;
    let Some((owner, acl, (public, closed))) = object(state, kind, rest)? else {
        return Ok(Datum::Null);
    };
    let held = if role.is_valid() {
        match kind {
            Kind::Relation | Kind::Sequence => {
                acl::relation_privileges(state, role, owner, acl.as_deref(), closed)?
            }
            Kind::Schema => acl::schema_privileges(state, role, owner, acl.as_deref())?,
            _ => acl::privileges(state, role, owner, acl.as_deref(), public)?,
        }
    } else {
        public_privileges(acl.as_deref(), public)
    };
    let grantable = match role.is_valid() && wanted.iter().any(|(_, option)| *option) {
        true => acl::grantable(state, role, owner, acl.as_deref())?,
        false => 0,
    };
    let has = |(bit, option): &(u32, bool)| match option {
        true => grantable & bit != 0,
        false => *bit == 0 || held & bit != 0,
    };
    Ok(Datum::Bool(wanted.iter().any(has)))
}

pub(super) fn public_privileges(acl: Option<&[String]>, default: u32) -> u32 {
    match acl {
        None => default,
        Some(items) => items
            .iter()
            .filter_map(|i| AclItem::parse(i))
            .filter(|i| i.grantee.is_empty())
            .fold(0, |bits, i| bits | i.privileges),
    }
}

type Guarded = (Oid, Option<Vec<String>>, (u32, u32));

/// Owner, ACL, PUBLIC's default privileges and those that only superusers have of the object that the arguments name.
fn object(state: &SessionState, kind: Kind, rest: &[Datum]) -> Result<Option<Guarded>> {
    match kind {
        Kind::Relation | Kind::Sequence => {
            let oid = match &rest[0] {
                Datum::Text(name) => names::relation_oid(state, name)?,
                _ => oid(rest, 0)?,
            };
            let Some(table) = state.table_by_oid(oid)? else { return Ok(None) };
            if kind == Kind::Sequence && table.kind != RelationKind::Sequence {
                bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", table.name);
            }
            let closed = acl::closed(table.oid, table.kind);
            Ok(Some((table.owner, table.acl.clone(), (0, closed))))
        }
        Kind::Database => {
            let row = match &rest[0] {
                Datum::Text(name) => {
                    let txn = state.txn()?;
                    let key = [("datname", Datum::Text(name.clone()))];
                    match state.catalog.rows(&txn).find("pg_database", &key)?.into_iter().next() {
                        Some(row) => Some(row),
                        None => {
                            bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist")
                        }
                    }
                }
                _ => row_by_oid(state, "pg_database", "oid", oid(rest, 0)?)?,
            };
            // CONNECT and TEMPORARY are everybody's.
            Ok(row.map(|r| (r.oid("datdba"), r.texts("datacl"), (1024 | 2048, 0))))
        }
        Kind::Schema => {
            let oid = match &rest[0] {
                Datum::Text(name) => match state.schema_by_name(name)? {
                    Some(oid) => oid,
                    None => bail!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist"),
                },
                _ => oid(rest, 0)?,
            };
            let row = row_by_oid(state, "pg_namespace", "oid", oid)?;
            Ok(row.map(|r| (r.oid("nspowner"), r.texts("nspacl"), (0, 0))))
        }
        Kind::Type => {
            let oid = match &rest[0] {
                Datum::Text(name) => match names::type_oid(state, name)? {
                    Some(oid) => oid,
                    None => bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist"),
                },
                _ => oid(rest, 0)?,
            };
            // An array is for whom its elements are.
            let oid = types::element_type(oid).unwrap_or(oid);
            let row = row_by_oid(state, "pg_type", "oid", oid)?;
            Ok(row.map(|r| (r.oid("typowner"), r.texts("typacl"), (acl::USAGE, 0))))
        }
        Kind::Public => Ok(Some((Oid::INVALID, None, (u32::MAX, 0)))),
    }
}

fn has_role(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let (state, member, rest) = who(env, a, 2)?;
    let role = role(state, &rest[0])?;
    let words = text(rest, 1)?.to_ascii_uppercase();
    let mut answer = acl::is_superuser(state, member)?;
    for word in words.split(',').map(str::trim) {
        let (word, option) = match word
            .strip_suffix(" WITH ADMIN OPTION")
            .or_else(|| word.strip_suffix(" WITH GRANT OPTION"))
        {
            Some(word) => (word, true),
            None => (word, false),
        };
        answer |= match word {
            "USAGE" if !option => acl::roles_of(state, member)?.contains(&role),
            "MEMBER" if !option => acl::memberships(state, member)?.contains(&role),
            "SET" if !option => acl::roles_to_set(state, member)?.contains(&role),
            "USAGE" | "MEMBER" | "SET" => acl::is_admin_of(state, member, role)?,
            word => bail!(INVALID_PARAMETER_VALUE, "unrecognized privilege type: \"{word}\""),
        };
    }
    Ok(Datum::Bool(answer))
}

/// What a letter of an ACL is called; those that `acl` does not list included.
fn letter_name(letter: char) -> Option<&'static str> {
    match letter {
        's' => Some("SET"),
        'A' => Some("ALTER SYSTEM"),
        letter => PRIVILEGES.iter().find(|p| p.1 == letter).map(|p| p.2),
    }
}

fn explode(env: &dyn Env, a: &[Datum]) -> Result<types::registry::RowIter> {
    let state = state(env)?;
    let Some(Datum::Array(items)) = a.first() else { return Ok(rows(Vec::new())) };
    let mut out = Vec::new();
    for item in &items.elements {
        let Datum::Text(item) = item else { continue };
        let Some((grantee, rest)) = acl::take_role(item) else { continue };
        let parts = rest.strip_prefix('=').and_then(|rest| rest.split_once('/'));
        let Some((letters, grantor)) = parts else { continue };
        let Some((grantor, _)) = acl::take_role(grantor) else { continue };
        let oid = |name: &str| -> Result<Oid> {
            if name.is_empty() {
                return Ok(Oid::INVALID);
            }
            Ok(state.role_by_name(name)?.unwrap_or(Oid::INVALID))
        };
        let (grantor, grantee) = (oid(&grantor)?, oid(&grantee)?);
        let mut letters = letters.chars().peekable();
        while let Some(letter) = letters.next() {
            let option = letters.next_if_eq(&'*').is_some();
            if let Some(name) = letter_name(letter) {
                out.push(vec![
                    Datum::Oid(grantor),
                    Datum::Oid(grantee),
                    Datum::text(name),
                    Datum::Bool(option),
                ]);
            }
        }
    }
    Ok(rows(out))
}

/// (PUBLIC's, the owner's) privileges on an object that nobody has granted anything on.
fn defaults(kind: u8) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        b'c' => ("", ""),
        b'r' => ("", "arwdDxtm"),
        b's' => ("", "rwU"),
        b'd' => ("Tc", "CTc"),
        b'f' => ("X", "X"),
        b'l' | b'T' => ("U", "U"),
        b'L' => ("", "rw"),
        b'n' => ("", "UC"),
        b'p' => ("", "sA"),
        b't' => ("", "C"),
        b'F' | b'S' => ("", "U"),
        _ => return None,
    })
}

fn default_acl(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let kind = char1(a, 0)?;
    let Some((public, owner)) = defaults(kind) else {
        bail!(INTERNAL_ERROR, "unrecognized object type abbreviation: {}", char::from(kind));
    };
    let owner_oid = oid(a, 1)?;
    let name = state(env)?.role_name(owner_oid)?;
    let name = acl::quote_role(&name.unwrap_or_else(|| owner_oid.to_string()));
    let mut items = Vec::new();
    if !public.is_empty() {
        items.push(Datum::text(format!("={public}/{name}")));
    }
    if !owner.is_empty() {
        items.push(Datum::text(format!("{name}={owner}/{name}")));
    }
    let array = types::ArrayValue::one_dimension(oids::ACLITEM, items);
    Ok(Datum::Array(std::sync::Arc::new(array)))
}

fn object_acl(env: &dyn Env, a: &[Datum]) -> Result<Datum> {
    let state = state(env)?;
    let Some(def) = engine::catalog::defs::by_oid(oid(a, 0)?) else { return Ok(Datum::Null) };
    let Some(column) = def.columns.iter().find(|c| c.ty == oids::ACLITEM_ARRAY) else {
        return Ok(Datum::Null);
    };
    if def.columns.iter().all(|c| c.name != "oid") {
        return Ok(Datum::Null);
    }
    let row = row_by_oid(state, def.name, "oid", oid(a, 1)?)?;
    Ok(row.map_or(Datum::Null, |r| r.get(column.name).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privilege_lists_parse() {
        assert_eq!(parse("select, Insert with grant option").unwrap(), [(1, false), (2, true)]);
        assert_eq!(parse("TEMP").unwrap(), [(2048, false)]);
        assert!(parse("FLY").is_err());
    }
}
