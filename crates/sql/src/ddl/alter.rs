//! ALTER TABLE, and ALTER TYPE of a composite type's attributes.
//!
//! # Locks
//! AccessExclusive, but for those actions that neither readers nor writers can notice (statistics targets,
//! storage parameters, validation), which take ShareUpdateExclusive, and ADD FOREIGN KEY, which readers cannot notice, which takes
//! ShareRowExclusive of both tables. DROP of a foreign key takes AccessExclusive of both.

use super::depend::Object;
use super::{Ddl, relation, rewrite, triggers, virtual_columns};
use crate::analyse;
use crate::parse::utility::{AlterTable, AlterTableAction as A, ObjectKind, TableConstraintKind};
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{Column, RelationKind, RelationPersistence, Table};
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::options_array;
use engine::catalog::stored;
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

fn lock_mode(actions: &[A]) -> LockMode {
    actions.iter().map(lock_of).max().unwrap_or(LockMode::AccessExclusive)
}

/// The lock that an action needs. A foreign key is looked at by writers alone, so readers go on.
fn lock_of(action: &A) -> LockMode {
    match action {
        // What these say of a relation is part of what it means.
        A::SetOptions(options) | A::ResetOptions(options)
            if options.iter().any(|o| {
                let name = &*o.name;
                matches!(name, "security_barrier" | "security_invoker" | "check_option")
                    || name == "user_catalog_table"
            }) =>
        {
            LockMode::AccessExclusive
        }
        A::SetStatistics { .. }
        | A::SetOptions(_)
        | A::ResetOptions(_)
        | A::ValidateConstraint(_)
        | A::SetColumnOptions { .. }
        | A::ResetColumnOptions { .. }
        | A::ClusterOn(_)
        | A::SetWithoutCluster => LockMode::ShareUpdateExclusive,
        A::AddConstraint(c) if matches!(c.kind, TableConstraintKind::ForeignKey { .. }) => {
            LockMode::ShareRowExclusive
        }
        A::EnableDisable { enable, what } if triggers::switch(*enable, what).is_some() => {
            LockMode::ShareRowExclusive
        }
        _ => LockMode::AccessExclusive,
    }
}

/// When an action of a statement has its turn, whatever place it was written at: as in PostgreSQL things go before others change, columns
/// have their types before something new is said of them, and all columns are there before constraints are.
fn pass_of(action: &A) -> u8 {
    match action {
        A::DropColumn { .. }
        | A::DropConstraint { .. }
        | A::DropNotNull { .. }
        | A::DropExpression { .. }
        | A::DropIdentity { .. }
        | A::SetDefault { default: None, .. } => 0,
        A::AlterType { .. } => 1,
        A::AddColumn { .. } => 2,
        A::SetExpression { .. } => 3,
        A::SetNotNull { .. } => 4,
        A::AddConstraint(c) => match c.kind {
            TableConstraintKind::ForeignKey { .. } | TableConstraintKind::Check { .. } => 6,
            _ => 5,
        },
        A::SetDefault { .. } | A::AddIdentity { .. } => 6,
        _ => 7,
    }
}

impl Ddl<'_> {
    /// ALTER TABLE, and ALTER INDEX, VIEW, SEQUENCE with the same actions.
    ///
    /// # Errors
    /// `42P01`, `42703`, `42501` and what the actions meet.
    pub fn alter_table(&mut self, statement: &AlterTable) -> Result<()> {
        let find = || {
            let Some(found) = self.find(&statement.name)? else { return Ok(None) };
            if !super::alter_kinds::are_for_an_index(statement, &found)? {
                check_kind(statement.kind, &found)?;
            }
            if found.oid < Oid::FIRST_NORMAL || found.kind == RelationKind::Toast {
                bail!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied: \"{}\" is a system catalog",
                    found.name
                );
            }
            crate::acl::check_owner(self.state(), &found)?;
            crate::relations::check_own(self.state(), &found, "alter temporary tables")?;
            if found.kind == RelationKind::Composite {
                super::enums::lock_type(self.state(), found.row_type, LockMode::AccessExclusive)?;
            }
            Ok(Some(found))
        };
        let mode = lock_mode(&statement.actions);
        let Some(found) = crate::relations::lock_if_found(self.state(), mode, find)? else {
            if statement.if_exists {
                let text = format!("relation \"{}\" does not exist, skipping", statement.name);
                return self.notice(SqlState::SUCCESSFUL_COMPLETION, text);
            }
            self.relation(&statement.name)?;
            return Ok(());
        };
        self.check_not_in_use(&found, "ALTER TABLE")?;
        let retyped = retyped_columns(&found, &statement.actions);
        let before = self.described(found.oid)?;
        let composite = before.kind == RelationKind::Composite;
        let mut retypings = match composite {
            true => Vec::new(),
            false => self.retypings(&before, &statement.actions)?,
        };
        let mut actions: Vec<&A> = statement.actions.iter().collect();
        actions.sort_by_key(|a| pass_of(a));
        for action in actions {
            if matches!(action, A::AlterType { .. }) && !composite {
                let all = std::mem::take(&mut retypings);
                if !all.is_empty() {
                    self.retype(&before, &all)?;
                }
                continue;
            }
            let table = self.described(found.oid)?;
            self.alter_action(&table, action)?;
        }
        // Not before: both sides of a key may be changed.
        self.recheck_foreign_keys(found.oid, &retyped)
    }

    /// The relation as it is described now.
    pub(super) fn described(&self, oid: Oid) -> Result<Arc<Table>> {
        let state = self.state();
        let txn = state.txn()?;
        match state.catalog.table(&txn, oid)? {
            Some(table) => Ok(table),
            None => bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist"),
        }
    }

    fn alter_action(&mut self, table: &Arc<Table>, action: &A) -> Result<()> {
        super::alter_kinds::check_action(table, action)?;
        match action {
            A::AddColumn { column, .. } if table.kind == RelationKind::Composite => {
                self.add_attribute(table, column)
            }
            A::AlterType { column, ty, collation, .. } if table.kind == RelationKind::Composite => {
                self.retype_attribute(table, column, ty, collation.as_deref())
            }
            A::AddColumn { if_not_exists, column } => {
                if *if_not_exists && table.column(&column.name).is_some() {
                    let text = format!(
                        "column \"{}\" of relation \"{}\" already exists, skipping",
                        column.name, table.name
                    );
                    return self.notice(SqlState::DUPLICATE_COLUMN, text);
                }
                let (number, must_rewrite, constraints) = self.add_column(table, column)?;
                self.rows_have_changed(table)?;
                let added = self.described(table.oid)?;
                let at = usize::try_from(number - 1).unwrap_or(0);
                if must_rewrite || added.columns[at].any_default().is_some() {
                    self.check_row_type_unused(table)?;
                }
                if must_rewrite {
                    self.fill_by_rewrite(table, number)?;
                } else {
                    rewrite::ensure_toast(self.state(), table.oid)?;
                }
                self.check_filled(table.oid, number)?;
                constraints.iter().try_for_each(|c| self.add_constraint(table.oid, c, false))
            }
            A::DropColumn { if_exists, column, cascade } => {
                self.alter_drop_column(table, column, *if_exists, *cascade)
            }
            A::SetDefault { column, default } => {
                self.alter_default(table, column, default.as_ref())
            }
            A::SetNotNull { column } => self.set_column_not_null(table, column),
            A::DropNotNull { column } => {
                let found = column_of(table, column)?;
                if found.identity.is_some() {
                    bail!(
                        SYNTAX_ERROR,
                        "column \"{column}\" of relation \"{}\" is an identity column",
                        table.name
                    );
                }
                self.check_may_be_null(table, found.number)?;
                self.set_attribute(table, found.number, "attnotnull", Datum::Bool(false))
            }
            A::SetStatistics { column, target } => self.set_statistics(table, column, *target),
            A::SetStorage { column, storage } => {
                let found = column_of(table, column)?;
                let number = found.number;
                let letter = super::table::storage_letter(storage)?;
                super::table::check_storage(letter, found.ty.oid)?;
                self.set_attribute(table, number, "attstorage", Datum::Char(letter))?;
                rewrite::ensure_toast(self.state(), table.oid)
            }
            A::SetCompression { column, compression } => {
                let found = column_of(table, column)?;
                let letter = super::table::compression_letter(compression, found.ty.oid)?;
                self.set_attribute(table, found.number, "attcompression", Datum::Char(letter))
            }
            A::SetColumnOptions { column, options } => {
                self.column_options(table, column, Some(options), &[])
            }
            A::ResetColumnOptions { column, options } => {
                self.column_options(table, column, None, options)
            }
            A::AlterConstraint { name, timing, inherit, enforced } => {
                self.alter_constraint(table, name, *timing, *inherit)?;
                match enforced {
                    Some(enforced) => self.alter_enforced(table, name, *enforced),
                    None => Ok(()),
                }
            }
            A::ClusterOn(index) => self.mark_clustered(table, Some(index)),
            A::SetWithoutCluster => self.mark_clustered(table, None),
            A::AddConstraint(constraint) => self.add_constraint(table.oid, constraint, false),
            A::DropConstraint { if_exists, name, cascade } => {
                self.alter_drop_constraint(table, name, *if_exists, *cascade)
            }
            A::ValidateConstraint(name) => self.validate_constraint(table, name),
            A::SetOptions(options) => self.alter_options(table, options),
            A::ResetOptions(options) => {
                self.reset_options(table, &super::storage_options::reset_names(options)?)
            }
            A::OwnerTo(role) => self.change_owner(table, role),
            A::SetLogged(logged) => self.set_logged(table, *logged),
            A::AddIdentity { column, always, options } => {
                self.add_identity(table, column, *always, options)
            }
            A::DropIdentity { column, if_exists } => self.drop_identity(table, column, *if_exists),
            A::SetIdentity { column, always, options } => {
                self.set_identity(table, column, *always, options)
            }
            A::SetExpression { column, expression } => {
                self.set_expression(table, column, expression)
            }
            A::DropExpression { column, if_exists } => {
                let found = column_of(table, column)?.clone();
                if !found.is_generated() {
                    let text = not_generated(table, column);
                    if *if_exists {
                        let text = format!("{text}, skipping");
                        return self.notice(SqlState::SUCCESSFUL_COMPLETION, text);
                    }
                    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "{text}");
                }
                if found.is_virtual() {
                    let what = "ALTER TABLE / DROP EXPRESSION is not supported for virtual generated columns";
                    return Err(virtual_columns::refused(what, table, column));
                }
                relation::set_default(self.state(), table.oid, found.number, None)?;
                relation::update_attribute(self.state(), table.oid, found.number, |row| {
                    row.set("attgenerated", Datum::Char(0));
                    row.set("atthasdef", Datum::Bool(false));
                })
            }
            A::EnableDisable { enable, what } => match triggers::switch(*enable, what) {
                Some((letter, which)) => self.switch_triggers(table, letter, which),
                None => Err(base::Error::unsupported("ALTER TABLE ENABLE or DISABLE")),
            },
            A::SetTablespace(name) => super::check_tablespace(Some(name)),
            A::SetAccessMethod(name) if name == "heap" => Ok(()),
            A::SetAccessMethod(name) => {
                bail!(UNDEFINED_OBJECT, "access method \"{name}\" does not exist")
            }
            A::SetWithoutOids => Ok(()),
            A::ReplicaIdentity(what) => {
                let letter = match what.as_str() {
                    "full" => b'f',
                    "nothing" => b'n',
                    _ => b'd',
                };
                super::replica::set_identity(self.state(), table.oid, letter, Oid::INVALID)
            }
            A::ReplicaIdentityUsing(index) => {
                let index = super::replica::identity_index(self.state(), table, index)?;
                super::replica::set_identity(self.state(), table.oid, b'i', index)
            }
            other => Err(base::Error::unsupported(format!("ALTER TABLE {}", action_name(other)))),
        }
    }

    pub(super) fn set_attribute(
        &mut self,
        table: &Table,
        number: i32,
        name: &str,
        value: Datum,
    ) -> Result<()> {
        relation::update_attribute(self.state(), table.oid, number, |row| row.set(name, value))
    }

    /// A new NOT NULL column that is NULL in a row that is there.
    fn check_filled(&mut self, oid: Oid, number: i32) -> Result<()> {
        let table = self.described(oid)?;
        let column = &table.columns[usize::try_from(number - 1).unwrap_or(0)];
        if column.not_null && column.missing.is_none() {
            self.verify_not_null(&table, number)?;
        }
        Ok(())
    }

    /// A new column whose default differs from row to row.
    fn fill_by_rewrite(&mut self, before: &Arc<Table>, number: i32) -> Result<()> {
        let after = self.described(before.oid)?;
        let at = usize::try_from(number - 1).unwrap_or(0);
        let column = after.columns[at].clone();
        let default = analyse::column_default(&column);
        let code = match (&default, column.identity_sequence) {
            (Some(default), _) => crate::exec::modify::compile_stored_of(default, Some(&after))?,
            (None, Some(sequence)) => {
                expr::code::compile(&super::table::nextval(sequence, column.ty))?
            }
            (None, None) => return Ok(()),
        };
        rewrite::rewrite(self.session, before, &mut |session, mut row| {
            row.push(Datum::Null);
            row[at] = session.evaluate_over(&code, &row)?;
            Ok(row)
        })
    }

    fn alter_drop_column(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        if is_system_column(column) {
            bail!(FEATURE_NOT_SUPPORTED, "cannot drop system column \"{column}\"");
        }
        let Some(found) = table.column(column) else {
            let text = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
            if if_exists {
                return self.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{text}, skipping"));
            }
            bail!(UNDEFINED_COLUMN, "{text}");
        };
        let object = Object::column(table.oid, found.number);
        self.drop_unused(&[object], cascade)
    }

    fn alter_default(
        &mut self,
        table: &Arc<Table>,
        column: &str,
        default: Option<&crate::parse::ast::Expr>,
    ) -> Result<()> {
        let found = column_of(table, column)?.clone();
        if found.identity.is_some() {
            let text =
                format!("column \"{column}\" of relation \"{}\" is an identity column", table.name);
            let mut e = SqlError::new(SqlState::SYNTAX_ERROR, text);
            if default.is_none() {
                e = e.hint("Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.");
            }
            return Err(e.into());
        }
        if found.is_generated() {
            let word = if default.is_some() { "SET" } else { "DROP" };
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("column \"{column}\" of relation \"{}\" is a generated column", table.name),
            )
            .hint(format!("Use ALTER TABLE ... ALTER COLUMN ... {word} EXPRESSION instead."))
            .into());
        }
        let analysed = match default {
            None => None,
            Some(expr) => Some(analyse::analyse_default(
                expr,
                column,
                found.declared(),
                &self.source,
                self.state(),
                self.session.env().as_ref(),
            )?),
        };
        let analysed = analysed.filter(|e| !relation::is_no_default(e));
        relation::set_default(self.state(), table.oid, found.number, analysed.as_ref())?;
        self.set_attribute(table, found.number, "atthasdef", Datum::Bool(analysed.is_some()))
    }

    pub(super) fn set_stored<T: serde::Serialize + ?Sized>(
        &self,
        catalog: &'static str,
        key: &'static str,
        oid: Oid,
        column: &'static str,
        expr: &T,
    ) -> Result<()> {
        let txn = self.state().txn()?;
        let rows = self.state().catalog.rows(&txn);
        for mut row in rows.find(catalog, &[(key, Datum::Oid(oid))])? {
            row.set(column, Datum::text(stored::to_text(expr)?));
            rows.update(&row)?;
        }
        Ok(())
    }

    /// Views and rules that use the column would not fit it any more. Of those, and of the columns that are generated from it, what came
    /// first is told of: if that is a column it is left to who asks for those.
    pub(super) fn refuse_dependent_views(&self, table: &Table, column: &Column) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rewrite = engine::catalog::defs::by_name("pg_rewrite").oid;
        let (class, default) = ("pg_class", "pg_attrdef");
        let of = |name| engine::catalog::defs::by_name(name).oid;
        let key = [("refclassid", Datum::Oid(of(class))), ("refobjid", Datum::Oid(table.oid))];
        for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
            if row.i32("refobjsubid") != column.number {
                continue;
            }
            if row.oid("classid") == of(default) {
                let generated =
                    super::drop::generated_column(state, Object::of(default, row.oid("objid")))?;
                if generated.is_some_and(|g| g.sub != column.number) {
                    break;
                }
            }
            if row.oid("classid") == rewrite {
                let object = Object { class: rewrite, oid: row.oid("objid"), sub: 0 };
                let what = super::drop::describe(state, object)?;
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "cannot alter type of a column used by a view or rule",
                )
                .detail(format!("{what} depends on column \"{}\"", column.name))
                .into());
            }
        }
        Ok(())
    }

    fn alter_drop_constraint(
        &mut self,
        table: &Arc<Table>,
        name: &str,
        if_exists: bool,
        cascade: bool,
    ) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(name))];
        let found = state.catalog.rows(&txn).find("pg_constraint", &key)?;
        let Some(row) = found.first() else {
            let text =
                format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name);
            if if_exists {
                drop(txn);
                return self.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{text}, skipping"));
            }
            bail!(UNDEFINED_OBJECT, "{text}");
        };
        let object = Object::of("pg_constraint", row.oid("oid"));
        if row.char("contype") == b'n' {
            for number in row.ints("conkey") {
                self.check_may_be_null(table, number)?;
                let column = &table.columns[usize::try_from(number - 1).unwrap_or(0)];
                if column.identity.is_some() {
                    bail!(
                        OBJECT_NOT_IN_PREREQUISITE_STATE,
                        "column \"{}\" of relation \"{}\" is an identity column",
                        column.name,
                        table.name
                    );
                }
            }
        }
        if let Some(key) = table.foreign_keys.iter().find(|k| k.name == name)
            && key.referenced_table != table.oid
        {
            crate::relations::lock(state, key.referenced_table, LockMode::AccessExclusive)?;
            self.check_not_in_use(&*self.described(key.referenced_table)?, "ALTER TABLE")?;
        }
        drop(txn);
        self.drop_unused(&[object], cascade)
    }

    fn validate_constraint(&mut self, table: &Arc<Table>, name: &str) -> Result<()> {
        let Some(found) = self.constraint_row(table, name)? else {
            bail!(
                UNDEFINED_OBJECT,
                "constraint \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        if !matches!(found.char("contype"), b'c' | b'f' | b'n') {
            let text =
                format!("cannot validate constraint \"{name}\" of relation \"{}\"", table.name);
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .detail("This operation is not supported for this type of constraint.")
                .into());
        }
        if !found.bool("conenforced") {
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE, "cannot validate NOT ENFORCED constraint");
        }
        if found.bool("convalidated") {
            return Ok(());
        }
        if let Some(check) = table.checks.iter().find(|c| c.name == name) {
            self.verify_check(table, name, &check.expr)?;
        } else if let Some(key) = table.foreign_keys.iter().find(|k| k.name == name) {
            let referenced = self.described(key.referenced_table)?;
            self.verify_foreign_key(
                table,
                &referenced,
                name,
                &key.columns,
                &key.referenced_columns,
                key.match_full,
            )?;
        } else {
            found.ints("conkey").into_iter().try_for_each(|n| self.verify_not_null(table, n))?;
        }
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(name))];
        for mut row in rows.find("pg_constraint", &key)? {
            row.set("convalidated", Datum::Bool(true));
            rows.update(&row)?;
        }
        state.catalog.changed(table.oid);
        Ok(())
    }

    fn alter_options(
        &mut self,
        table: &Arc<Table>,
        options: &[crate::parse::utility::UtilityOption],
    ) -> Result<()> {
        if table.kind == RelationKind::Index {
            let new = super::storage_options::index_options(options)?;
            return self.merge_options(table.oid, &table.options, &new);
        }
        if table.kind == RelationKind::View {
            let new = super::storage_options::view_options(options)?;
            if new.contains_key("check_option") {
                let query = crate::updatable::view_query(self.state(), table)?;
                super::view::may_check(self.state(), &query)?;
            }
            return self.merge_options(table.oid, &table.options, &new);
        }
        let (own, toast) = super::storage_options::table_options(options)?;
        if !own.is_empty() {
            self.merge_options(table.oid, &table.options, &own)?;
        }
        if !toast.is_empty() && table.toast.is_valid() {
            let described = self.described(table.toast)?;
            self.merge_options(table.toast, &described.options, &toast)?;
        }
        Ok(())
    }

    fn merge_options(
        &mut self,
        oid: Oid,
        old: &RelationOptions,
        new: &RelationOptions,
    ) -> Result<()> {
        let mut merged = old.clone();
        merged.extend(new.iter().map(|(n, v)| (n.clone(), v.clone())));
        self.write_options(oid, &merged)
    }

    fn write_options(&mut self, oid: Oid, options: &RelationOptions) -> Result<()> {
        let value = options_array(options);
        relation::update_class(self.state(), oid, |row| row.set("reloptions", value))?;
        self.state().relations.borrow_mut().remove(&oid);
        // An index is described, and opened, with its table.
        if let Some(table) = self.table_of_index(oid)? {
            self.state().catalog.changed(table);
            self.state().relations.borrow_mut().remove(&table);
        }
        Ok(())
    }

    fn reset_options(&mut self, table: &Arc<Table>, names: &[String]) -> Result<()> {
        let own: Vec<&String> = names.iter().filter(|n| !n.starts_with("toast.")).collect();
        let mut left = table.options.clone();
        left.retain(|n| !own.iter().any(|o| *o == n));
        self.write_options(table.oid, &left)?;
        if table.toast.is_valid() {
            let described = self.described(table.toast)?;
            let mut left = described.options.clone();
            left.retain(|n| !names.contains(&format!("toast.{n}")));
            self.write_options(table.toast, &left)?;
        }
        Ok(())
    }

    fn set_logged(&mut self, table: &Arc<Table>, logged: bool) -> Result<()> {
        let (wanted, letter) = if logged {
            (RelationPersistence::Permanent, b'p')
        } else {
            (RelationPersistence::Unlogged, b'u')
        };
        if table.persistence == wanted {
            return Ok(());
        }
        if table.persistence == RelationPersistence::Temporary {
            bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change logged status of table \"{}\" because it is temporary",
                table.name
            );
        }
        if table.kind == RelationKind::Sequence {
            return super::sequence::set_persistence(self.state(), table, wanted);
        }
        self.check_keys_stay(table, logged)?;
        let letter = Datum::Char(letter);
        for oid in table.indexes.iter().map(|i| i.oid).chain([table.oid]) {
            let letter = letter.clone();
            crate::relations::lock(self.state(), oid, LockMode::AccessExclusive)?;
            relation::update_class(self.state(), oid, |row| row.set("relpersistence", letter))?;
        }
        // A crash would have the numbers of a logged table given out again.
        super::sequence::set_persistence_of_owned(self.state(), table.oid, wanted)?;
        self.rewrite_as_is(table)
    }

    /// What a crash leaves refers to nothing that a crash empties.
    fn check_keys_stay(&self, table: &Table, logged: bool) -> Result<()> {
        let others: Vec<Oid> = match logged {
            true => table.foreign_keys.iter().map(|key| key.referenced_table).collect(),
            false => table.referenced_by.iter().map(|key| key.table).collect(),
        };
        for other in others.into_iter().filter(|other| *other != table.oid) {
            crate::relations::lock(self.state(), other, LockMode::AccessShare)?;
            let other = self.described(other)?;
            if (other.persistence == RelationPersistence::Permanent) == logged {
                continue;
            }
            let (to_be, is) = if logged { ("logged", "unlogged") } else { ("unlogged", "logged") };
            bail!(
                INVALID_TABLE_DEFINITION,
                "could not change table \"{}\" to {to_be} because it references {is} table \"{}\"",
                table.name,
                other.name
            );
        }
        Ok(())
    }

    fn rewrite_as_is(&mut self, before: &Arc<Table>) -> Result<()> {
        rewrite::rewrite(self.session, before, &mut |_, row| Ok(row))
    }
}

/// The columns that ALTER COLUMN gives another type or expression.
fn retyped_columns(table: &Table, actions: &[A]) -> Vec<i32> {
    let changed = |action: &A| match action {
        A::AlterType { column, .. } | A::SetExpression { column, .. } => {
            table.column(column).map(|c| c.number)
        }
        _ => None,
    };
    actions.iter().filter_map(changed).collect()
}

pub(super) fn not_generated(table: &Table, column: &str) -> String {
    format!("column \"{column}\" of relation \"{}\" is not a generated column", table.name)
}

/// Is it the name of a column that every table has?
pub(super) fn is_system_column(name: &str) -> bool {
    matches!(name, "ctid" | "xmin" | "cmin" | "xmax" | "cmax" | "tableoid")
}

pub(crate) fn column_of<'a>(table: &'a Table, name: &str) -> Result<&'a Column> {
    match table.column(name) {
        Some(column) => Ok(column),
        None if is_system_column(name) => {
            bail!(FEATURE_NOT_SUPPORTED, "cannot alter system column \"{name}\"")
        }
        None => bail!(
            UNDEFINED_COLUMN,
            "column \"{name}\" of relation \"{}\" does not exist",
            table.name
        ),
    }
}

/// A composite type is altered as the type that it is.
///
/// # Errors
/// `42809`
pub(super) fn refuse_composite(table: &Table) -> Result<()> {
    if table.kind != RelationKind::Composite {
        return Ok(());
    }
    let text = format!("\"{}\" is a composite type", table.name);
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text).hint("Use ALTER TYPE instead.").into())
}

pub(super) fn check_kind(wanted: ObjectKind, table: &Table) -> Result<()> {
    let fits = match wanted {
        ObjectKind::Table => {
            refuse_composite(table)?;
            table.kind != RelationKind::Index
        }
        ObjectKind::Type if table.kind != RelationKind::Composite => {
            bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a composite type", table.name)
        }
        ObjectKind::Index => table.kind == RelationKind::Index,
        ObjectKind::View => table.kind == RelationKind::View,
        ObjectKind::MaterializedView => table.kind == RelationKind::MaterializedView,
        ObjectKind::Sequence => table.kind == RelationKind::Sequence,
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let article = if wanted == ObjectKind::Index { "an" } else { "a" };
    bail!(WRONG_OBJECT_TYPE, "\"{}\" is not {article} {}", table.name, wanted.noun())
}

fn action_name(action: &A) -> &'static str {
    match action {
        A::SetTablespace(_) => "SET TABLESPACE",
        A::SetAccessMethod(_) => "SET ACCESS METHOD",
        A::ClusterOn(_) => "CLUSTER ON",
        A::Inherit(_) | A::NoInherit(_) => "INHERIT",
        A::AttachPartition { .. } => "ATTACH PARTITION",
        A::DetachPartition { .. } => "DETACH PARTITION",
        A::AlterConstraint { .. } => "ALTER CONSTRAINT",
        _ => "action",
    }
}
