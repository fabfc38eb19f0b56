//! FOREIGN KEY: what it may refer to, and that every row has its partner.

use super::constraint::{constraint_row, validity};
use super::depend::{self, Kind, Object};
use super::{Ddl, new_oid};
use crate::parse::utility::{References, TableConstraint};
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{Index, ReferentialAction, RelationKind, Table};
use engine::catalog::rows::{int2_array, oid_array};
use std::sync::Arc;
use txn::LockMode;
use types::Datum;

impl Ddl<'_> {
    pub(super) fn add_foreign_key(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        columns: &[String],
        references: &References,
        fresh: bool,
    ) -> Result<()> {
        let state = self.state();
        let referenced = crate::relations::lock_named(state, LockMode::ShareRowExclusive, || {
            let found = self.relation(&references.table)?;
            crate::relations::check_opens(&found)?;
            if found.kind != RelationKind::Table {
                bail!(WRONG_OBJECT_TYPE, "referenced relation \"{}\" is not a table", found.name);
            }
            super::refuse_catalog(&found)?;
            check_persistence(table, &found)?;
            crate::acl::check_references(
                state,
                &found,
                &referenced_key(&found, &references.columns)?.0,
            )?;
            Ok(found)
        })?;
        let from = foreign_columns(table, columns)?;
        if from.iter().any(|c| super::virtual_columns::is_asked(table, *c, None)) {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "foreign key constraints on virtual generated columns are not supported"
            );
        }
        check_actions(table, &from, references)?;
        let (to, index) = referenced_key(&referenced, &references.columns)?;
        if from.len() != to.len() {
            bail!(
                INVALID_FOREIGN_KEY,
                "number of referencing and referenced columns for foreign key disagree"
            );
        }
        let mut operators = Vec::new();
        for (f, t) in from.iter().zip(&to) {
            operators.push(key_operator(table, *f, &referenced, *t, c.name.as_deref())?);
        }
        let set_columns = columns_set_on_delete(table, &from, references)?;
        let name = match &c.name {
            Some(name) => name.clone(),
            None => {
                let part = columns.join("_");
                super::table::choose_name(state, &table.name, &part, "fkey", table.namespace)?
            }
        };
        let oid = new_oid(state, "pg_constraint")?;
        let timing = validity(c.timing, fresh);
        let row = constraint_row(table, oid, &name, b'f', timing)
            .oid("conindid", index.oid)
            .oid("confrelid", referenced.oid)
            .char("confupdtype", action_letter(references.on_update))
            .char("confdeltype", action_letter(references.on_delete))
            .char("confmatchtype", if references.match_full { b'f' } else { b's' })
            .set("conkey", int2_array(&from))
            .set("confdelsetcols", set_columns)
            .set("confkey", int2_array(&to))
            .set("conpfeqop", oid_array(&operators))
            .set("conppeqop", oid_array(&operators))
            .set("conffeqop", oid_array(&operators));
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        let object = Object::of("pg_constraint", oid);
        for number in &from {
            depend::record(state, object, Object::column(table.oid, *number), Kind::Auto)?;
        }
        for number in &to {
            depend::record(state, object, Object::column(referenced.oid, *number), Kind::Normal)?;
        }
        depend::record(state, object, Object::relation(index.oid), Kind::Normal)?;
        let key = super::triggers::Key {
            constraint: oid,
            table: table.oid,
            referenced: referenced.oid,
            index: index.oid,
            on_delete: references.on_delete,
            on_update: references.on_update,
            timing: (c.timing.deferrable, c.timing.initially_deferred),
        };
        if !c.timing.not_enforced {
            super::triggers::of_foreign_key(state, &key)?;
        }
        state.catalog.changed_alone(table.oid);
        state.catalog.changed_alone(referenced.oid);
        drop(txn);
        if !fresh && !c.timing.not_valid {
            self.verify_foreign_key(table, &referenced, &name, &from, &to, references.match_full)?;
        }
        Ok(())
    }

    /// Looks for a row without a partner, by one join.
    pub(super) fn verify_foreign_key(
        &mut self,
        table: &Arc<Table>,
        referenced: &Arc<Table>,
        name: &str,
        from: &[i32],
        to: &[i32],
        match_full: bool,
    ) -> Result<()> {
        let column = |t: &Table, n: i32| {
            let at = usize::try_from(n - 1).unwrap_or(0);
            crate::system::names::quote_identifier(&t.columns[at].name)
        };
        let on: Vec<String> = from
            .iter()
            .zip(to)
            .map(|(f, t)| format!("pk.{} = fk.{}", column(referenced, *t), column(table, *f)))
            .collect();
        let present: Vec<String> =
            from.iter().map(|f| format!("fk.{} IS NOT NULL", column(table, *f))).collect();
        let present = present.join(if match_full { " OR " } else { " AND " });
        let keys: Vec<String> =
            from.iter().map(|f| format!("fk.{}::text", column(table, *f))).collect();
        let state = self.state();
        // Without LIMIT: where all is well no row is found, and looking for the first one is not what is to be quick.
        let sql = format!(
            "SELECT {} FROM ONLY {} fk LEFT JOIN ONLY {} pk ON {} WHERE pk.{} IS NULL AND ({present})",
            keys.join(", "),
            crate::system::names::relation_name(state, table),
            crate::system::names::relation_name(state, referenced),
            on.join(" AND "),
            column(referenced, to[0]),
        );
        let mut found = |row: &[Datum]| Err(without_partner(table, referenced, name, from, row));
        self.session.internal_rows(&sql, &[], &mut found)
    }
}

/// The error for a row whose key, as texts, the referenced table does not have.
fn without_partner(
    table: &Table,
    referenced: &Table,
    name: &str,
    from: &[i32],
    key: &[Datum],
) -> base::Error {
    let text = |d: &Datum| match d {
        Datum::Text(s) => s.to_string(),
        _ => "null".to_owned(),
    };
    let names: Vec<String> = from
        .iter()
        .map(|f| table.columns[usize::try_from(*f - 1).unwrap_or(0)].name.clone())
        .collect();
    let values: Vec<String> = key.iter().map(text).collect();
    let detail = if key.iter().any(|d| matches!(d, Datum::Null)) {
        "MATCH FULL does not allow mixing of null and nonnull key values.".to_owned()
    } else {
        format!(
            "Key ({})=({}) is not present in table \"{}\".",
            names.join(", "),
            values.join(", "),
            referenced.name
        )
    };
    SqlError::new(
        SqlState::FOREIGN_KEY_VIOLATION,
        format!(
            "insert or update on table \"{}\" violates foreign key constraint \"{name}\"",
            table.name
        ),
    )
    .detail(detail)
    .table(&table.namespace_name, &table.name)
    .constraint(name)
    .into()
}

fn check_persistence(table: &Table, referenced: &Table) -> Result<()> {
    use engine::catalog::model::RelationPersistence as P;
    let message = match (table.persistence, referenced.persistence) {
        (P::Permanent, P::Permanent) | (P::Unlogged, P::Permanent | P::Unlogged) => return Ok(()),
        (P::Temporary, P::Temporary) => return Ok(()),
        (P::Permanent, _) => "constraints on permanent tables may reference only permanent tables",
        (P::Unlogged, _) => {
            "constraints on unlogged tables may reference only permanent or unlogged tables"
        }
        (P::Temporary, _) => "constraints on temporary tables may reference only temporary tables",
    };
    bail!(INVALID_TABLE_DEFINITION, "{message}")
}

/// The columns of a foreign key.
fn foreign_columns(table: &Table, names: &[String]) -> Result<Vec<i32>> {
    let number = |name: &String| match table.column(name) {
        Some(column) => Ok(column.number),
        None => bail!(
            UNDEFINED_COLUMN,
            "column \"{name}\" referenced in foreign key constraint does not exist"
        ),
    };
    names.iter().map(number).collect()
}

/// The columns that ON DELETE SET NULL or SET DEFAULT names, as they are kept; NULL: it names none, and sets all.
fn columns_set_on_delete(table: &Table, from: &[i32], references: &References) -> Result<Datum> {
    let mut numbers = Vec::new();
    let named = foreign_columns(table, &references.on_delete_columns)?;
    for (name, number) in references.on_delete_columns.iter().zip(named) {
        if !from.contains(&number) {
            bail!(
                INVALID_COLUMN_REFERENCE,
                "column \"{name}\" referenced in ON DELETE SET action must be part of foreign key"
            );
        }
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    Ok(if numbers.is_empty() { Datum::Null } else { int2_array(&numbers) })
}

/// A generated column cannot be set, to whatever.
fn check_actions(table: &Table, from: &[i32], references: &References) -> Result<()> {
    use ReferentialAction as R;
    if !table.columns.iter().any(|c| c.is_generated() && from.contains(&c.number)) {
        return Ok(());
    }
    let wrong = |when: &str| {
        bail!(
            SYNTAX_ERROR,
            "invalid {when} action for foreign key constraint containing generated column"
        )
    };
    if matches!(references.on_update, R::SetNull | R::SetDefault | R::Cascade) {
        return wrong("ON UPDATE");
    }
    if matches!(references.on_delete, R::SetNull | R::SetDefault) {
        return wrong("ON DELETE");
    }
    Ok(())
}

/// The columns that a foreign key refers to, in their order, and the unique index that finds them.
fn referenced_key(table: &Table, names: &[String]) -> Result<(Vec<i32>, Arc<Index>)> {
    if names.is_empty() {
        let Some(index) = table.primary_key() else {
            bail!(
                UNDEFINED_OBJECT,
                "there is no primary key for referenced table \"{}\"",
                table.name
            );
        };
        if !index.immediate {
            bail!(
                OBJECT_NOT_IN_PREREQUISITE_STATE,
                "cannot use a deferrable primary key for referenced table \"{}\"",
                table.name
            );
        }
        let columns = index.columns[..index.key_columns].iter().map(|c| c.column).collect();
        return Ok((columns, Arc::clone(index)));
    }
    let numbers: Vec<i32> = names
        .iter()
        .map(|name| match table.column(name) {
            Some(column) => Ok(column.number),
            None => bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" referenced in foreign key constraint does not exist"
            ),
        })
        .collect::<Result<_>>()?;
    if (1..numbers.len()).any(|n| numbers[..n].contains(&numbers[n])) {
        bail!(
            INVALID_FOREIGN_KEY,
            "foreign key referenced-columns list must not contain duplicates"
        );
    }
    let fits = |index: &&Arc<Index>| {
        let keys: Vec<i32> = index.columns[..index.key_columns].iter().map(|c| c.column).collect();
        index.unique
            && index.valid
            && index.predicate.is_none()
            && keys.len() == numbers.len()
            && numbers.iter().all(|n| keys.contains(n))
    };
    let found = table.indexes.iter().find(|i| i.immediate && fits(i));
    match found.or_else(|| table.indexes.iter().find(fits)) {
        Some(index) if !index.immediate => bail!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot use a deferrable unique constraint for referenced table \"{}\"",
            table.name
        ),
        Some(index) => Ok((numbers, Arc::clone(index))),
        None => bail!(
            INVALID_FOREIGN_KEY,
            "there is no unique constraint matching given keys for referenced table \"{}\"",
            table.name
        ),
    }
}

/// The `=` operator between a referenced and a referencing column.
pub(super) fn key_operator(
    table: &Table,
    from: i32,
    referenced: &Table,
    to: i32,
    name: Option<&str>,
) -> Result<Oid> {
    let column = |t: &Table, n: i32| t.columns[usize::try_from(n - 1).unwrap_or(0)].clone();
    let (f, t) = (column(table, from), column(referenced, to));
    // Different enums can't be compared.
    let (fk, pk) = if f.ty.oid == t.ty.oid && types::enums::is_enum(f.ty.oid) {
        (types::oids::ANYENUM, types::oids::ANYENUM)
    } else if types::row_types::is_row(f.ty.oid) && types::row_types::is_row(t.ty.oid) {
        (types::oids::RECORD, types::oids::RECORD)
    } else {
        (plain(f.ty.oid), plain(t.ty.oid))
    };
    let operators = types::registry::operators_by_name("=");
    let found = operators
        .iter()
        .find(|o| o.left == pk && o.right == fk)
        .or_else(|| operators.iter().find(|o| o.left == pk && o.right == pk && implicitly(fk, pk)));
    match found {
        Some(operator) => Ok(operator.oid),
        None => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "foreign key constraint \"{}\" cannot be implemented",
                name.unwrap_or(&format!("{}_{}_fkey", table.name, f.name))
            ),
        )
        .detail(format!(
            "Key columns \"{}\" of the referencing table and \"{}\" of the referenced table are of incompatible types: {} and {}.",
            f.name,
            t.name,
            types::format_type(f.ty.oid, -1),
            types::format_type(t.ty.oid, -1)
        ))
        .into()),
    }
}

fn plain(ty: Oid) -> Oid {
    match ty {
        types::oids::VARCHAR => types::oids::TEXT,
        types::oids::CIDR => types::oids::INET,
        _ => ty,
    }
}

fn implicitly(from: Oid, to: Oid) -> bool {
    from == to
        || types::registry::cast(from, to)
            .is_some_and(|c| c.context == types::CastContext::Implicit)
}

fn action_letter(action: ReferentialAction) -> u8 {
    match action {
        ReferentialAction::NoAction => b'a',
        ReferentialAction::Restrict => b'r',
        ReferentialAction::Cascade => b'c',
        ReferentialAction::SetNull => b'n',
        ReferentialAction::SetDefault => b'd',
    }
}
