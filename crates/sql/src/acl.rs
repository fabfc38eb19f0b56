//! Privileges on relations, their columns and schemas. Roles' membership is followed with INHERIT.

pub(crate) mod column_acls;
mod standing;

pub use standing::KnownRoles;
use standing::Standing;

use crate::query::UsedColumns;
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, Table};
use engine::catalog::rows::Row;
use std::collections::{HashMap, HashSet};
use types::Datum;

/// Bits of a privilege set, and their letters in an ACL.
pub const PRIVILEGES: [(u32, char, &str); 13] = [
    (1, 'r', "SELECT"),
    (2, 'a', "INSERT"),
    (4, 'w', "UPDATE"),
    (8, 'd', "DELETE"),
    (16, 'D', "TRUNCATE"),
    (32, 'x', "REFERENCES"),
    (64, 't', "TRIGGER"),
    (128, 'm', "MAINTAIN"),
    (256, 'U', "USAGE"),
    (512, 'C', "CREATE"),
    (1024, 'c', "CONNECT"),
    (2048, 'T', "TEMPORARY"),
    (4096, 'X', "EXECUTE"),
];

/// SELECT's bit.
pub const SELECT: u32 = 1;
/// INSERT's bit.
pub const INSERT: u32 = 2;
/// UPDATE's bit.
pub const UPDATE: u32 = 4;
/// DELETE's bit.
pub const DELETE: u32 = 8;
/// TRUNCATE's bit.
pub const TRUNCATE: u32 = 16;
/// REFERENCES' bit.
pub const REFERENCES: u32 = 32;
/// MAINTAIN's bit.
pub const MAINTAIN: u32 = 128;
/// Every privilege there is on a table.
pub const ALL_OF_TABLE: u32 = 255;
/// Every privilege there is on a column.
pub const ALL_OF_COLUMN: u32 = SELECT | INSERT | UPDATE | REFERENCES;
/// USAGE's bit.
pub const USAGE: u32 = 256;
/// CREATE's bit.
pub const CREATE: u32 = 512;
/// CONNECT's bit.
pub const CONNECT: u32 = 1024;
/// TEMPORARY's bit.
pub const TEMPORARY: u32 = 2048;

/// One aclitem: `grantee=privileges/grantor`, `*` behind those with grant option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AclItem {
    /// The role's name; empty for PUBLIC.
    pub grantee: String,
    /// Privilege bits.
    pub privileges: u32,
    /// Those with grant option.
    pub grantable: u32,
    /// Who granted them.
    pub grantor: String,
}

impl AclItem {
    /// Reads the text form.
    pub fn parse(text: &str) -> Option<AclItem> {
        let (grantee, rest) = take_role(text)?;
        let (letters, grantor) = rest.strip_prefix('=')?.split_once('/')?;
        let (grantor, rest) = take_role(grantor)?;
        if !rest.is_empty() {
            return None;
        }
        let mut item = AclItem { grantee, privileges: 0, grantable: 0, grantor };
        let mut last = 0;
        for letter in letters.chars() {
            if letter == '*' {
                item.grantable |= last;
            } else {
                last = PRIVILEGES.iter().find(|p| p.1 == letter)?.0;
                item.privileges |= last;
            }
        }
        Some(item)
    }

    /// The text form.
    pub fn to_text(&self) -> String {
        let mut letters = String::new();
        // PostgreSQL's order of letters.
        for letter in "arwdDxtXUCTcsAm".chars() {
            if let Some((bit, ..)) = PRIVILEGES.iter().find(|p| p.1 == letter)
                && self.privileges & bit != 0
            {
                letters.push(letter);
                if self.grantable & bit != 0 {
                    letters.push('*');
                }
            }
        }
        format!("{}={letters}/{}", quote_role(&self.grantee), quote_role(&self.grantor))
    }
}

/// Of a name that is quoted a quote stands twice: it says neither where the name ends nor what anybody may.
pub(crate) fn quote_role(name: &str) -> String {
    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// The role at the beginning of a text, quoted or not, and what follows it.
pub(crate) fn take_role(text: &str) -> Option<(String, &str)> {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find(['=', '/']).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        return Some((name.to_owned(), rest));
    };
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// The roles whose privileges `role` has: itself and those it is a member of with INHERIT.
///
/// # Errors
/// I/O.
pub fn roles_of(state: &SessionState, role: Oid) -> Result<HashSet<Oid>> {
    roles_by(state, role, Some("inherit_option"))
}

/// The roles that `role` may become by SET ROLE: itself and those it is a member of with SET.
///
/// # Errors
/// I/O.
pub fn roles_to_set(state: &SessionState, role: Oid) -> Result<HashSet<Oid>> {
    roles_by(state, role, Some("set_option"))
}

/// `role` and all that it is a member of, whatever that lets it do.
///
/// # Errors
/// I/O.
pub fn memberships(state: &SessionState, role: Oid) -> Result<HashSet<Oid>> {
    roles_by(state, role, None)
}

/// `pg_database_owner`: its one member is the owner of the database that the session is in, and no row says so.
pub(crate) const DATABASE_OWNER: Oid = Oid(6171);

fn roles_by(state: &SessionState, role: Oid, option: Option<&str>) -> Result<HashSet<Oid>> {
    let txn = state.txn()?;
    let catalogs = state.catalog.rows(&txn);
    let database = catalogs.find("pg_database", &[("oid", Datum::Oid(state.database.oid))])?;
    let owner = database.first().map(|row| row.oid("datdba"));
    let mut roles = HashSet::from([role]);
    let mut todo = vec![role];
    while let Some(member) = todo.pop() {
        if owner == Some(member) && roles.insert(DATABASE_OWNER) {
            todo.push(DATABASE_OWNER);
        }
        for row in catalogs.find("pg_auth_members", &[("member", Datum::Oid(member))])? {
            if option.is_none_or(|o| row.bool(o)) && roles.insert(row.oid("roleid")) {
                todo.push(row.oid("roleid"));
            }
        }
    }
    Ok(roles)
}

/// Is `role` a superuser?
///
/// # Errors
/// I/O.
pub fn is_superuser(state: &SessionState, role: Oid) -> Result<bool> {
    {
        let current = state.current_user.borrow();
        if current.oid == role {
            return Ok(current.superuser);
        }
    }
    Standing::of(state, role).superuser(state)
}

/// May `role` connect to the database of this `pg_database` row? While nothing is said of it everybody may.
///
/// # Errors
/// I/O.
pub fn may_connect(state: &SessionState, role: Oid, database: &Row) -> Result<bool> {
    let (owner, acl) = (database.oid("datdba"), database.texts("datacl"));
    let may = privileges(state, role, owner, acl.as_deref(), CONNECT | TEMPORARY)?;
    Ok(may & CONNECT != 0)
}

/// The privilege bits that `role` has by `acl` (None: the default: all to the owner, and `public_default`
/// to everybody).
///
/// # Errors
/// I/O.
pub fn privileges(
    state: &SessionState,
    role: Oid,
    owner: Oid,
    acl: Option<&[String]>,
    public_default: u32,
) -> Result<u32> {
    if is_superuser(state, role)? {
        return Ok(u32::MAX);
    }
    let standing = Standing::of(state, role);
    let Some(acl) = acl else {
        let owns = standing.roles(state)?.contains(&owner);
        return Ok(if owns { u32::MAX } else { public_default });
    };
    let names = standing.names(state)?;
    Ok(acl
        .iter()
        .filter_map(|item| AclItem::parse(item))
        .filter(|item| item.grantee.is_empty() || names.contains(&item.grantee))
        .fold(0, |bits, item| bits | item.privileges))
}

/// The privilege bits that `role` may grant by `acl`: its owner all.
///
/// # Errors
/// I/O.
pub fn grantable(
    state: &SessionState,
    role: Oid,
    owner: Oid,
    acl: Option<&[String]>,
) -> Result<u32> {
    let roles = roles_of(state, role)?;
    if roles.contains(&owner) || is_superuser(state, role)? {
        return Ok(u32::MAX);
    }
    let names = names_of(state, &roles)?;
    let items = acl.unwrap_or_default().iter().filter_map(|item| AclItem::parse(item));
    Ok(items.filter(|i| names.contains(&i.grantee)).fold(0, |bits, i| bits | i.grantable))
}

fn names_of(state: &SessionState, roles: &HashSet<Oid>) -> Result<HashSet<String>> {
    let txn = state.txn()?;
    let mut names = HashSet::new();
    for row in state.catalog.rows(&txn).scan("pg_authid")? {
        if roles.contains(&row.oid("oid")) {
            names.insert(row.text("rolname").to_owned());
        }
    }
    Ok(names)
}

/// May `member` give others membership in `role`, by himself or by a role that he is a member of?
///
/// # Errors
/// I/O.
pub fn is_admin_of(state: &SessionState, member: Oid, role: Oid) -> Result<bool> {
    if is_superuser(state, member)? {
        return Ok(true);
    }
    let members = memberships(state, member)?;
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_auth_members", &[("roleid", Datum::Oid(role))])?;
    let gives = |row: &Row| row.bool("admin_option") && members.contains(&row.oid("member"));
    Ok(member != role && rows.iter().any(gives))
}

/// `pg_read_all_data`, `pg_write_all_data`, `pg_maintain`, and what they may do with every relation.
const PREDEFINED: [(Oid, u32); 3] =
    [(Oid(6181), SELECT), (Oid(6182), INSERT | UPDATE | DELETE), (PG_MAINTAIN, MAINTAIN)];
/// `pg_maintain`
const PG_MAINTAIN: Oid = Oid(6337);

/// `pg_read_all_data`, `pg_write_all_data`: they may look into every schema.
const LOOK_EVERYWHERE: [(Oid, u32); 2] = [(Oid(6181), USAGE), (Oid(6182), USAGE)];

/// What nobody but a superuser may do with a relation, whatever was granted: nobody else writes system catalogs and TOAST tables.
pub fn closed(relation: Oid, kind: RelationKind) -> u32 {
    let is_system =
        kind == RelationKind::Toast || engine::catalog::defs::by_oid(relation).is_some();
    if is_system { INSERT | UPDATE | DELETE | TRUNCATE } else { 0 }
}

/// The privilege bits that `role` has on a relation, those of predefined roles among them. `closed`: as [`closed`] says.
///
/// # Errors
/// I/O.
pub fn relation_privileges(
    state: &SessionState,
    role: Oid,
    owner: Oid,
    acl: Option<&[String]>,
    closed: u32,
) -> Result<u32> {
    let held = privileges(state, role, owner, acl, 0)?;
    let held = with_predefined(state, role, held, &PREDEFINED)?;
    Ok(if closed != 0 && !is_superuser(state, role)? { held & !closed } else { held })
}

/// As [`relation_privileges`], of a table that is at hand.
///
/// # Errors
/// I/O.
pub fn table_privileges(state: &SessionState, role: Oid, table: &Table) -> Result<u32> {
    let closed = closed(table.oid, table.kind);
    relation_privileges(state, role, table.owner, table.acl.as_deref(), closed)
}

/// The privilege bits that `role` has on a schema, those of predefined roles among them.
///
/// # Errors
/// I/O.
pub fn schema_privileges(
    state: &SessionState,
    role: Oid,
    owner: Oid,
    acl: Option<&[String]>,
) -> Result<u32> {
    with_predefined(state, role, privileges(state, role, owner, acl, 0)?, &LOOK_EVERYWHERE)
}

/// `held`, and what `role` may do by those of the predefined roles that it is a member of.
fn with_predefined(
    state: &SessionState,
    role: Oid,
    held: u32,
    predefined: &[(Oid, u32)],
) -> Result<u32> {
    if held == u32::MAX {
        return Ok(held);
    }
    let standing = Standing::of(state, role);
    let roles = standing.roles(state)?;
    let of_role = predefined.iter().filter(|(name, _)| roles.contains(name));
    Ok(of_role.fold(held, |bits, (_, more)| bits | more))
}

/// In which schemas one role may look names up, as far as that was asked since the catalogs changed.
#[derive(Default)]
pub struct UsableSchemas {
    generation: u64,
    role: Oid,
    known: HashMap<Oid, bool>,
}

/// May the current user look names up in `schema` (USAGE)?
///
/// # Errors
/// I/O.
pub fn may_use_schema(state: &SessionState, schema: Oid) -> Result<bool> {
    if state.is_superuser() || schema == state.temp_schema.get() {
        return Ok(true);
    }
    let role = state.current_user.borrow().oid;
    let generation = state.catalog.generation();
    let changed = state.catalog.is_dirty();
    {
        let mut usable = state.usable_schemas.borrow_mut();
        if changed || usable.generation != generation || usable.role != role {
            *usable = UsableSchemas { generation, role, known: HashMap::new() };
        } else if let Some(known) = usable.known.get(&schema) {
            return Ok(*known);
        }
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_namespace", &[("oid", Datum::Oid(schema))])?;
    let may = match rows.first() {
        Some(row) => {
            let acl = row.texts("nspacl");
            schema_privileges(state, role, row.oid("nspowner"), acl.as_deref())? & USAGE != 0
        }
        // Dropped meanwhile: there is nothing in it either.
        None => true,
    };
    // What this transaction has changed may be rolled back.
    if !changed {
        state.usable_schemas.borrow_mut().known.insert(schema, may);
    }
    Ok(may)
}

/// USAGE on a schema that is named.
///
/// # Errors
/// `42501`
pub fn check_schema_usage(state: &SessionState, schema: Oid, name: &str) -> Result<()> {
    if may_use_schema(state, schema)? {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {name}")
}

/// May the current user vacuum and analyze a relation? Who owns the database may, unless it is shared with others.
///
/// # Errors
/// I/O.
pub fn may_vacuum(
    state: &SessionState,
    oid: Oid,
    owner: Oid,
    acl: Option<&[String]>,
) -> Result<bool> {
    let role = state.current_user.borrow().oid;
    if relation_privileges(state, role, owner, acl, 0)? & MAINTAIN != 0 {
        return Ok(true);
    }
    let shared = engine::catalog::defs::by_oid(oid).is_some_and(|d| d.shared);
    Ok(!shared && owns_database(state)?)
}

/// Is the current user the owner of the database it is in, or a member of that role?
fn owns_database(state: &SessionState) -> Result<bool> {
    let role = state.current_user.borrow().oid;
    let txn = state.txn()?;
    let key = [("oid", Datum::Oid(state.database.oid))];
    let rows = state.catalog.rows(&txn).find("pg_database", &key)?;
    let Some(row) = rows.first() else { return Ok(false) };
    Ok(is_superuser(state, role)? || roles_of(state, role)?.contains(&row.oid("datdba")))
}

/// Fails unless the current user owns the database or schema (`noun`, `name`), or may maintain everything.
///
/// # Errors
/// `42501`
pub fn check_reindex_all(
    state: &SessionState,
    schema: Option<Oid>,
    noun: &str,
    name: &str,
) -> Result<()> {
    let role = state.current_user.borrow().oid;
    if is_superuser(state, role)? {
        return Ok(());
    }
    let roles = roles_of(state, role)?;
    let owns = match schema {
        None => owns_database(state)?,
        Some(schema) => {
            let txn = state.txn()?;
            let key = [("oid", Datum::Oid(schema))];
            let rows = state.catalog.rows(&txn).find("pg_namespace", &key)?;
            rows.first().is_some_and(|r| roles.contains(&r.oid("nspowner")))
        }
    };
    if owns || roles.contains(&PG_MAINTAIN) {
        return Ok(());
    }
    bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {noun} {name}")
}

/// Fails unless `check_as` (0: the current user) has `wanted` on `table`.
///
/// # Errors
/// `42501`
pub fn check_table(state: &SessionState, table: &Table, wanted: u32, check_as: Oid) -> Result<()> {
    check_columns(state, table, wanted, None, check_as)
}

/// As [`check_table`], privileges on each of the columns used, if they are known, doing for those that there are none of on the table.
///
/// # Errors
/// `42501`
pub fn check_columns(
    state: &SessionState,
    table: &Table,
    wanted: u32,
    used: Option<&UsedColumns>,
    check_as: Oid,
) -> Result<()> {
    let role = if check_as.is_valid() { check_as } else { state.current_user.borrow().oid };
    if is_superuser(state, role)? {
        return Ok(());
    }
    let lacks = wanted & !table_privileges(state, role, table)?;
    if lacks == 0 {
        return Ok(());
    }
    if let Some(used) = used
        && lacks & !(SELECT | INSERT | UPDATE) == 0
        && lacks & closed(table.oid, table.kind) == 0
    {
        let columns = column_acls::Columns::of(state, role, table)?;
        let lists = [(SELECT, &used.read), (INSERT, &used.inserted), (UPDATE, &used.updated)];
        if lists.iter().all(|(bit, list)| lacks & bit == 0 || columns.have(*bit, list)) {
            return Ok(());
        }
    }
    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {} {}", noun(table.kind), table.name)
}

/// Fails unless the current user may refer to these columns of `table`, or to all of it.
///
/// # Errors
/// `42501`
pub fn check_references(state: &SessionState, table: &Table, columns: &[i32]) -> Result<()> {
    let checked = check_table(state, table, REFERENCES, Oid::INVALID);
    if checked.is_ok() {
        return Ok(());
    }
    let role = state.current_user.borrow().oid;
    match column_acls::Columns::of(state, role, table)?.have(REFERENCES, columns) {
        true => Ok(()),
        false => checked,
    }
}

/// Fails unless the current user owns `table`.
///
/// # Errors
/// `42501`
pub fn check_owner(state: &SessionState, table: &Table) -> Result<()> {
    let role = state.current_user.borrow().oid;
    if is_superuser(state, role)? || roles_of(state, role)?.contains(&table.owner) {
        return Ok(());
    }
    let noun = match table.kind {
        RelationKind::Composite => "table",
        kind => noun(kind),
    };
    bail!(INSUFFICIENT_PRIVILEGE, "must be owner of {noun} {}", table.name)
}

/// Is the current user the owner of `schema`, or a member of it?
///
/// # Errors
/// I/O.
pub fn owns_schema(state: &SessionState, schema: Oid) -> Result<bool> {
    let role = state.current_user.borrow().oid;
    if is_superuser(state, role)? {
        return Ok(true);
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_namespace", &[("oid", Datum::Oid(schema))])?;
    let Some(owner) = rows.first().map(|r| r.oid("nspowner")) else { return Ok(false) };
    Ok(roles_of(state, role)?.contains(&owner))
}

/// What a kind of relation is called in messages.
pub fn noun(kind: RelationKind) -> &'static str {
    match kind {
        RelationKind::Index | RelationKind::PartitionedIndex => "index",
        RelationKind::Sequence => "sequence",
        RelationKind::View => "view",
        RelationKind::MaterializedView => "materialized view",
        RelationKind::Composite => "composite type",
        _ => "table",
    }
}

/// The same, of many.
pub fn nouns(kind: RelationKind) -> String {
    let noun = noun(kind);
    let ending = if noun.ends_with('x') { "es" } else { "s" };
    format!("{noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_read_and_print() {
        for text in ["postgres=arwdDxtm/postgres", "=r/postgres", "a=r*w/b"] {
            assert_eq!(AclItem::parse(text).unwrap().to_text(), *text);
        }
        for name in ["bob=r/", "=arwd/z", "a\"b", "\"bob\"", "\"", "Ä b", ""] {
            let item = AclItem {
                grantee: name.to_owned(),
                privileges: SELECT,
                grantable: 0,
                grantor: format!("{name}x"),
            };
            assert_eq!(AclItem::parse(&item.to_text()).as_ref(), Some(&item));
        }
        assert_eq!(AclItem::parse("bob=U*C/x").unwrap().grantable, USAGE);
    }
}
