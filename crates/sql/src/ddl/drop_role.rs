//! DROP ROLE: nothing may be owned by, or granted to, whom it drops, in any database.

use super::Ddl;
use super::role::{denied, roles_changed};
use crate::parse::utility::RoleName;
use crate::system::names::relation_name;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::Row;
use engine::catalog::store::CatalogStore;
use txn::LockMode;
use types::Datum;

/// The catalogs of one database that tell of roles: whose owner is in which column, and what was granted.
const ROLES_IN: [(&str, &str, Option<&str>); 7] = [
    ("pg_namespace", "nspowner", Some("nspacl")),
    ("pg_class", "relowner", Some("relacl")),
    // Of columns nobody is the owner.
    ("pg_attribute", "", Some("attacl")),
    ("pg_type", "typowner", Some("typacl")),
    ("pg_statistic_ext", "stxowner", None),
    ("pg_extension", "extowner", None),
    ("pg_default_acl", "defaclrole", Some("defaclacl")),
];

/// Was something granted to, or by, the role of that name?
fn grants_to(row: &Row, acl: &str, name: &str) -> bool {
    let items = row.texts(acl).unwrap_or_default();
    let parsed = items.iter().filter_map(|item| crate::acl::AclItem::parse(item));
    parsed.into_iter().any(|i| i.grantee == name || i.grantor == name)
}

fn still_used(name: &str, lines: &[String]) -> base::Error {
    let text = format!("role \"{name}\" cannot be dropped because some objects depend on it");
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, text).detail(lines.join("\n")).into()
}

impl Ddl<'_> {
    /// DROP ROLE
    ///
    /// # Errors
    /// `42704`, `2BP01`, `55006`, `42501`
    pub fn drop_role(&mut self, if_exists: bool, roles: &[RoleName]) -> Result<()> {
        if !self.may_create_roles()? {
            return Err(denied(
                "drop role",
                "Only roles with the CREATEROLE attribute and the ADMIN option on the target roles may drop roles.",
            ));
        }
        let mut dropped: Vec<(Oid, &str)> = Vec::new();
        for role in roles {
            let RoleName::Name(name) = role else {
                bail!(INVALID_PARAMETER_VALUE, "cannot use special role specifier in DROP ROLE");
            };
            let Some(row) = self.role_row(name)? else {
                if if_exists {
                    self.notice(
                        SqlState::SUCCESSFUL_COMPLETION,
                        format!("role \"{name}\" does not exist, skipping"),
                    )?;
                    continue;
                }
                bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist");
            };
            self.check_may_drop_role(&row)?;
            let oid = row.oid("oid");
            if dropped.iter().any(|(other, _)| *other == oid) {
                continue;
            }
            let object = super::depend::Object::of("pg_authid", oid);
            super::lock_object(self.state(), object, LockMode::AccessExclusive)?;
            // Of two that are dropped together one may have made the other a member of something.
            let txn = self.state().txn()?;
            let rows = self.state().catalog.rows(&txn);
            rows.delete_where("pg_auth_members", &[("roleid", Datum::Oid(oid))])?;
            rows.delete_where("pg_auth_members", &[("member", Datum::Oid(oid))])?;
            dropped.push((oid, name));
        }
        dropped.into_iter().try_for_each(|(oid, name)| self.drop_one_role(oid, name))
    }

    fn check_may_drop_role(&self, row: &Row) -> Result<()> {
        let (oid, state) = (row.oid("oid"), self.state());
        if oid == state.current_user.borrow().oid {
            bail!(OBJECT_IN_USE, "current user cannot be dropped");
        }
        if oid == state.session_user.borrow().oid {
            bail!(OBJECT_IN_USE, "session user cannot be dropped");
        }
        if oid < Oid::FIRST_NORMAL {
            bail!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop role {} because it is required by the database system",
                row.text("rolname")
            );
        }
        self.check_controls(row, "drop")
    }

    /// Drops a role, which is locked and a member of nothing any more.
    fn drop_one_role(&self, oid: Oid, name: &str) -> Result<()> {
        let mut uses = self.uses_of_role(oid, name)?;
        uses.extend(self.uses_elsewhere(oid, name)?);
        if !uses.is_empty() {
            return Err(still_used(name, &uses));
        }
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        // Dropped, or changed, while the lock was waited for.
        let Some(row) = self.role_row(name)?.filter(|row| row.oid("oid") == oid) else {
            bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist");
        };
        rows.delete_where("pg_db_role_setting", &[("setrole", Datum::Oid(oid))])?;
        let object = super::depend::Object::of("pg_authid", oid);
        super::drop::remove_shared_comments(state, object)?;
        rows.delete(&row)?;
        roles_changed(state);
        Ok(())
    }

    /// The other databases, with their names.
    pub(super) fn other_databases(&self) -> Result<Vec<(Oid, String)>> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn).scan("pg_database")?;
        let others = rows.iter().filter(|r| r.oid("oid") != state.database.oid);
        Ok(others.map(|r| (r.oid("oid"), r.text("datname").to_owned())).collect())
    }

    /// In which other databases how much is owned by, or granted to, a role.
    fn uses_elsewhere(&self, role: Oid, name: &str) -> Result<Vec<String>> {
        let state = self.state();
        let txn = state.txn()?;
        let mut lines = Vec::new();
        for (database, called) in self.other_databases()? {
            if !self.hold_database(database)? {
                continue;
            }
            let store = CatalogStore::new(state.cluster.storage().clone(), database);
            let rows = store.session(&txn);
            let mut count = 0;
            for (catalog, owner, acl) in ROLES_IN {
                for row in rows.scan(catalog)? {
                    // Parts of tables go by what they belong to.
                    let is_part = match catalog {
                        "pg_class" => matches!(row.char("relkind"), b'i' | b't' | b'c'),
                        "pg_type" => !super::composites::is_object(&rows, &row)?,
                        _ => false,
                    };
                    let uses = !is_part
                        && ((!owner.is_empty() && row.oid(owner) == role)
                            || acl.is_some_and(|acl| grants_to(&row, acl, name)));
                    count += usize::from(uses);
                }
            }
            match count {
                0 => {}
                1 => lines.push(format!("1 object in database {called}")),
                n => lines.push(format!("{n} objects in database {called}")),
            }
        }
        Ok(lines)
    }

    /// Keeps another database from being dropped while it is looked into; false if it has been.
    pub(super) fn hold_database(&self, database: Oid) -> Result<bool> {
        let state = self.state();
        let txn = state.txn()?;
        let tag = crate::cluster::database_lock(database);
        txn.lock(tag, LockMode::RowExclusive, txn::Wait::Block)?;
        let key = [("oid", Datum::Oid(database))];
        Ok(!state.catalog.rows(&txn).find("pg_database", &key)?.is_empty())
    }

    /// What is owned by, or granted to, a role here.
    fn uses_of_role(&self, role: Oid, name: &str) -> Result<Vec<String>> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let mut lines = Vec::new();
        let granted = |row: &Row, column: &str| grants_to(row, column, name);
        for row in rows.scan("pg_database")? {
            if row.oid("datdba") == role {
                lines.push(format!("owner of database {}", row.text("datname")));
            } else if granted(&row, "datacl") {
                lines.push(format!("privileges for database {}", row.text("datname")));
            }
        }
        for row in rows.find("pg_auth_members", &[("grantor", Datum::Oid(role))])? {
            let (of, member) = (row.oid("roleid"), row.oid("member"));
            if of != role && member != role {
                let name = |oid| Ok::<_, base::Error>(state.role_name(oid)?.unwrap_or_default());
                let (member, of) = (name(member)?, name(of)?);
                lines.push(format!("privileges for membership of role {member} in role {of}"));
            }
        }
        for row in rows.scan("pg_namespace")? {
            if row.oid("nspowner") == role {
                lines.push(format!("owner of schema {}", row.text("nspname")));
            } else if granted(&row, "nspacl") {
                lines.push(format!("privileges for schema {}", row.text("nspname")));
            }
        }
        for row in rows.scan("pg_default_acl")? {
            let what = || super::default_acl::describe(state, &row);
            if row.oid("defaclrole") == role {
                lines.push(format!("owner of {}", what()?));
            } else if granted(&row, "defaclacl") {
                lines.push(format!("privileges for {}", what()?));
            }
        }
        let mut relations = rows.scan("pg_class")?;
        relations.sort_by_key(|row| row.oid("oid"));
        for row in relations {
            let Some(kind) = engine::catalog::model::RelationKind::from_letter(row.char("relkind"))
            else {
                continue;
            };
            let noun = crate::acl::noun(kind);
            if matches!(row.char("relkind"), b'i' | b't' | b'c') {
                continue;
            }
            let shown = || -> Result<String> {
                let table = state.table_by_oid(row.oid("oid"))?;
                Ok(table.map(|t| relation_name(state, &t)).unwrap_or_default())
            };
            if row.oid("relowner") == role {
                lines.push(format!("owner of {noun} {}", shown()?));
            } else if granted(&row, "relacl") {
                lines.push(format!("privileges for {noun} {}", shown()?));
            }
            for column in rows.find("pg_attribute", &[("attrelid", Datum::Oid(row.oid("oid")))])? {
                if granted(&column, "attacl") {
                    let column = column.text("attname");
                    lines.push(format!("privileges for column {column} of {noun} {}", shown()?));
                }
            }
        }
        // Tables' row types and array types go by what they belong to.
        for row in &rows.scan("pg_type")? {
            if !super::composites::is_object(&rows, row)? {
                continue;
            }
            let shown = || crate::system::names::type_name(state, row.oid("oid"), None);
            if row.oid("typowner") == role {
                lines.push(format!("owner of type {}", shown().unwrap_or_default()));
            } else if granted(row, "typacl") {
                lines.push(format!("privileges for type {}", shown().unwrap_or_default()));
            }
        }
        for row in rows.scan("pg_statistic_ext")?.iter().filter(|r| r.oid("stxowner") == role) {
            let shown = super::statistics::shown_name(state, row)?;
            lines.push(format!("owner of statistics object {shown}"));
        }
        for row in rows.scan("pg_extension")?.iter().filter(|r| r.oid("extowner") == role) {
            lines.push(format!("owner of extension {}", row.text("extname")));
        }
        Ok(lines)
    }
}
