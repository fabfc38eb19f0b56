//! GRANT and REVOKE on columns.
//!
//! # Invariants
//! A column on which nothing is granted has NULL in `attacl`. What is revoked on a table is revoked on each of its columns, too; what is
//! granted on it is asked for beside them.
//!
//! `pg_attribute` has a row of a system column only when something is granted on that.

use super::Ddl;
use super::grant::Granted;
use crate::acl::{ALL_OF_COLUMN, AclItem, PRIVILEGES, SELECT};
use crate::client::{Notice, Severity};
use crate::parse::utility::Grant;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::{acl, attribute};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, Table};
use engine::catalog::rows::{NewRow, Row};
use types::Datum;

impl Ddl<'_> {
    /// What a statement says of the columns of a relation. `before`: the relation as it was, `on_all`: what it has done to the
    /// relation itself. False if it is gone.
    pub(super) fn grant_columns(
        &mut self,
        statement: &Grant,
        before: &Table,
        on_all: u32,
    ) -> Result<bool> {
        let wanted = self.wanted_of_columns(statement, before, on_all)?;
        let state = self.state();
        let txn = state.txn()?;
        let class =
            state.catalog.rows(&txn).find("pg_class", &[("oid", Datum::Oid(before.oid))])?;
        let Some(class) = class.into_iter().next() else { return Ok(false) };
        drop(txn);
        if !statement.grant && before.kind != RelationKind::View {
            self.revoke_on_system_columns(before, &class, on_all & ALL_OF_COLUMN)?;
        }
        for (column, bits) in wanted.into_iter().filter(|(_, bits)| *bits != 0) {
            self.until_unchanged(|ddl| ddl.grant_column(statement, before, &class, column, bits))?;
        }
        Ok(true)
    }

    /// The columns, and what is said of each.
    fn wanted_of_columns<'t>(
        &mut self,
        statement: &Grant,
        table: &'t Table,
        on_all: u32,
    ) -> Result<Vec<(On<'t>, u32)>> {
        let implied = if statement.grant { 0 } else { on_all & ALL_OF_COLUMN };
        // A view has no system columns.
        let system = if table.kind == RelationKind::View { 0..0 } else { -6..0 };
        let mut wanted: Vec<_> = system
            .filter_map(|number| {
                let name = crate::analyse::system_column(number)?;
                let has = table.system_acls.iter().any(|(n, _)| *n == number);
                Some((On { name, number }, if has { implied } else { 0 }))
            })
            .collect();
        let own = table.columns.iter().filter(|c| !c.dropped);
        wanted.extend(own.map(|c| (On { name: &c.name, number: c.number }, implied)));
        let named = statement.privileges.iter().flatten().filter(|p| !p.1.is_empty());
        for (word, columns) in named {
            let mut bits = privilege_of_column(word)?;
            if table.kind == RelationKind::Sequence && bits & !SELECT != 0 {
                self.warn_of_sequence_columns(&table.name)?;
                bits &= SELECT;
            }
            for name in columns {
                match wanted.iter_mut().find(|(c, _)| c.name == *name) {
                    Some(found) => found.1 |= bits,
                    None => bail!(
                        UNDEFINED_COLUMN,
                        "column \"{name}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                }
            }
        }
        Ok(wanted)
    }

    /// Who may not revoke what goes with the table is told so of its system columns, too: here of those on which there is nothing.
    fn revoke_on_system_columns(&mut self, before: &Table, class: &Row, all: u32) -> Result<()> {
        if all == 0 || self.state().is_superuser() {
            return Ok(());
        }
        let items = parsed(before.acl.as_deref());
        let (_, may) = self.best_grantor(&items, all, class.oid("relowner"))?;
        let permitted = may != 0 || self.has_any(&items, ALL_OF_COLUMN)?;
        for number in -6..0 {
            if before.system_acls.iter().any(|(n, _)| *n == number) {
                continue;
            }
            let name = crate::analyse::system_column(number).unwrap_or_default();
            let shown = format!("column \"{name}\" of relation \"{}\"", before.name);
            if !permitted {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {shown}");
            }
            if may == 0 || (may != all && all != ALL_OF_COLUMN) {
                self.warn_of_grant(false, may == 0, &shown)?;
            }
        }
        Ok(())
    }

    fn grant_column(
        &mut self,
        statement: &Grant,
        before: &Table,
        class: &Row,
        column: On<'_>,
        all: u32,
    ) -> Result<Granted> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let number = i16::try_from(column.number).unwrap_or(0);
        let key = [("attrelid", Datum::Oid(before.oid)), ("attnum", Datum::Int2(number))];
        let found = rows.find("pg_attribute", &key)?.into_iter().next();
        let owner = class.oid("relowner");
        super::lock_role(state, owner)?;
        super::lock_role(state, state.current_user.borrow().oid)?;
        let owner_name = state.role_name(owner)?.unwrap_or_default();
        let was = match &found {
            Some(row) => row.texts("attacl"),
            None if column.number < 0 => None,
            None => return Ok(Granted::Gone),
        };
        let mut items = parsed(was.as_deref());
        let shown = format!("column \"{}\" of relation \"{}\"", column.name, before.name);
        let (grantor, wanted) = match state.is_superuser() {
            true => (owner_name.clone(), all),
            false => {
                let mut on_both = parsed(before.acl.as_deref());
                on_both.extend(items.iter().cloned());
                let (grantor, may) = self.best_grantor(&on_both, all, owner)?;
                if may == 0 && !self.has_any(&on_both, ALL_OF_COLUMN)? {
                    bail!(INSUFFICIENT_PRIVILEGE, "permission denied for {shown}");
                }
                (grantor, may & all)
            }
        };
        self.change_items(statement, &mut items, &owner_name, &grantor, wanted)?;
        let texts: Vec<String> = items.iter().map(AclItem::to_text).collect();
        if was.unwrap_or_default() != texts {
            let changed = if texts.is_empty() { Datum::Null } else { acl(&texts) };
            match found {
                Some(mut row) => {
                    row.set("attacl", changed);
                    if !rows.update_unless_changed(&row)? {
                        return Ok(Granted::Changed(row.tid));
                    }
                }
                None => {
                    rows.insert(&system_attribute(before.oid, column).set("attacl", changed))?;
                }
            }
            state.catalog.changed(before.oid);
        }
        drop(rows);
        drop(txn);
        if wanted == 0 || (wanted != all && all != ALL_OF_COLUMN) {
            self.warn_of_grant(statement.grant, wanted == 0, &shown)?;
        }
        Ok(Granted::Done)
    }

    fn warn_of_sequence_columns(&mut self, name: &str) -> Result<()> {
        let text = format!("sequence \"{name}\" only supports SELECT column privileges");
        let mut notice = Notice::new(Severity::Warning, text);
        notice.body.state = SqlState(*b"0LP01");
        self.client.notice(&notice)
    }
}

/// A column that something is granted on.
#[derive(Clone, Copy)]
struct On<'t> {
    name: &'t str,
    number: i32,
}

/// The row of a system column.
fn system_attribute(relation: Oid, column: On<'_>) -> NewRow {
    let ty = crate::analyse::type_of_system_column(column.number);
    attribute(relation, i64::from(column.number), column.name, ty, -1).bool("attnotnull", true)
}

fn parsed(acl: Option<&[String]>) -> Vec<AclItem> {
    acl.unwrap_or_default().iter().filter_map(|text| AclItem::parse(text)).collect()
}

fn privilege_of_column(word: &str) -> Result<u32> {
    if word == "all" {
        return Ok(ALL_OF_COLUMN);
    }
    let upper = word.to_uppercase();
    let Some((bit, ..)) = PRIVILEGES.iter().find(|p| p.2 == upper) else {
        bail!(SYNTAX_ERROR, "unrecognized privilege type \"{word}\"");
    };
    if bit & ALL_OF_COLUMN == 0 {
        let text = format!("invalid privilege type {upper} for column");
        return Err(SqlError::new(SqlState(*b"0LP01"), text).into());
    }
    Ok(*bit)
}

/// A relation gets another owner: what was granted on its columns is so by the new one.
///
/// # Errors
/// I/O.
pub(super) fn hand_over_columns(
    state: &SessionState,
    relation: Oid,
    old: &str,
    new: &str,
) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_attribute", &[("attrelid", Datum::Oid(relation))])? {
        if row.texts("attacl").is_some() {
            super::grant::hand_over(&mut row, "attacl", old, new);
            rows.update(&row)?;
        }
    }
    Ok(())
}

/// Takes away whatever a role was granted on columns, and what it has granted on.
///
/// # Errors
/// I/O.
pub(super) fn revoke_all_columns(state: &SessionState, name: &str) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.scan("pg_attribute")? {
        let Some(texts) = row.texts("attacl") else { continue };
        let relation = row.oid("attrelid");
        let class = rows.find("pg_class", &[("oid", Datum::Oid(relation))])?;
        let Some(owner) = class.first().map(|class| class.oid("relowner")) else { continue };
        let owner = state.role_name(owner)?.unwrap_or_default();
        let Some(texts) = super::owned::without(&texts, name, &owner)? else { continue };
        row.set("attacl", if texts.is_empty() { Datum::Null } else { acl(&texts) });
        rows.update(&row)?;
        state.catalog.changed(relation);
    }
    Ok(())
}
