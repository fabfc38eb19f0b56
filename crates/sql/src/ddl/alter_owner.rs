//! OWNER TO of relations: with them go their indexes, TOAST tables, sequences and row types.

use super::{Ddl, relation};
use crate::client::{Notice, Severity};
use crate::parse::utility::RoleName;
use base::{Oid, Result, SqlState};
use engine::catalog::load::RowSource;
use engine::catalog::model::{RelationKind, Table};
use engine::catalog::rows::Row;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    /// OWNER TO, for a relation with its indexes, owned sequences and row type.
    ///
    /// # Errors
    /// `42704`, `42501`
    pub fn change_owner(&mut self, table: &Arc<Table>, role: &RoleName) -> Result<()> {
        let owner = self.role(role)?;
        let state = self.state();
        super::lock_role(state, owner)?;
        if table.kind == RelationKind::Index {
            // It is its table's owner's. Dumps of old say so, too.
            return match owner == table.owner {
                true => Ok(()),
                false => self.warn_of_index_owner(table),
            };
        }
        if owner == table.owner {
            return Ok(());
        }
        let linked = format!("cannot change owner of sequence \"{}\"", table.name);
        super::sequence::refuse_owned(state, table, &linked)?;
        if table.namespace == state.temp_schema.get() {
            self.check_may_own(owner)?;
        } else {
            self.check_may_own_in(owner, table.namespace)?;
        }
        self.give_relation(table, owner)
    }

    /// A relation and what belongs to it get another owner.
    pub(super) fn give_relation(&mut self, table: &Arc<Table>, owner: Oid) -> Result<()> {
        let state = self.state();
        let set = |oid: Oid, before: Oid| {
            // Who renames an index or sets its options locks nothing else.
            crate::relations::lock(state, oid, LockMode::AccessExclusive)?;
            let (old, new) = super::grant::owner_names(state, before, owner)?;
            relation::update_class(state, oid, |row| {
                row.set("relowner", Datum::Oid(owner));
                super::grant::hand_over(row, "relacl", &old, &new);
            })?;
            super::grant_columns::hand_over_columns(state, oid, &old, &new)
        };
        set(table.oid, table.owner)?;
        for index in &table.indexes {
            set(index.oid, table.owner)?;
        }
        let txn = state.txn()?;
        if table.toast.is_valid() {
            set(table.toast, table.owner)?;
            if let Some(toast) = state.catalog.table(&txn, table.toast)? {
                toast.indexes.iter().try_for_each(|index| set(index.oid, table.owner))?;
            }
        }
        let (old, new) = super::grant::owner_names(state, table.owner, owner)?;
        let give = |row: &mut Row| {
            super::grant::hand_over(row, "typacl", &old, &new);
            row.set("typowner", Datum::Oid(owner));
        };
        super::row_types::update(state, table.row_type, give, |array| {
            give(array);
            Ok(())
        })?;
        let class = engine::catalog::defs::by_name("pg_class").oid;
        let key = [("refclassid", Datum::Oid(class)), ("refobjid", Datum::Oid(table.oid))];
        for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
            if row.oid("classid") == class
                && let Some(owned) = state.catalog.table(&txn, row.oid("objid"))?
                && owned.kind == RelationKind::Sequence
            {
                set(owned.oid, owned.owner)?;
            }
        }
        Ok(())
    }

    fn warn_of_index_owner(&mut self, index: &Table) -> Result<()> {
        let text = format!("cannot change owner of index \"{}\"", index.name);
        let mut notice = Notice::new(Severity::Warning, text);
        notice.body.state = SqlState::WRONG_OBJECT_TYPE;
        notice.body.hint = Some("Change the ownership of the index's table instead.".to_owned());
        self.client.notice(&notice)
    }
}
