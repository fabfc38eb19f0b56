//! CREATE TABLE, and columns that come and go.

use super::depend::{self, Object};
use super::like::Pattern;
use super::not_null::{self, Declared, NotNull};
use super::relation::{NewColumn, NewRelation};
use super::sequence::Home;
use super::{Ddl, relation, virtual_columns};
use crate::analyse;
use crate::parse::ast::TypeName;
use crate::parse::utility::{
    ColumnConstraintKind, ColumnDef, CreateTable, OnCommit, SequenceOption, TableConstraint,
    TableConstraintKind, TableElement,
};
use crate::session::SessionState;
use crate::session::state::OnCommitAction;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::model::{Generation, Identity, RelationKind, RelationPersistence, Table};
use expr::tree::CallForm;
use expr::{Expr, TypeRef};
use std::sync::Arc;
use txn::LockMode;
use types::{Datum, oids};

/// A sequence to be owned by the column of that number.
pub(super) struct Owned {
    pub sequence: Oid,
    pub column: i32,
    pub identity: bool,
}

/// What the elements of CREATE TABLE come to.
#[derive(Default)]
pub(super) struct Elements {
    pub columns: Vec<NewColumn>,
    pub constraints: Vec<TableConstraint>,
    /// What is said of NOT NULL, and the columns that are it of themselves.
    pub not_nulls: Vec<Declared>,
    pub implied: Vec<String>,
    pub owned: Vec<Owned>,
    /// LIKE
    patterns: Vec<Pattern>,
    /// Defaults and generation expressions, analysed when all columns are known.
    pub defaults: Vec<(usize, crate::parse::ast::Expr, Option<Generation>)>,
}

/// The integer type behind `serial` and its like.
fn serial_type(ty: &TypeName) -> Option<Oid> {
    if ty.array_dims > 0 || ty.names.len() != 1 {
        return None;
    }
    Some(match ty.names[0].as_str() {
        "serial" | "serial4" => oids::INT4,
        "bigserial" | "serial8" => oids::INT8,
        "smallserial" | "serial2" => oids::INT2,
        _ => return None,
    })
}

/// `{table}_{column}_{label}` cut to a name's length, with a number if it is taken: also by somebody who has not committed yet, whom
/// making a relation of that name would wait for, to fail.
///
/// # Errors
/// I/O.
pub fn choose_name(
    state: &SessionState,
    table: &str,
    column: &str,
    label: &str,
    namespace: Oid,
) -> Result<String> {
    let txn = state.txn()?;
    let taken = |name: &str| -> Result<bool> {
        let key = [("relname", Datum::text(name)), ("relnamespace", Datum::Oid(namespace))];
        Ok(state.catalog.rows(&txn).is_taken("pg_class", &key)?
            || super::constraint::name_taken(state, namespace, name)?)
    };
    for n in 0.. {
        let label = if n == 0 { label.to_owned() } else { format!("{label}{n}") };
        let name = make_object_name(table, column, &label);
        if !taken(&name)? {
            return Ok(name);
        }
    }
    bail!(PROGRAM_LIMIT_EXCEEDED, "no name is left for relation \"{table}\"")
}

/// Joins the parts, shortening the longer of the first two until a name's 63 bytes hold them.
pub(super) fn make_object_name(table: &str, column: &str, label: &str) -> String {
    let (mut a, mut b) = (table.len(), column.len());
    let overhead = label.len() + 1 + usize::from(!column.is_empty());
    while a + b + overhead > 63 && a + b > 0 {
        if a > b {
            a -= 1;
        } else {
            b -= 1;
        }
    }
    let cut = |s: &str, mut n: usize| {
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        s[..n].to_owned()
    };
    let mut name = cut(table, a);
    if !column.is_empty() {
        name.push('_');
        name.push_str(&cut(column, b));
    }
    name.push('_');
    name.push_str(label);
    name
}

/// `nextval('sequence'::regclass)` as an expression.
pub fn nextval(sequence: Oid, ty: TypeRef) -> Expr {
    let regclass = TypeRef::of(oids::REGCLASS);
    let call = Expr::Call {
        function: 1574,
        args: vec![Expr::Const(expr::Constant { ty: regclass, value: Datum::Oid(sequence) })],
        arg_types: vec![regclass],
        ty: TypeRef::of(oids::INT8),
        operator: 0,
        form: CallForm::Function,
    };
    let cast = match ty.oid {
        oids::INT4 => 480,
        oids::INT2 => 714,
        _ => return call,
    };
    Expr::Call {
        function: cast,
        args: vec![call],
        arg_types: vec![TypeRef::of(oids::INT8)],
        ty,
        operator: 0,
        form: CallForm::ImplicitCast,
    }
}

/// ON COMMIT is refused for a table that others see.
///
/// # Errors
/// `42P16`
pub fn check_on_commit(on_commit: OnCommit, persistence: RelationPersistence) -> Result<()> {
    if on_commit != OnCommit::PreserveRows && persistence != RelationPersistence::Temporary {
        bail!(INVALID_TABLE_DEFINITION, "ON COMMIT can only be used on temporary tables");
    }
    Ok(())
}

impl Ddl<'_> {
    /// CREATE TABLE
    ///
    /// # Errors
    /// `42P07`, `42701`, `42704`, `42P16` and what constraints and defaults meet; I/O.
    pub fn create_table(&mut self, statement: &CreateTable) -> Result<()> {
        if !statement.inherits.is_empty() {
            return Err(base::Error::unsupported("table inheritance"));
        }
        if statement.partition_by.is_some() || statement.partition_of.is_some() {
            return Err(base::Error::unsupported("table partitioning"));
        }
        if let Some(am) = &statement.access_method
            && am != "heap"
        {
            bail!(UNDEFINED_OBJECT, "access method \"{am}\" does not exist");
        }
        let temporary = statement.persistence == RelationPersistence::Temporary;
        let namespace = self.relation_namespace(&statement.name, temporary)?;
        let persistence = if namespace == self.state().temp_schema.get() {
            if statement.persistence == RelationPersistence::Unlogged {
                bail!(
                    INVALID_TABLE_DEFINITION,
                    "only temporary relations may be created in temporary schemas"
                );
            }
            RelationPersistence::Temporary
        } else {
            statement.persistence
        };
        check_on_commit(statement.on_commit, persistence)?;
        let state = self.state();
        let txn = state.txn()?;
        let name = statement.name.name.clone();
        if state.catalog.relation_oid(&txn, namespace, &name)?.is_some() {
            if statement.if_not_exists {
                return self.notice(
                    SqlState::DUPLICATE_TABLE,
                    format!("relation \"{name}\" already exists, skipping"),
                );
            }
            super::check_tablespace(statement.tablespace.as_deref())?;
            bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
        }
        drop(txn);
        super::check_tablespace(statement.tablespace.as_deref())?;
        let owner = self.state().current_user.borrow().oid;
        let home = Home { namespace, persistence, owner };
        let elements = self.elements(&statement.elements, &name, home)?;
        let (options, toast_options) = super::storage_options::table_options(&statement.options)?;
        let new = NewRelation {
            name,
            namespace,
            kind: RelationKind::Table,
            persistence,
            owner,
            columns: elements.columns.clone(),
            options,
            toast_options,
        };
        let oid = relation::create(self.state(), &new)?;
        for owned in &elements.owned {
            self.own_sequence(owned.sequence, oid, owned.column, owned.identity)?;
        }
        self.add_defaults(oid, &elements.defaults)?;
        for pattern in &elements.patterns {
            self.copy_checks(pattern, oid)?;
        }
        // In PostgreSQL's order: names are chosen for keys that no CHECK has, whatever place that was written at.
        let mut constraints: Vec<&TableConstraint> = elements.constraints.iter().collect();
        constraints.sort_by_key(|c| match c.kind {
            TableConstraintKind::Check(_) => 0,
            TableConstraintKind::ForeignKey { .. } => 2,
            _ => 1,
        });
        for constraint in constraints {
            self.add_constraint(oid, constraint, true)?;
        }
        for pattern in &elements.patterns {
            self.copy_indexes(pattern, oid)?;
            self.copy_extended(pattern, oid)?;
        }
        match statement.on_commit {
            OnCommit::PreserveRows => {}
            OnCommit::DeleteRows => {
                self.state().on_commit.borrow_mut().push(OnCommitAction::DeleteRows(oid));
            }
            OnCommit::Drop => self.state().on_commit.borrow_mut().push(OnCommitAction::Drop(oid)),
        }
        Ok(())
    }

    fn elements(&mut self, elements: &[TableElement], table: &str, home: Home) -> Result<Elements> {
        let mut out = Elements::default();
        for element in elements {
            match element {
                TableElement::Column(column) => {
                    self.column(column, table, home, &mut out)?;
                }
                TableElement::Constraint(constraint) => out.constraints.push(constraint.clone()),
                TableElement::Like { table: like, options } => {
                    // It stays what it is until all of it is copied.
                    let found = self.relation_locked(like, LockMode::AccessShare, &|source| {
                        super::like::check_source(source)?;
                        // A type is used, not read.
                        if source.kind == RelationKind::Composite {
                            return Ok(());
                        }
                        let wanted = crate::acl::SELECT;
                        crate::acl::check_table(self.state(), source, wanted, Oid::INVALID)
                    });
                    let source =
                        found.map_err(|e| crate::parse::error_at(&self.source, e, like.loc))?;
                    let pattern = Pattern::new(source, options);
                    self.copy_columns(&pattern, table, home, &mut out)?;
                    out.patterns.push(pattern);
                }
            }
        }
        for i in 0..out.columns.len() {
            if out.columns[..i].iter().any(|c| c.name == out.columns[i].name) {
                bail!(
                    DUPLICATE_COLUMN,
                    "column \"{}\" specified more than once",
                    out.columns[i].name
                );
            }
        }
        for constraint in &out.constraints {
            if let TableConstraintKind::NotNull(column) = &constraint.kind {
                // There is nothing that could be invalid.
                let what = NotNull { not_valid: false, ..constraint.as_not_null() };
                out.not_nulls.push(Declared { column: column.clone(), what, in_column: false });
            }
        }
        not_null::merge(table, &mut out)?;
        Ok(out)
    }

    /// One column of CREATE TABLE or ADD COLUMN.
    fn column(
        &mut self,
        def: &ColumnDef,
        table: &str,
        home: Home,
        out: &mut Elements,
    ) -> Result<()> {
        check_column_name(&def.name)?;
        let number = i32::try_from(out.columns.len() + 1).unwrap_or(i32::MAX);
        let serial = serial_type(&def.ty);
        let ty = match serial {
            Some(oid) => TypeRef::of(oid),
            None => analyse::resolve_type_name(
                &def.ty,
                &self.source,
                self.state(),
                self.session.env().as_ref(),
            )?,
        };
        check_column_type(&def.name, ty.oid)?;
        self.check_declarations(table, def, serial.is_some())?;
        let mut column = NewColumn::plain(&def.name, ty);
        if let Some(storage) = &def.storage {
            let letter = storage_letter(storage)?;
            check_storage(letter, ty.oid)?;
            column.storage = Some(letter);
        }
        if let Some(method) = &def.compression {
            column.compression = compression_letter(method, ty.oid)?;
        }
        if let Some(names) = &def.collation {
            let found = column_collation(names, ty.oid);
            column.collation =
                Some(found.map_err(|e| crate::parse::error_at(&self.source, e, def.loc))?);
        }
        if serial.is_some() {
            let sequence = self.column_sequence(table, &def.name, home, ty.oid, &[])?;
            column.default = Some(nextval(sequence, ty));
            out.implied.push(def.name.clone());
            out.owned.push(Owned { sequence, column: number, identity: false });
        }
        for constraint in &def.constraints {
            let name = &constraint.name;
            let timing = constraint.timing;
            let columns = vec![def.name.clone()];
            let mut add = |kind: TableConstraintKind| {
                let name = name.clone();
                out.constraints.push(TableConstraint { name, kind, timing, loc: constraint.loc });
            };
            match &constraint.kind {
                ColumnConstraintKind::NotNull => {
                    let no_inherit = timing.no_inherit;
                    let what = NotNull { name: name.clone(), no_inherit, not_valid: false };
                    let column = def.name.clone();
                    out.not_nulls.push(Declared { column, what, in_column: true });
                }
                ColumnConstraintKind::Null => {}
                ColumnConstraintKind::Default(expr) => {
                    out.defaults.push((out.columns.len(), expr.clone(), None));
                }
                ColumnConstraintKind::Generated { expr, when } => {
                    if *when == Generation::Virtual {
                        virtual_columns::check_type(&def.name, column.ty.oid)?;
                    }
                    column.generated = Some(*when);
                    out.defaults.push((out.columns.len(), expr.clone(), Some(*when)));
                }
                ColumnConstraintKind::Check(expr) => add(TableConstraintKind::Check(expr.clone())),
                ColumnConstraintKind::Unique(options) => {
                    add(TableConstraintKind::Unique { columns, options: options.clone() });
                }
                ColumnConstraintKind::PrimaryKey(options) => {
                    add(TableConstraintKind::PrimaryKey { columns, options: options.clone() });
                }
                ColumnConstraintKind::References(references) => {
                    add(TableConstraintKind::ForeignKey {
                        columns,
                        references: references.clone(),
                    });
                }
                ColumnConstraintKind::Identity { always, options } => {
                    let sequence = self.identity(table, &mut column, home, options)?;
                    column.identity =
                        Some(if *always { Identity::Always } else { Identity::ByDefault });
                    out.owned.push(Owned { sequence, column: number, identity: true });
                    out.implied.push(def.name.clone());
                }
            }
        }
        out.columns.push(column);
        Ok(())
    }

    /// What is said of a column is not contradictory.
    fn check_declarations(&self, table: &str, def: &ColumnDef, serial: bool) -> Result<()> {
        use ColumnConstraintKind as K;
        let wrong = |loc, what: &str| {
            let message = format!("{what} for column \"{}\" of table \"{table}\"", def.name);
            let e = SqlError::new(SqlState::SYNTAX_ERROR, message);
            Err(crate::parse::error_at(&self.source, e.into(), loc))
        };
        let conflicting = "conflicting NULL/NOT NULL declarations";
        let (mut null, mut not_null) = (false, serial);
        let (mut default, mut identity, mut generated) = (serial, false, false);
        for c in &def.constraints {
            match &c.kind {
                K::Null => null = true,
                K::NotNull | K::PrimaryKey(_) => not_null = true,
                K::Default(_) if default => {
                    return wrong(c.loc, "multiple default values specified");
                }
                K::Default(_) => default = true,
                K::Identity { .. } if identity => {
                    return wrong(c.loc, "multiple identity specifications");
                }
                K::Identity { .. } => (identity, not_null) = (true, true),
                K::Generated { .. } if generated => {
                    return wrong(c.loc, "multiple generation clauses specified");
                }
                K::Generated { .. } => generated = true,
                _ => {}
            }
            if null && not_null {
                return wrong(c.loc, conflicting);
            }
            if default && identity {
                return wrong(c.loc, "both default and identity specified");
            }
            if default && generated {
                return wrong(c.loc, "both default and generation expression specified");
            }
            if identity && generated {
                return wrong(c.loc, "both identity and generation expression specified");
            }
        }
        Ok(())
    }

    fn identity(
        &mut self,
        table: &str,
        column: &mut NewColumn,
        home: Home,
        options: &[SequenceOption],
    ) -> Result<Oid> {
        check_identity_type(column.ty.oid)?;
        self.column_sequence(table, &column.name.clone(), home, column.ty.oid, options)
    }

    /// Defaults and generation expressions of a table that is there by now.
    fn add_defaults(
        &mut self,
        oid: Oid,
        defaults: &[(usize, crate::parse::ast::Expr, Option<Generation>)],
    ) -> Result<()> {
        for (i, expr, generated) in defaults {
            let state = self.state();
            let txn = state.txn()?;
            let Some(table) = state.catalog.table(&txn, oid)? else { return Ok(()) };
            let mut table = (*table).clone();
            for (other, _, generated) in defaults {
                table.columns[*other].generated = *generated;
            }
            let column = &table.columns[*i];
            let env = self.session.env().as_ref();
            let analysed = if generated.is_some() {
                let analysed = analyse::analyse_generated(
                    expr,
                    &column.name,
                    column.declared(),
                    &table,
                    &self.source,
                    state,
                    env,
                )?;
                if column.is_virtual() {
                    virtual_columns::refuse_user_types(&analysed, &self.source, expr.loc)?;
                }
                analysed
            } else {
                let ty = column.declared();
                analyse::analyse_default(expr, &column.name, ty, &self.source, state, env)?
            };
            let generated = *generated;
            if generated.is_none() && relation::is_no_default(&analysed) {
                continue;
            }
            relation::set_default(state, oid, column.number, Some(&analysed))?;
            relation::update_attribute(state, oid, column.number, |row| {
                row.set("atthasdef", Datum::Bool(true));
                if let Some(when) = generated {
                    row.set("attgenerated", Datum::Char(when.letter()));
                }
            })?;
        }
        Ok(())
    }

    /// ALTER TABLE … ADD COLUMN: returns the new column's number, whether rows must be rewritten because its default is not one value for
    /// all of them, and the constraints that are to be added once they are.
    ///
    /// # Errors
    /// `42701`, `42704`; what its default meets; I/O.
    pub fn add_column(
        &mut self,
        table: &Arc<Table>,
        def: &ColumnDef,
    ) -> Result<(i32, bool, Vec<TableConstraint>)> {
        if table.column(&def.name).is_some() {
            bail!(
                DUPLICATE_COLUMN,
                "column \"{}\" of relation \"{}\" already exists",
                def.name,
                table.name
            );
        }
        // Dropped ones, which rows go on having, among them.
        if table.columns.len() >= relation::COLUMNS_MAX {
            bail!(TOO_MANY_COLUMNS, "tables can have at most {} columns", relation::COLUMNS_MAX);
        }
        let mut out = Elements::default();
        self.column(def, &table.name, Home::of(table), &mut out)?;
        if let Some(column) = out.columns.first() {
            self.check_not_within(table, column.ty.oid)?;
        }
        not_null::merge(&table.name, &mut out)?;
        let number = i32::try_from(table.columns.len() + 1).unwrap_or(i32::MAX);
        let column = out.columns.remove(0);
        let mut plain = column.clone();
        plain.not_null = None;
        relation::insert_column(self.state(), table.oid, number, &plain)?;
        let object = Object::column(table.oid, number);
        depend::record_type(self.state(), object, plain.ty.oid)?;
        relation::update_class(self.state(), table.oid, |row| {
            row.set("relnatts", Datum::Int2(i16::try_from(number).unwrap_or(i16::MAX)));
        })?;
        for owned in &out.owned {
            self.own_sequence(owned.sequence, table.oid, number, owned.identity)?;
        }
        let at = usize::try_from(number - 1).unwrap_or(0);
        let defaults: Vec<_> = out
            .defaults
            .iter()
            .map(|(_, expr, generated)| (at, expr.clone(), *generated))
            .collect();
        self.add_defaults(table.oid, &defaults)?;
        let rewrite = self.fill_new_column(table.oid, number, &column)?;
        if let Some(what) = &column.not_null {
            if let Some(name) = &what.name {
                self.refuse_taken_name(table, name)?;
            }
            not_null::set(self.state(), table.oid, number, &column.name, what)?;
        }
        Ok((number, rewrite, out.constraints))
    }

    /// What rows from before have in a new column: its default if that is one value for all.
    fn fill_new_column(&mut self, oid: Oid, number: i32, column: &NewColumn) -> Result<bool> {
        let state = self.state();
        let txn = state.txn()?;
        let Some(table) = state.catalog.table(&txn, oid)? else { return Ok(false) };
        let at = usize::try_from(number - 1).unwrap_or(0);
        // What the domain says of it matters only where there are rows.
        let domain = table.columns[at].declared;
        if types::domains::is_domain(domain) {
            let constraints = state.catalog.domain(&txn, domain)?;
            if constraints.not_null || !constraints.checks.is_empty() {
                return Ok(true);
            }
        }
        let Some(default) = table.columns[at].any_default().cloned() else {
            return Ok(column.identity.is_some());
        };
        if table.columns[at].is_virtual() {
            return Ok(false);
        }
        if table.columns[at].is_generated() || expr::fold::contains_volatile(&default) {
            return Ok(true);
        }
        let code = expr::code::compile(&default)?;
        let params = std::cell::RefCell::new(Vec::new());
        let eval = expr::eval::EvalContext::new(self.session.env().as_ref(), &params);
        let value = code.eval(&[], &eval)?;
        if value.is_null() {
            return Ok(false);
        }
        let ty = types::domains::base_type(column.ty.oid);
        let mut bytes = Vec::new();
        types::encode(ty, &value, &mut bytes)?;
        if bytes.len() > MISSING_BYTES {
            return Ok(true);
        }
        let missing = types::ArrayValue::one_dimension(ty, vec![value]);
        relation::update_attribute(self.state(), oid, number, |row| {
            row.set("atthasmissing", Datum::Bool(true));
            row.set("attmissingval", Datum::Array(Arc::new(missing)));
        })?;
        Ok(false)
    }
}

/// A longer value is no part of a column's row in the catalog, which has to fit a page.
const MISSING_BYTES: usize = 4 << 10;

/// Identity columns are of integers.
///
/// # Errors
/// `22023`
pub(super) fn check_identity_type(ty: Oid) -> Result<()> {
    if !matches!(ty, oids::INT2 | oids::INT4 | oids::INT8) {
        bail!(INVALID_PARAMETER_VALUE, "identity column type must be smallint, integer, or bigint");
    }
    Ok(())
}

fn check_column_name(name: &str) -> Result<()> {
    if super::alter::is_system_column(name) {
        bail!(DUPLICATE_COLUMN, "column name \"{name}\" conflicts with a system column name");
    }
    Ok(())
}

/// A column may be of this type.
///
/// # Errors
/// `42P16`; `0A000` for types that no value of can be read.
pub(super) fn check_column_type(name: &str, ty: Oid) -> Result<()> {
    if types::left_out::is_left_out(ty) {
        return Err(base::Error::unsupported(format!("type {}", types::format_type(ty, -1))));
    }
    let pseudo = types::type_info(ty).is_some_and(|i| i.kind == 'p');
    if pseudo {
        bail!(
            INVALID_TABLE_DEFINITION,
            "column \"{name}\" has pseudo-type {}",
            types::format_type(ty, -1)
        );
    }
    Ok(())
}

/// COLLATE of a column.
///
/// # Errors
/// `42804`, `42704`
pub fn column_collation(names: &[String], ty: Oid) -> Result<Oid> {
    if !types::type_info(ty).is_some_and(|i| i.collation.is_valid()) {
        bail!(
            DATATYPE_MISMATCH,
            "collations are not supported by type {}",
            types::format_type(ty, -1)
        );
    }
    analyse::collation_of(names)
}

/// `STORAGE` words as `attstorage` letters.
///
/// # Errors
/// `22023`
pub fn storage_letter(word: &str) -> Result<u8> {
    Ok(match word.to_ascii_lowercase().as_str() {
        "plain" => b'p',
        "external" => b'e',
        "extended" | "default" => b'x',
        "main" => b'm',
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid storage type \"{word}\""),
    })
}

/// What has a fixed length is stored as it is.
///
/// # Errors
/// `0A000`
pub fn check_storage(letter: u8, ty: Oid) -> Result<()> {
    if letter != b'p' && types::type_info(ty).is_some_and(|i| i.storage == 'p') {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "column data type {} can only have storage PLAIN",
            types::format_type(ty, -1)
        );
    }
    Ok(())
}

/// A method of compression as `attcompression` letter; 0 is the default. It is what the catalog says: all that is compressed is by LZ4.
///
/// # Errors
/// `0A000`, `22023`
pub fn compression_letter(method: &str, ty: Oid) -> Result<u8> {
    if method == "default" {
        return Ok(0);
    }
    if types::type_info(ty).is_some_and(|i| i.storage == 'p') {
        bail!(
            FEATURE_NOT_SUPPORTED,
            "column data type {} does not support compression",
            types::format_type(ty, -1)
        );
    }
    match method {
        "pglz" => Ok(b'p'),
        "lz4" => Ok(b'l'),
        _ => bail!(INVALID_PARAMETER_VALUE, "invalid compression method \"{method}\""),
    }
}

/// Forgets what ANALYZE found in a column.
///
/// # Errors
/// I/O.
pub fn forget_statistics(state: &SessionState, table: Oid, number: i32) -> Result<()> {
    let txn = state.txn()?;
    let key = [
        ("starelid", Datum::Oid(table)),
        ("staattnum", Datum::Int2(i16::try_from(number).unwrap_or(0))),
    ];
    state.catalog.rows(&txn).delete_where("pg_statistic", &key).map(|_| ())
}

/// DROP COLUMN: the column stays in the tuples, NULL from now on.
///
/// # Errors
/// I/O.
pub fn drop_column(state: &SessionState, table: Oid, number: i32) -> Result<()> {
    relation::set_default(state, table, number, None)?;
    relation::update_attribute(state, table, number, |row| {
        row.set("attname", Datum::text(format!("........pg.dropped.{number}........")));
        row.set("attisdropped", Datum::Bool(true));
        // Rows still have values there, and their type may go: one of the same layout stands for it.
        let ty = types::domains::base_type(row.oid("atttypid"));
        row.set("atttypid", Datum::Oid(ty));
        if super::enums::is_ours(ty) {
            let stand_in =
                if types::enums::is_enum_array(ty) { types::oids::BYTEA } else { types::oids::OID };
            row.set("atttypid", Datum::Oid(stand_in));
        }
        row.set("attnotnull", Datum::Bool(false));
        row.set("atthasdef", Datum::Bool(false));
        row.set("attidentity", Datum::Char(0));
        row.set("attgenerated", Datum::Char(0));
        row.set("atthasmissing", Datum::Bool(false));
        row.set("attmissingval", Datum::Null);
        row.set("attacl", Datum::Null);
    })?;
    forget_statistics(state, table, number)?;
    super::drop::forget_dependencies(state, Object::column(table, number))
}
