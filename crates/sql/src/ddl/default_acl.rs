//! ALTER DEFAULT PRIVILEGES, and the privileges that a new object has by them.
//!
//! # Invariants
//! A role's row for all schemas says what a new object has in place of what is built in; its row for one schema says what it has
//! besides. A row that would say what holds anyway is not kept.

use super::depend::{self, Kind, Object};
use super::grant_chain::{Chain, Change};
use super::{Ddl, new_oid};
use crate::acl::{AclItem, PRIVILEGES};
use crate::parse::utility::{Grant, GrantObject, RoleName};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::acl;
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::{NewRow, Row};
use types::Datum;

const CATALOG: &str = "pg_default_acl";

/// `defaclobjtype`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Made {
    Relation,
    Sequence,
    Function,
    Type,
    Schema,
    LargeObject,
}

impl Made {
    /// By the word of ALTER DEFAULT PRIVILEGES.
    fn named(word: &str) -> Option<Made> {
        Some(match word {
            "tables" => Made::Relation,
            "sequences" => Made::Sequence,
            "functions" | "routines" => Made::Function,
            "types" => Made::Type,
            "schemas" => Made::Schema,
            "large objects" => Made::LargeObject,
            _ => return None,
        })
    }

    fn letter(self) -> u8 {
        match self {
            Made::Relation => b'r',
            Made::Sequence => b'S',
            Made::Function => b'f',
            Made::Type => b'T',
            Made::Schema => b'n',
            Made::LargeObject => b'L',
        }
    }

    fn of_letter(letter: u8) -> Option<Made> {
        use Made::{Function, LargeObject, Relation, Schema, Sequence, Type};
        [Relation, Sequence, Function, Type, Schema, LargeObject]
            .into_iter()
            .find(|made| made.letter() == letter)
    }

    /// What it is called where a privilege does not fit it.
    fn noun(self) -> &'static str {
        match self {
            Made::Relation => "relation",
            Made::Sequence => "sequence",
            Made::Function => "function",
            Made::Type => "type",
            Made::Schema => "schema",
            Made::LargeObject => "large object",
        }
    }

    /// (PUBLIC's, the owner's) by what is built in.
    fn letters(self) -> (&'static str, &'static str) {
        match self {
            Made::Relation => ("", "arwdDxtm"),
            Made::Sequence => ("", "rwU"),
            Made::Function => ("X", "X"),
            Made::Type => ("U", "U"),
            Made::Schema => ("", "UC"),
            Made::LargeObject => ("", "rw"),
        }
    }

    fn all(self) -> u32 {
        let owners = self.letters().1;
        PRIVILEGES.iter().filter(|p| owners.contains(p.1)).fold(0, |bits, p| bits | p.0)
    }

    fn built_in(self, owner: &str) -> Vec<AclItem> {
        let item = |grantee: &str, letters: &str| AclItem {
            grantee: grantee.to_owned(),
            privileges: PRIVILEGES.iter().filter(|p| letters.contains(p.1)).fold(0, |b, p| b | p.0),
            grantable: 0,
            grantor: owner.to_owned(),
        };
        let (public, owners) = self.letters();
        let items = [item("", public), item(owner, owners)];
        items.into_iter().filter(|item| item.privileges != 0).collect()
    }
}

/// As PostgreSQL keeps them: by who has them, and who gave them.
fn sort(state: &SessionState, items: &mut [AclItem]) -> Result<()> {
    let mut keys = Vec::new();
    for item in items.iter() {
        let oid =
            |name: &str| -> Result<Oid> { Ok(state.role_by_name(name)?.unwrap_or(Oid::INVALID)) };
        keys.push(((oid(&item.grantee)?, oid(&item.grantor)?), item.clone()));
    }
    keys.sort_by_key(|(key, _)| *key);
    for (place, (_, item)) in items.iter_mut().zip(keys) {
        *place = item;
    }
    Ok(())
}

fn items_of(row: &Row) -> Vec<AclItem> {
    let texts = row.texts("defaclacl").unwrap_or_default();
    texts.iter().filter_map(|text| AclItem::parse(text)).collect()
}

fn texts(items: &[AclItem]) -> Datum {
    acl(&items.iter().map(AclItem::to_text).collect::<Vec<_>>())
}

/// A role's row for a schema (0: all of them) and a kind of object.
fn find(state: &SessionState, role: Oid, schema: Oid, made: Made) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let key = [
        ("defaclrole", Datum::Oid(role)),
        ("defaclnamespace", Datum::Oid(schema)),
        ("defaclobjtype", Datum::Char(made.letter())),
    ];
    Ok(state.catalog.rows(&txn).find(CATALOG, &key)?.into_iter().next())
}

/// What a new object of `owner`'s in `schema` (0: in none) has in its column of privileges: NULL for what is built in.
///
/// # Errors
/// I/O.
pub(super) fn of_new(state: &SessionState, made: Made, owner: Oid, schema: Oid) -> Result<Datum> {
    let everywhere = find(state, owner, Oid::INVALID, made)?;
    let here = if schema.is_valid() { find(state, owner, schema, made)? } else { None };
    if everywhere.is_none() && here.is_none() {
        return Ok(Datum::Null);
    }
    let name = state.role_name(owner)?.unwrap_or_default();
    let mut built_in = made.built_in(&name);
    let mut items = everywhere.as_ref().map_or_else(|| built_in.clone(), items_of);
    for more in here.as_ref().map(items_of).unwrap_or_default() {
        super::grant::add(&mut items, more);
    }
    sort(state, &mut items)?;
    sort(state, &mut built_in)?;
    Ok(if items == built_in { Datum::Null } else { texts(&items) })
}

/// `default privileges on new relations belonging to role a in schema s`
///
/// # Errors
/// I/O.
pub(crate) fn describe(state: &SessionState, row: &Row) -> Result<String> {
    let kind = match Made::of_letter(row.char("defaclobjtype")) {
        Some(Made::Relation) => "on new relations ",
        Some(Made::Sequence) => "on new sequences ",
        Some(Made::Function) => "on new functions ",
        Some(Made::Type) => "on new types ",
        Some(Made::Schema) => "on new schemas ",
        Some(Made::LargeObject) => "on new large objects ",
        None => "",
    };
    let role = state.role_name(row.oid("defaclrole"))?.unwrap_or_default();
    let txn = state.txn()?;
    let key = [("oid", row.get("defaclnamespace").clone())];
    let schema = state.catalog.rows(&txn).find("pg_namespace", &key)?;
    let schema = schema.first().map(|r| format!(" in schema {}", r.text("nspname")));
    Ok(format!("default privileges {kind}belonging to role {role}{}", schema.unwrap_or_default()))
}

/// Puts what a row says in place of what it said, or takes it away if that holds anyway.
fn put(state: &SessionState, mut row: Row, mut items: Vec<AclItem>) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let mut anyway = Vec::new();
    if !row.oid("defaclnamespace").is_valid()
        && let Some(made) = Made::of_letter(row.char("defaclobjtype"))
    {
        anyway = made.built_in(&state.role_name(row.oid("defaclrole"))?.unwrap_or_default());
    }
    sort(state, &mut anyway)?;
    sort(state, &mut items)?;
    if items == anyway {
        return remove(state, &row);
    }
    row.set("defaclacl", texts(&items));
    rows.update(&row)
}

/// Takes a row away.
fn remove(state: &SessionState, row: &Row) -> Result<()> {
    let object = Object::of(CATALOG, row.oid("oid"));
    super::drop::forget_dependencies(state, object)?;
    let txn = state.txn()?;
    state.catalog.rows(&txn).delete(row)
}

/// A role is done with (DROP OWNED): its own rows go, and what others' rows give it.
///
/// # Errors
/// I/O.
pub(super) fn forget_role(state: &SessionState, role: Oid, name: &str) -> Result<()> {
    let txn = state.txn()?;
    for row in state.catalog.rows(&txn).scan(CATALOG)? {
        if row.oid("defaclrole") == role {
            remove(state, &row)?;
            continue;
        }
        let items = items_of(&row);
        if items.iter().any(|item| item.grantee == name) {
            let kept = items.into_iter().filter(|item| item.grantee != name).collect();
            put(state, row, kept)?;
        }
    }
    Ok(())
}

impl Ddl<'_> {
    /// ALTER DEFAULT PRIVILEGES
    ///
    /// # Errors
    /// `42704`, `3F000`, `42501`, `0LP01`; I/O.
    pub fn alter_default_privileges(
        &mut self,
        roles: &[RoleName],
        schemas: &[String],
        grant: &Grant,
    ) -> Result<()> {
        let GrantObject::Default(word) = &grant.object else {
            bail!(INTERNAL_ERROR, "no kind of object")
        };
        let Some(made) = Made::named(word) else {
            bail!(SYNTAX_ERROR, "unrecognized object type \"{word}\"")
        };
        let wanted = wanted(grant, made)?;
        let mut grantees = Vec::new();
        for grantee in &grant.grantees {
            grantees.push(match grantee {
                RoleName::Public => String::new(),
                role => {
                    let oid = self.role(role)?;
                    super::lock_role(self.state(), oid)?;
                    self.state().role_name(oid)?.unwrap_or_default()
                }
            });
        }
        let me = self.state().current_user.borrow().oid;
        let mut owners = Vec::new();
        for role in roles {
            let owner = self.role(role)?;
            let state = self.state();
            if !state.is_superuser() && !crate::acl::roles_of(state, me)?.contains(&owner) {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied to change default privileges");
            }
            owners.push(owner);
        }
        if roles.is_empty() {
            owners.push(me);
        }
        for owner in owners {
            super::lock_role(self.state(), owner)?;
            if schemas.is_empty() {
                self.set_default(owner, Oid::INVALID, made, grant, (wanted, &grantees))?;
            }
            for schema in schemas {
                let Some(schema) = self.state().schema_by_name(schema)? else {
                    bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
                };
                if matches!(made, Made::Schema | Made::LargeObject) {
                    let text = format!(
                        "cannot use IN SCHEMA clause when using GRANT/REVOKE ON {}",
                        word.to_uppercase()
                    );
                    return Err(SqlError::new(SqlState(*b"0LP01"), text).into());
                }
                self.set_default(owner, schema, made, grant, (wanted, &grantees))?;
            }
        }
        self.state().catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// One role's row for one schema, or for all.
    fn set_default(
        &mut self,
        owner: Oid,
        schema: Oid,
        made: Made,
        grant: &Grant,
        (bits, grantees): (u32, &[String]),
    ) -> Result<()> {
        let state = self.state();
        if schema.is_valid() {
            let object = Object::of("pg_namespace", schema);
            super::lock_object(state, object, txn::LockMode::AccessShare)?;
        }
        let name = state.role_name(owner)?.unwrap_or_default();
        let built_in = if schema.is_valid() { Vec::new() } else { made.built_in(&name) };
        let row = find(state, owner, schema, made)?;
        let mut items = row.as_ref().map_or(built_in, items_of);
        let roles_of = |name: &str| Ok(vec![name.to_owned()]);
        let chain = Chain { owner: &name, roles_of: &roles_of };
        for grantee in grantees {
            let option = grant.grant_option;
            if grant.grant && option && grantee.is_empty() {
                let text = "grant options can only be granted to roles";
                return Err(SqlError::new(SqlState(*b"0LP01"), text).into());
            }
            let change = Change { grantee, grantor: &name, bits, option };
            match grant.grant {
                true => chain.grant(&mut items, change)?,
                false => chain.revoke(&mut items, change, grant.cascade)?,
            }
        }
        let row = match row {
            Some(row) => row,
            None => self.new_row(owner, schema, made)?,
        };
        put(self.state(), row, items)
    }

    fn new_row(&self, owner: Oid, schema: Oid, made: Made) -> Result<Row> {
        let state = self.state();
        let oid = new_oid(state, CATALOG)?;
        let row = NewRow::of(CATALOG)
            .oid("oid", oid)
            .oid("defaclrole", owner)
            .oid("defaclnamespace", schema)
            .char("defaclobjtype", made.letter())
            .set("defaclacl", texts(&[]));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        if schema.is_valid() {
            let object = Object::of(CATALOG, oid);
            depend::record(state, object, Object::of("pg_namespace", schema), Kind::Auto)?;
        }
        match find(state, owner, schema, made)? {
            Some(row) => Ok(row),
            None => bail!(INTERNAL_ERROR, "could not find tuple for default ACL {oid}"),
        }
    }
}

fn wanted(grant: &Grant, made: Made) -> Result<u32> {
    let Some(list) = &grant.privileges else { return Ok(made.all()) };
    let invalid = |text: String| SqlError::new(SqlState(*b"0LP01"), text);
    let mut bits = 0;
    for (word, columns) in list {
        if !columns.is_empty() {
            let text = "default privileges cannot be set for columns".to_owned();
            return Err(invalid(text).into());
        }
        let upper = if word == "temp" { "TEMPORARY".to_owned() } else { word.to_uppercase() };
        let Some((bit, ..)) = PRIVILEGES.iter().find(|p| p.2 == upper) else {
            bail!(SYNTAX_ERROR, "unrecognized privilege type \"{word}\"");
        };
        if bit & made.all() == 0 {
            let text = format!("invalid privilege type {upper} for {}", made.noun());
            return Err(invalid(text).into());
        }
        bits |= bit;
    }
    Ok(bits)
}
