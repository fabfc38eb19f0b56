//! NOT NULL: a column's flag in `pg_attribute`, and the constraint with a name in `pg_constraint` beside it.
//!
//! # Invariants
//! A table's column has the flag if and only if it has a constraint; both come and go together. The flag says that nobody writes NULL from now
//! on; the constraint, if it is not NOT VALID, that there is none.

use super::depend::{self, Kind, Object};
use super::table::Elements;
use super::{Ddl, new_oid, relation};
use crate::parse::utility::{TableConstraint, TableConstraintKind};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::Table;
use engine::catalog::rows::{NewRow, Row, int2_array};
use std::sync::Arc;
use types::Datum;

/// How a column is to be NOT NULL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NotNull {
    /// The constraint's name; None: one is chosen.
    pub name: Option<String>,
    /// NO INHERIT
    pub no_inherit: bool,
    /// NOT VALID
    pub not_valid: bool,
}

/// A NOT NULL of CREATE TABLE, or of a new column.
pub(super) struct Declared {
    pub column: String,
    pub what: NotNull,
    /// It stands with the column.
    pub in_column: bool,
}

/// The row of a column's constraint.
///
/// # Errors
/// I/O.
pub(super) fn find(state: &SessionState, table: Oid, number: i32) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let rows =
        state.catalog.rows(&txn).find("pg_constraint", &[("conrelid", Datum::Oid(table))])?;
    Ok(rows.into_iter().find(|c| c.char("contype") == b'n' && c.ints("conkey") == [number]))
}

/// Makes the constraint of a column that is NOT NULL, if it is a table's and has none.
///
/// # Errors
/// I/O.
pub(super) fn note(
    state: &SessionState,
    table: Oid,
    number: i32,
    column: &str,
    what: &NotNull,
) -> Result<()> {
    if table < Oid::FIRST_NORMAL {
        return Ok(());
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let class = rows.find("pg_class", &[("oid", Datum::Oid(table))])?;
    let Some(class) = class.first().filter(|c| matches!(c.char("relkind"), b'r' | b'p')) else {
        return Ok(());
    };
    if find(state, table, number)?.is_some() {
        return Ok(());
    }
    let namespace = class.oid("relnamespace");
    let name = match &what.name {
        Some(name) => name.clone(),
        None => {
            let table = class.text("relname");
            super::table::choose_name(state, table, column, "not_null", namespace)?
        }
    };
    let oid = new_oid(state, "pg_constraint")?;
    let row = NewRow::of("pg_constraint")
        .oid("oid", oid)
        .text("conname", &name)
        .oid("connamespace", namespace)
        .char("contype", b'n')
        .bool("conenforced", true)
        .bool("convalidated", !what.not_valid)
        .oid("conrelid", table)
        .char("confupdtype", b' ')
        .char("confdeltype", b' ')
        .char("confmatchtype", b' ')
        .bool("conislocal", true)
        .bool("connoinherit", what.no_inherit)
        .set("conkey", int2_array(&[number]));
    rows.insert(&row)?;
    state.catalog.changed_alone(table);
    let object = Object::of("pg_constraint", oid);
    depend::record(state, object, Object::column(table, number), Kind::Auto)
}

/// Notes those of a new table's columns: names that were given first, so that none is chosen that is given later.
///
/// # Errors
/// I/O.
pub(super) fn note_all(
    state: &SessionState,
    table: Oid,
    columns: &[relation::NewColumn],
) -> Result<()> {
    for named in [true, false] {
        for (number, column) in (1..).zip(columns) {
            if let Some(what) = column.not_null.as_ref().filter(|n| n.name.is_some() == named) {
                note(state, table, number, &column.name, what)?;
            }
        }
    }
    Ok(())
}

/// Removes the constraint of a column that is NOT NULL no more.
///
/// # Errors
/// I/O.
pub(super) fn forget(state: &SessionState, table: Oid, number: i32) -> Result<()> {
    if let Some(row) = find(state, table, number)? {
        super::drop::forget_dependencies(state, Object::of("pg_constraint", row.oid("oid")))?;
        let txn = state.txn()?;
        state.catalog.rows(&txn).delete(&row)?;
    }
    Ok(())
}

/// Makes a column NOT NULL.
///
/// # Errors
/// I/O.
pub(super) fn set(
    state: &SessionState,
    table: Oid,
    number: i32,
    column: &str,
    what: &NotNull,
) -> Result<()> {
    note(state, table, number, column, what)?;
    relation::update_attribute(state, table, number, |row| {
        row.set("attnotnull", Datum::Bool(true));
    })
}

fn change(state: &SessionState, row: &mut Row, column: &str, value: bool) -> Result<()> {
    row.set(column, Datum::Bool(value));
    let txn = state.txn()?;
    state.catalog.rows(&txn).update(row)?;
    state.catalog.changed(row.oid("conrelid"));
    Ok(())
}

fn not_now(text: String) -> SqlError {
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, text)
}

const VALIDATE: &str = "You might need to validate it using ALTER TABLE ... VALIDATE CONSTRAINT.";
const MAKE_INHERITABLE: &str = "You might need to make the existing constraint inheritable using ALTER TABLE ... ALTER CONSTRAINT ... INHERIT.";

fn incompatible(row: &Row, table: &str) -> SqlError {
    let name = row.text("conname");
    not_now(format!("incompatible NOT VALID constraint \"{name}\" on relation \"{table}\""))
        .hint(VALIDATE)
}

fn other_inheritance(state: SqlState, row: &Row, table: &str) -> SqlError {
    let name = row.text("conname");
    SqlError::new(
        state,
        format!(
            "cannot change NO INHERIT status of NOT NULL constraint \"{name}\" on relation \"{table}\""
        ),
    )
}

/// A column that becomes an identity column has no NULLs.
///
/// # Errors
/// `55000`
pub(super) fn check_valid(state: &SessionState, table: &Table, number: i32) -> Result<()> {
    match find(state, table.oid, number)? {
        Some(row) if !row.bool("convalidated") => Err(incompatible(&row, &table.name).into()),
        _ => Ok(()),
    }
}

/// What is said of columns in CREATE TABLE comes together: a column has one constraint, and names are no other constraint's. `implied`:
/// columns that are NOT NULL whatever is said.
///
/// # Errors
/// `42601`, `42703`, `42710`
pub(super) fn merge(table: &str, elements: &mut Elements) -> Result<()> {
    let Elements { columns, not_nulls, implied, constraints, .. } = elements;
    let mut in_column: Vec<&str> = Vec::new();
    for declared in not_nulls.iter() {
        let name = &declared.column;
        let Some(column) = columns.iter_mut().find(|c| c.name == *name) else {
            bail!(UNDEFINED_COLUMN, "column \"{name}\" of relation \"{table}\" does not exist");
        };
        let what = &declared.what;
        let Some(before) = &mut column.not_null else {
            column.not_null = Some(what.clone());
            if declared.in_column {
                in_column.push(name);
            }
            continue;
        };
        if before.no_inherit != what.no_inherit {
            let s = if declared.in_column && in_column.contains(&name.as_str()) { "s" } else { "" };
            bail!(
                SYNTAX_ERROR,
                "conflicting NO INHERIT declaration{s} for not-null constraint{s} on column \"{name}\""
            );
        }
        match (&before.name, &what.name) {
            (Some(first), Some(second)) if first != second => bail!(
                SYNTAX_ERROR,
                "conflicting not-null constraint names \"{first}\" and \"{second}\""
            ),
            (None, _) => before.name.clone_from(&what.name),
            _ => {}
        }
    }
    let keys = constraints.iter().filter_map(|c| match &c.kind {
        TableConstraintKind::PrimaryKey { columns, .. } => Some(columns),
        _ => None,
    });
    for name in keys.flatten().chain(implied.iter()) {
        let Some(column) = columns.iter_mut().find(|c| c.name == *name) else { continue };
        let what = column.not_null.get_or_insert_default();
        if what.no_inherit {
            bail!(
                SYNTAX_ERROR,
                "conflicting NO INHERIT declaration for not-null constraint on column \"{name}\""
            );
        }
    }
    let mut taken: Vec<&str> =
        constraints.iter().filter_map(TableConstraint::name_of_other).collect();
    for column in columns.iter() {
        let Some(name) = column.not_null.as_ref().and_then(|n| n.name.as_deref()) else { continue };
        if taken.contains(&name) {
            bail!(
                DUPLICATE_OBJECT,
                "constraint \"{name}\" for relation \"{table}\" already exists"
            );
        }
        taken.push(name);
    }
    let mut taken: Vec<String> = taken.into_iter().map(str::to_owned).collect();
    for column in columns.iter_mut() {
        let Some(what) = column.not_null.as_mut().filter(|n| n.name.is_none()) else { continue };
        // The name that it would get by itself, unless another constraint is to have that.
        let mut names = (0_u32..).map(|n| {
            let label = if n == 0 { "not_null".to_owned() } else { format!("not_null{n}") };
            super::table::make_object_name(table, &column.name, &label)
        });
        let first = names.next().unwrap_or_default();
        if taken.contains(&first)
            && let Some(name) = names.find(|n| !taken.contains(n))
        {
            taken.push(name.clone());
            what.name = Some(name);
        }
    }
    Ok(())
}

impl TableConstraint {
    /// Its name, if it is another constraint than NOT NULL.
    fn name_of_other(&self) -> Option<&str> {
        let other = !matches!(self.kind, TableConstraintKind::NotNull(_));
        self.name.as_deref().filter(|_| other)
    }

    /// What it says if it is a NOT NULL.
    pub(super) fn as_not_null(&self) -> NotNull {
        NotNull {
            name: self.name.clone(),
            no_inherit: self.timing.no_inherit,
            not_valid: self.timing.not_valid,
        }
    }
}

impl Ddl<'_> {
    /// ALTER TABLE … ADD [CONSTRAINT name] NOT NULL column. One that is there already must be the same.
    pub(super) fn add_not_null(
        &mut self,
        table: &Arc<Table>,
        c: &TableConstraint,
        column: &str,
    ) -> Result<()> {
        let Some(found) = table.column(column) else {
            bail!(
                UNDEFINED_COLUMN,
                "column \"{column}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        let (number, what) = (found.number, c.as_not_null());
        if let Some(row) = find(self.state(), table.oid, number)? {
            if row.bool("connoinherit") != what.no_inherit {
                let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
                let e = other_inheritance(state, &row, &table.name);
                return Err(e.hint(MAKE_INHERITABLE).into());
            }
            if !row.bool("convalidated") && !what.not_valid {
                return Err(incompatible(&row, &table.name).into());
            }
            let name = row.text("conname");
            let Some(other) = what.name.filter(|n| n != name) else { return Ok(()) };
            return Err(not_now(format!(
                "cannot create not-null constraint \"{other}\" on column \"{column}\" of table \"{}\"",
                table.name
            ))
            .detail(format!(
                "A not-null constraint named \"{name}\" already exists for this column."
            ))
            .into());
        }
        if let Some(name) = &what.name {
            self.refuse_taken_name(table, name)?;
        }
        if !what.not_valid {
            self.verify_not_null(table, number)?;
        }
        set(self.state(), table.oid, number, column, &what)
    }

    /// A constraint of a table that is there has a name of its own.
    pub(super) fn refuse_taken_name(&self, table: &Table, name: &str) -> Result<()> {
        let txn = self.state().txn()?;
        let key = [("conrelid", Datum::Oid(table.oid)), ("conname", Datum::text(name))];
        if self.state().catalog.rows(&txn).find("pg_constraint", &key)?.is_empty() {
            return Ok(());
        }
        bail!(
            DUPLICATE_OBJECT,
            "constraint \"{name}\" for relation \"{}\" already exists",
            table.name
        )
    }

    /// ALTER TABLE … ALTER COLUMN … SET NOT NULL: one that is NOT VALID is validated.
    pub(super) fn set_column_not_null(&mut self, table: &Arc<Table>, column: &str) -> Result<()> {
        let number = super::alter::column_of(table, column)?.number;
        let Some(mut row) = find(self.state(), table.oid, number)? else {
            self.verify_not_null(table, number)?;
            return set(self.state(), table.oid, number, column, &NotNull::default());
        };
        if row.bool("connoinherit") {
            let state = SqlState::FEATURE_NOT_SUPPORTED;
            return Err(other_inheritance(state, &row, &table.name).into());
        }
        if row.bool("convalidated") {
            return Ok(());
        }
        self.verify_not_null(table, number)?;
        change(self.state(), &mut row, "convalidated", true)
    }

    /// ALTER TABLE … ALTER CONSTRAINT … [NO] INHERIT
    pub(super) fn set_inheritable(&mut self, mut row: Row, inherit: bool) -> Result<()> {
        change(self.state(), &mut row, "connoinherit", !inherit)
    }

    /// A column of a primary key has a constraint that holds for all rows, here and below.
    pub(super) fn make_key_column(&mut self, table: &Arc<Table>, number: i32) -> Result<()> {
        let at = usize::try_from(number - 1).unwrap_or(0);
        let column = table.columns[at].name.clone();
        let Some(row) = find(self.state(), table.oid, number)? else {
            if !table.columns[at].not_null {
                self.verify_not_null(table, number)?;
                set(self.state(), table.oid, number, &column, &NotNull::default())?;
            }
            return Ok(());
        };
        let (marked, hint) = if row.bool("connoinherit") {
            ("NO INHERIT", MAKE_INHERITABLE)
        } else if row.bool("convalidated") {
            return Ok(());
        } else {
            ("NOT VALID", VALIDATE)
        };
        Err(not_now(format!("cannot create primary key on column \"{column}\""))
            .detail(format!(
                "The constraint \"{}\" on column \"{column}\" of table \"{}\", marked {marked}, is incompatible with a primary key.",
                row.text("conname"),
                table.name
            ))
            .hint(hint)
            .into())
    }

    /// A column may have NULLs from now on, if nothing rests on there being none.
    pub(super) fn check_may_be_null(&self, table: &Table, number: i32) -> Result<()> {
        let at = usize::try_from(number - 1).unwrap_or(0);
        let column = &table.columns[at];
        let key = table.primary_key();
        if key.is_some_and(|k| k.columns[..k.key_columns].iter().any(|c| c.column == number)) {
            bail!(INVALID_TABLE_DEFINITION, "column \"{}\" is in a primary key", column.name);
        }
        if super::replica::identifies(self.state(), table, number)? {
            bail!(
                INVALID_TABLE_DEFINITION,
                "column \"{}\" is in index used as replica identity",
                column.name
            );
        }
        Ok(())
    }
}
