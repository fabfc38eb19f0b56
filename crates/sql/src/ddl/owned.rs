//! DROP OWNED and REASSIGN OWNED: all that roles own, or may do, in this database.
//!
//! # Differs from PostgreSQL
//! There is no `pg_shdepend`: the catalogs are read for what a role owns. What was granted to it goes whoever granted it.

use super::Ddl;
use super::depend::Object;
use super::grant_chain::{Chain, Change};
use crate::acl::AclItem;
use crate::parse::utility::RoleName;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::acl;
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::Row;
use txn::LockMode;
use types::Datum;

/// A catalog whose objects have owners: its column of the owner, and that of the privileges if it has one.
struct Owned {
    catalog: &'static str,
    owner: &'static str,
    acl: Option<&'static str>,
}

const OWNED: [Owned; 6] = [
    Owned { catalog: "pg_namespace", owner: "nspowner", acl: Some("nspacl") },
    Owned { catalog: "pg_class", owner: "relowner", acl: Some("relacl") },
    Owned { catalog: "pg_type", owner: "typowner", acl: Some("typacl") },
    Owned { catalog: "pg_statistic_ext", owner: "stxowner", acl: None },
    Owned { catalog: "pg_extension", owner: "extowner", acl: None },
    // Shared: it gets another owner, and is not dropped.
    Owned { catalog: "pg_database", owner: "datdba", acl: Some("datacl") },
];

impl Owned {
    /// Is it an object by itself? Indexes and TOAST tables are their tables' owners', row and array types go with what they are of, and
    /// composite types are types.
    fn counts(&self, catalogs: &dyn RowSource, row: &Row) -> Result<bool> {
        match self.catalog {
            "pg_class" => Ok(!matches!(row.char("relkind"), b'i' | b'I' | b't' | b'c')),
            "pg_type" => super::composites::is_object(catalogs, row),
            _ => Ok(true),
        }
    }

    fn rows(&self, state: &SessionState, role: Oid) -> Result<Vec<Row>> {
        let txn = state.txn()?;
        let catalogs = state.catalog.rows(&txn);
        let mut found = Vec::new();
        for row in catalogs.scan(self.catalog)? {
            if row.oid(self.owner) == role && self.counts(&catalogs, &row)? {
                found.push(row);
            }
        }
        Ok(found)
    }
}

impl Ddl<'_> {
    /// The roles of a list, whose privileges the current user has.
    fn roles_done_with(&self, roles: &[RoleName], what: &str, whose: &str) -> Result<Vec<Oid>> {
        let mut oids = Vec::new();
        for role in roles {
            oids.push(self.role(role)?);
        }
        for role in &oids {
            self.check_has(*role, what, whose)?;
        }
        Ok(oids)
    }

    fn check_has(&self, role: Oid, what: &str, whose: &str) -> Result<()> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        if state.is_superuser() || crate::acl::roles_of(state, me)?.contains(&role) {
            return Ok(());
        }
        let name = state.role_name(role)?.unwrap_or_default();
        let text = format!("permission denied to {what} objects");
        let detail =
            format!("Only roles with privileges of role \"{name}\" may {what} objects {whose}.");
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, text).detail(detail).into())
    }

    fn check_not_pinned(&self, role: Oid, what: &str) -> Result<()> {
        if role < Oid::FIRST_NORMAL {
            let name = self.state().role_name(role)?.unwrap_or_default();
            bail!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot {what} objects owned by role {name} because they are required by the database system"
            );
        }
        Ok(())
    }

    /// DROP OWNED
    ///
    /// # Errors
    /// `42704`, `42501`, `2BP01`; I/O.
    pub fn drop_owned(&mut self, roles: &[RoleName], cascade: bool) -> Result<()> {
        let roles = self.roles_done_with(roles, "drop", "owned by it")?;
        let mut objects = Vec::new();
        for role in roles {
            self.check_not_pinned(role, "drop")?;
            let state = self.state();
            let name = state.role_name(role)?.unwrap_or_default();
            for owned in &OWNED {
                revoke_all(state, owned, &name)?;
                if owned.catalog == "pg_class" {
                    super::grant_columns::revoke_all_columns(state, &name)?;
                }
                if owned.catalog != "pg_database" {
                    let rows = owned.rows(state, role)?;
                    objects.extend(rows.iter().map(|r| Object::of(owned.catalog, r.oid("oid"))));
                }
            }
            super::default_acl::forget_role(state, role, &name)?;
            let txn = state.txn()?;
            let granted = [("grantor", Datum::Oid(role))];
            if state.catalog.rows(&txn).delete_where("pg_auth_members", &granted)? != 0 {
                super::role::roles_changed(state);
            }
            // What is granted and not dropped is there to be looked at by what is dropped.
            state.txn()?.advance_command()?;
        }
        for object in objects.iter().filter(|o| o.class == Object::relation(o.oid).class) {
            crate::relations::lock(self.state(), object.oid, LockMode::AccessExclusive)?;
            let table = self.state().catalog.table(&*self.state().txn()?, object.oid)?;
            if let Some(table) = table {
                self.check_not_in_use(&table, "DROP TABLE")?;
            }
        }
        self.state().catalog.changed(Oid::INVALID);
        if objects.is_empty() {
            return Ok(());
        }
        self.drop_unused(&objects, cascade)
    }

    /// REASSIGN OWNED
    ///
    /// # Errors
    /// `42704`, `42501`, `2BP01`; I/O.
    pub fn reassign_owned(&mut self, from: &[RoleName], to: &RoleName) -> Result<()> {
        let roles = self.roles_done_with(from, "reassign", "owned by it")?;
        let to = self.role(to)?;
        self.check_has(to, "reassign", "to it")?;
        super::lock_role(self.state(), to)?;
        for role in roles {
            self.check_not_pinned(role, "reassign ownership of")?;
            for owned in &OWNED {
                for row in owned.rows(self.state(), role)? {
                    self.hand_to(owned, row, to)?;
                }
            }
        }
        self.state().catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// Fails unless the current user may make `to` the owner by ALTER … OWNER TO as well. Of relations and types that is not asked.
    fn check_may_hand(&self, owned: &Owned, row: &Row, to: Oid) -> Result<()> {
        if self.state().is_superuser() {
            return Ok(());
        }
        match owned.catalog {
            "pg_namespace" => {
                self.check_may_own(to)?;
                self.check_database_privilege(crate::acl::CREATE)
            }
            "pg_statistic_ext" => self.check_may_own_in(to, row.oid("stxnamespace")),
            "pg_extension" | "pg_database" => self.check_may_own(to),
            _ => Ok(()),
        }
    }

    fn hand_to(&mut self, owned: &Owned, mut row: Row, to: Oid) -> Result<()> {
        self.check_may_hand(owned, &row, to)?;
        let state = self.state();
        if owned.catalog == "pg_class" {
            crate::relations::lock(state, row.oid("oid"), LockMode::AccessExclusive)?;
            let table = state.catalog.table(&*state.txn()?, row.oid("oid"))?;
            // A sequence that belongs to a column has gone with its table.
            return match table.filter(|table| table.owner != to) {
                Some(table) => self.give_relation(&table, to),
                None => Ok(()),
            };
        }
        if owned.catalog == "pg_type"
            && let Some(table) = self.relation_of_composite(&row)?
        {
            return self.give_relation(&table, to);
        }
        let state = self.state();
        if let Some(column) = owned.acl {
            let (old, new) = super::grant::owner_names(state, row.oid(owned.owner), to)?;
            super::grant::hand_over(&mut row, column, &old, &new);
        }
        row.set(owned.owner, Datum::Oid(to));
        if owned.catalog == "pg_type" {
            return self.update_type(row, |array| array.set("typowner", Datum::Oid(to)));
        }
        if owned.catalog == "pg_database" {
            super::role::roles_changed(state);
        }
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)
    }
}

/// Takes away whatever `name` was granted on the objects of a catalog, and what it has granted on.
fn revoke_all(state: &SessionState, owned: &Owned, name: &str) -> Result<()> {
    let Some(column) = owned.acl else { return Ok(()) };
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.scan(owned.catalog)? {
        let Some(texts) = row.texts(column) else { continue };
        let owner = state.role_name(row.oid(owned.owner))?.unwrap_or_default();
        let Some(texts) = without(&texts, name, &owner)? else { continue };
        row.set(column, acl(&texts));
        rows.update(&row)?;
        state.catalog.changed(row.oid("oid"));
    }
    Ok(())
}

/// An ACL without what `name` was granted, and has granted on; None if that is nothing, or it owns the object, which it is about to lose.
pub(super) fn without(texts: &[String], name: &str, owner: &str) -> Result<Option<Vec<String>>> {
    let mut items: Vec<AclItem> = texts.iter().filter_map(|t| AclItem::parse(t)).collect();
    let grantors = items.iter().filter(|i| i.grantee == name).map(|i| i.grantor.clone());
    let grantors: Vec<String> = grantors.collect();
    if grantors.is_empty() || owner == name {
        return Ok(None);
    }
    let roles_of = |name: &str| Ok(vec![name.to_owned()]);
    let chain = Chain { owner, roles_of: &roles_of };
    for grantor in &grantors {
        let change = Change { grantee: name, grantor, bits: u32::MAX, option: false };
        chain.revoke(&mut items, change, true)?;
    }
    Ok(Some(items.iter().map(AclItem::to_text).collect()))
}
