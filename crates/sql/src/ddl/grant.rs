//! GRANT and REVOKE on relations, schemas, databases and types. On columns: `grant_columns.rs`.
//!
//! # Differs from PostgreSQL
//! Privileges on functions and languages are not kept. USAGE of types and domains is kept, and not asked for.

use super::Ddl;
use super::grant_chain::{Chain, Change};
use crate::acl::{AclItem, PRIVILEGES};
use crate::client::{Notice, Severity};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{Grant, GrantObject, RoleName};
use base::{Error, Oid, Result, SqlState, Tid, bail};
use engine::catalog::bootstrap::acl;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::rows::Row;
use std::sync::Arc;
use types::Datum;

/// The lock of a relation whose privileges are changed: it is not dropped, nor changed otherwise; a VACUUM of it is nothing to wait for.
const GRANTS: txn::LockMode = txn::LockMode::AccessShare;

/// What may be granted on what.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Table,
    Sequence,
    Schema,
    Database,
    Type,
}

/// What came of changing an object's privileges.
pub(super) enum Granted {
    Done,
    /// There is no such object.
    Gone,
    /// Somebody else has changed its row, which stood there.
    Changed(Tid),
}

impl On {
    fn all(self) -> u32 {
        match self {
            On::Table => 0xff,
            On::Sequence => 1 | 4 | 256,
            On::Type => 256,
            On::Schema => 256 | 512,
            On::Database => 512 | 1024 | 2048,
        }
    }
    fn public_default(self) -> u32 {
        match self {
            On::Database => 1024 | 2048,
            On::Type => 256,
            _ => 0,
        }
    }
    fn noun(self) -> &'static str {
        match self {
            On::Table => "relation",
            On::Sequence => "sequence",
            On::Schema => "schema",
            On::Database => "database",
            On::Type => "type",
        }
    }
    fn columns(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            On::Table | On::Sequence => ("pg_class", "relname", "relowner", "relacl"),
            On::Schema => ("pg_namespace", "nspname", "nspowner", "nspacl"),
            On::Database => ("pg_database", "datname", "datdba", "datacl"),
            On::Type => ("pg_type", "typname", "typowner", "typacl"),
        }
    }
}

impl Ddl<'_> {
    /// GRANT and REVOKE.
    ///
    /// # Errors
    /// `42P01`, `42704`, `42501`, `0LP01`; `0A000`
    pub fn grant(&mut self, statement: &Grant) -> Result<()> {
        if let Some(by) = &statement.granted_by
            && self.role(by)? != self.state().current_user.borrow().oid
        {
            bail!(FEATURE_NOT_SUPPORTED, "grantor must be current user");
        }
        let mut objects: Vec<(On, Oid)> = Vec::new();
        match &statement.object {
            GrantObject::Tables(names) => {
                for name in names {
                    let table = self.lock_granted(name, |table| kind_of(table).map(|_| ()))?;
                    objects.push((kind_of(&table)?, table.oid));
                }
            }
            GrantObject::Sequences(names) => {
                for name in names {
                    let sequence = self.lock_granted(name, |table| match table.kind {
                        RelationKind::Sequence => Ok(()),
                        _ => bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a sequence", table.name),
                    })?;
                    objects.push((On::Sequence, sequence.oid));
                }
            }
            GrantObject::Schemas(names) => {
                for name in names {
                    match self.state().schema_by_name(name)? {
                        Some(oid) => objects.push((On::Schema, oid)),
                        None => {
                            bail!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist")
                        }
                    }
                }
            }
            GrantObject::Databases(names) => {
                for name in names {
                    objects.push((On::Database, self.database_oid(name)?));
                }
            }
            GrantObject::Types(names) => {
                for name in names {
                    match self.find_type(name)? {
                        Some(row) => objects.push((On::Type, row.oid("oid"))),
                        None => bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist"),
                    }
                }
            }
            GrantObject::AllTablesInSchema(schemas) => {
                self.all_in(schemas, b"rvmp", On::Table, &mut objects)?;
            }
            GrantObject::AllSequencesInSchema(schemas) => {
                self.all_in(schemas, b"S", On::Sequence, &mut objects)?;
            }
            // Built-in functions are everybody's, and there are no others.
            GrantObject::AllFunctionsInSchema(_) => return Ok(()),
            _ => return Err(Error::unsupported("GRANT on this kind of object")),
        }
        // What was named is there, under its lock; of all in a schema one may have been dropped while its lock was waited for.
        let listed = matches!(
            statement.object,
            GrantObject::AllTablesInSchema(_) | GrantObject::AllSequencesInSchema(_)
        );
        for (on, oid) in objects {
            if self.wanted(statement, on)?.1 {
                self.warn_of_sequence(oid)?;
            }
            if !self.grant_one(statement, on, oid)? && !listed {
                bail!(INTERNAL_ERROR, "cache lookup failed for object {oid}");
            }
        }
        self.state().catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// Locks what has the name, if it is what `may` allows, as whoever grants something on a relation does.
    fn lock_granted(
        &self,
        name: &ObjectName,
        may: impl Fn(&Table) -> Result<()>,
    ) -> Result<Arc<Table>> {
        crate::relations::lock_named(self.state(), GRANTS, || {
            let table = self.relation(name)?;
            may(&table)?;
            Ok(table)
        })
    }

    fn all_in(
        &self,
        schemas: &[String],
        kinds: &[u8],
        on: On,
        objects: &mut Vec<(On, Oid)>,
    ) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for schema in schemas {
            let Some(oid) = state.schema_by_name(schema)? else {
                bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist");
            };
            for row in rows.find("pg_class", &[("relnamespace", Datum::Oid(oid))])? {
                if kinds.contains(&row.char("relkind")) {
                    objects.push((on, row.oid("oid")));
                }
            }
        }
        Ok(())
    }

    /// The privileges that a statement names, of an object of this kind; and whether it names, of a sequence that it calls a table, some that
    /// a sequence does not have.
    fn wanted(&self, statement: &Grant, on: On) -> Result<(u32, bool)> {
        let Some(list) = &statement.privileges else { return Ok((on.all(), false)) };
        let called_table = matches!(statement.object, GrantObject::Tables(_));
        let (mut bits, mut others) = (0, false);
        for (word, columns) in list {
            if !columns.is_empty() {
                if called_table || matches!(statement.object, GrantObject::AllTablesInSchema(_)) {
                    continue;
                }
                let text = "column privileges are only valid for relations";
                return Err(base::SqlError::new(SqlState(*b"0LP01"), text).into());
            }
            let upper = if word == "temp" { "TEMPORARY".to_owned() } else { word.to_uppercase() };
            let Some((bit, ..)) = PRIVILEGES.iter().find(|p| p.2 == upper) else {
                bail!(SYNTAX_ERROR, "unrecognized privilege type \"{word}\"");
            };
            if bit & on.all() == 0 {
                if on == On::Sequence && called_table && bit & On::Table.all() != 0 {
                    others = true;
                    continue;
                }
                let table = called_table && *bit == crate::acl::USAGE;
                let noun = if table { "table" } else { on.noun() };
                return Err(base::SqlError::new(
                    SqlState(*b"0LP01"),
                    format!("invalid privilege type {upper} for {noun}"),
                )
                .into());
            }
            bits |= bit;
        }
        Ok((bits, others))
    }

    /// False if there is no such object. Of two who change its privileges, the second goes by what the first has made of them.
    fn grant_one(&mut self, statement: &Grant, on: On, oid: Oid) -> Result<bool> {
        let (wanted, _) = self.wanted(statement, on)?;
        if !matches!(on, On::Table | On::Sequence) {
            return self.until_unchanged(|ddl| ddl.grant_by_row(statement, on, oid, wanted));
        }
        crate::relations::lock(self.state(), oid, GRANTS)?;
        let Some(before) = self.state().table_by_oid(oid)? else { return Ok(false) };
        let done = wanted == 0
            || self.until_unchanged(|ddl| ddl.grant_by_row(statement, on, oid, wanted))?;
        Ok(done && self.grant_columns(statement, &before, wanted)?)
    }

    /// Does `change` until nobody else has changed the row meanwhile; false if there is none.
    pub(super) fn until_unchanged(
        &mut self,
        mut change: impl FnMut(&mut Self) -> Result<Granted>,
    ) -> Result<bool> {
        let mut seen = None;
        loop {
            match change(self)? {
                Granted::Done => return Ok(true),
                Granted::Gone => return Ok(false),
                Granted::Changed(tid) if seen == Some(tid) => {
                    bail!(INTERNAL_ERROR, "tuple concurrently updated")
                }
                Granted::Changed(tid) => seen = Some(tid),
            }
        }
    }

    fn grant_by_row(&mut self, statement: &Grant, on: On, oid: Oid, all: u32) -> Result<Granted> {
        let state = self.state();
        let (catalog, name_column, owner_column, acl_column) = on.columns();
        if catalog == "pg_class" {
            crate::relations::lock(state, oid, GRANTS)?;
        }
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let Some(mut row) = rows.find(catalog, &[("oid", Datum::Oid(oid))])?.into_iter().next()
        else {
            return Ok(Granted::Gone);
        };
        let owner = row.oid(owner_column);
        // The names of both are written: neither is to get another one meanwhile.
        super::lock_role(state, owner)?;
        super::lock_role(state, state.current_user.borrow().oid)?;
        let owner_name = state.role_name(owner)?.unwrap_or_default();
        let mut items = items_of(&row, acl_column, &owner_name, on);
        let (grantor, wanted) = match state.is_superuser() {
            true => (owner_name.clone(), all),
            false => {
                let (grantor, may) = self.best_grantor(&items, all, owner)?;
                if may == 0 && !self.has_any(&items, u32::MAX)? {
                    let noun = if on == On::Table { "table" } else { on.noun() };
                    bail!(
                        INSUFFICIENT_PRIVILEGE,
                        "permission denied for {noun} {}",
                        row.text(name_column)
                    );
                }
                (grantor, may & all)
            }
        };
        self.change_items(statement, &mut items, &owner_name, &grantor, wanted)?;
        let texts: Vec<String> = items.iter().map(AclItem::to_text).collect();
        row.set(acl_column, acl(&texts));
        if !rows.update_unless_changed(&row)? {
            return Ok(Granted::Changed(row.tid));
        }
        state.catalog.changed(oid);
        let lacks = all & !wanted;
        if wanted == 0 || (lacks != 0 && statement.privileges.is_some()) {
            let name = format!("\"{}\"", row.text(name_column));
            drop(rows);
            drop(txn);
            self.warn_of_grant(statement.grant, wanted == 0, &name)?;
        }
        Ok(Granted::Done)
    }

    /// Does to an ACL what the statement says, for each of its grantees.
    pub(super) fn change_items(
        &self,
        statement: &Grant,
        items: &mut Vec<AclItem>,
        owner: &str,
        grantor: &str,
        wanted: u32,
    ) -> Result<()> {
        let state = self.state();
        let roles_of = |name: &str| self.names_of_roles(name);
        let chain = Chain { owner, roles_of: &roles_of };
        for grantee in &statement.grantees {
            let name = match grantee {
                RoleName::Public => String::new(),
                role => {
                    let oid = self.role(role)?;
                    super::lock_role(state, oid)?;
                    state.role_name(oid)?.unwrap_or_default()
                }
            };
            let option = statement.grant_option;
            let change = Change { grantee: &name, grantor, bits: wanted, option };
            if statement.grant {
                if option && name.is_empty() {
                    return Err(base::SqlError::new(
                        SqlState(*b"0LP01"),
                        "grant options can only be granted to roles",
                    )
                    .into());
                }
                chain.grant(items, change)?;
            } else {
                chain.revoke(items, change, statement.cascade)?;
            }
        }
        Ok(())
    }

    /// A sequence may be called a table, and then more may be named than it has.
    fn warn_of_sequence(&mut self, oid: Oid) -> Result<()> {
        let name = self.state().table_by_oid(oid)?.map(|t| t.name.clone()).unwrap_or_default();
        let text =
            format!("sequence \"{name}\" only supports USAGE, SELECT, and UPDATE privileges");
        let mut notice = Notice::new(Severity::Warning, text);
        notice.body.state = SqlState(*b"0LP01");
        self.client.notice(&notice)
    }

    /// PostgreSQL's warning that not all was granted or revoked; `name`: on what, in quotes.
    pub(super) fn warn_of_grant(&mut self, grant: bool, nothing: bool, name: &str) -> Result<()> {
        let (state, text) = match (grant, nothing) {
            (true, true) => (*b"01007", "no privileges were granted for"),
            (true, false) => (*b"01007", "not all privileges were granted for"),
            (false, true) => (*b"01006", "no privileges could be revoked for"),
            (false, false) => (*b"01006", "not all privileges could be revoked for"),
        };
        let mut notice = Notice::new(Severity::Warning, format!("{text} {name}"));
        notice.body.state = SqlState(state);
        self.client.notice(&notice)
    }

    /// Of the roles whose privileges the current user has, the one that may grant the most of `wanted`, and what that is: itself if it
    /// is no worse. The owner may grant all.
    pub(super) fn best_grantor(
        &self,
        items: &[AclItem],
        wanted: u32,
        owner: Oid,
    ) -> Result<(String, u32)> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        let mut others: Vec<Oid> = crate::acl::roles_of(state, me)?.into_iter().collect();
        // The same one every time.
        others.sort_unstable_by_key(|role| (*role != me, *role));
        let mut best: Option<(String, u32)> = None;
        for role in others {
            let Some(name) = state.role_name(role)? else { continue };
            let his = items.iter().filter(|i| i.grantee == name);
            let may = if role == owner { wanted } else { his.fold(0, |b, i| b | i.grantable) };
            let may = may & wanted;
            if best.as_ref().is_none_or(|(_, most)| may.count_ones() > most.count_ones()) {
                best = Some((name, may));
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// The roles whose privileges the role of a name has; none of PUBLIC.
    fn names_of_roles(&self, name: &str) -> Result<Vec<String>> {
        let state = self.state();
        let Some(role) = state.role_by_name(name)? else { return Ok(vec![name.to_owned()]) };
        let mut names = Vec::new();
        for role in crate::acl::roles_of(state, role)? {
            names.extend(state.role_name(role)?);
        }
        Ok(names)
    }

    /// Has the current user any of these privileges?
    pub(super) fn has_any(&self, items: &[AclItem], bits: u32) -> Result<bool> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        let mut names = vec![String::new()];
        for role in crate::acl::roles_of(state, me)? {
            names.extend(state.role_name(role)?);
        }
        Ok(items.iter().any(|i| i.privileges & bits != 0 && names.contains(&i.grantee)))
    }
}

fn kind_of(table: &Table) -> Result<On> {
    match table.kind {
        RelationKind::Index => bail!(WRONG_OBJECT_TYPE, "\"{}\" is an index", table.name),
        RelationKind::Composite => {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is a composite type", table.name)
        }
        RelationKind::Sequence => Ok(On::Sequence),
        _ => Ok(On::Table),
    }
}

fn items_of(row: &Row, column: &str, owner: &str, on: On) -> Vec<AclItem> {
    if let Some(texts) = row.texts(column) {
        return texts.iter().filter_map(|t| AclItem::parse(t)).collect();
    }
    let item = |grantee: &str, privileges| AclItem {
        grantee: grantee.to_owned(),
        privileges,
        grantable: 0,
        grantor: owner.to_owned(),
    };
    let mut items = Vec::new();
    if on.public_default() != 0 {
        items.push(item("", on.public_default()));
    }
    items.push(item(owner, on.all()));
    items
}

/// Adds to what its grantee has from the same grantor already.
pub(super) fn add(items: &mut Vec<AclItem>, more: AclItem) {
    match items.iter_mut().find(|i| i.grantee == more.grantee && i.grantor == more.grantor) {
        Some(item) => {
            item.privileges |= more.privileges;
            item.grantable |= more.grantable;
        }
        None => items.push(more),
    }
}

/// An object gets another owner: what `old` had and granted, `new` has and has granted, and what `new` had before goes with it.
pub(super) fn hand_over(row: &mut Row, column: &str, old: &str, new: &str) {
    let Some(texts) = row.texts(column) else { return };
    let mut items: Vec<AclItem> = Vec::new();
    for mut item in texts.iter().filter_map(|t| AclItem::parse(t)) {
        for name in [&mut item.grantee, &mut item.grantor] {
            if name == old {
                new.clone_into(name);
            }
        }
        add(&mut items, item);
    }
    let texts: Vec<String> = items.iter().map(AclItem::to_text).collect();
    row.set(column, acl(&texts));
}

/// The names of an object's owner and of the one that it gets, for [`hand_over`].
///
/// # Errors
/// I/O.
pub(super) fn owner_names(
    state: &crate::session::SessionState,
    old: Oid,
    new: Oid,
) -> Result<(String, String)> {
    let name = |role| -> Result<String> { Ok(state.role_name(role)?.unwrap_or_default()) };
    Ok((name(old)?, name(new)?))
}
