//! CREATE TYPE … AS ENUM, ALTER TYPE, DROP TYPE; what ALTER and DROP do to domains and composite types alike.
//!
//! # Invariants
//! The labels of a type are added under a lock on it, so that two transactions don't give out one place in the order.
//! Whoever makes something that uses a type holds a share lock on it to the end of the transaction
//! ([`lock_used_type`]); DROP TYPE's excludes it.

use super::default_acl::{self, Made};
use super::depend::{self, Kind, Object};
use super::row_types::free_type_name;
use super::{Ddl, composites, new_oid};
use crate::parse::ast::ObjectName;
use crate::parse::utility::{AlterEnum, AlterEnumAction, Drop, ObjectKind, RoleName};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Column, Table};
use engine::catalog::rows::{NewRow, Row};
use expr::Expr;
use txn::{LockMode, LockTag, Wait};
use types::enums::{between, key_of};
use types::{Datum, EnumValue, facts, format_type};

/// The OID of a type's input function and the like.
pub(super) fn function_oid(name: &str) -> Oid {
    facts::procs_by_name(name).first().map_or(Oid::INVALID, |p| p.oid)
}

fn check_label(label: &str) -> Result<()> {
    if label.len() < 64 {
        return Ok(());
    }
    Err(SqlError::new(SqlState::INVALID_NAME, format!("invalid enum label \"{label}\""))
        .detail("Labels must be 63 bytes or less.")
        .into())
}

/// Locks a type to the end of the transaction.
///
/// # Errors
/// `40P01`, `57014`.
pub fn lock_type(state: &SessionState, ty: Oid, mode: LockMode) -> Result<()> {
    let class = Object::of("pg_type", ty).class;
    let tag = LockTag::Object { database: state.database.oid, class, object: ty, sub: 0 };
    state.txn()?.lock(tag, mode, Wait::Block).map(|_| ())
}

/// Keeps a type that is about to be used from being dropped.
///
/// # Errors
/// `42704` when it was dropped meanwhile; I/O.
pub fn lock_used_type(state: &SessionState, ty: Oid) -> Result<()> {
    if let Some(row_type) = types::row_types::row_of(ty) {
        lock_type(state, row_type, LockMode::AccessShare)?;
        return super::row_types::ensure_array(state, ty);
    }
    // An array type goes with its element's.
    let is_array = types::enums::is_enum_array(ty) || types::domains::is_domain_array(ty);
    let element = if is_array { ty.0 - 1 } else { ty.0 };
    lock_type(state, Oid(element), LockMode::AccessShare)?;
    if type_row(state, ty)?.is_none() {
        bail!(UNDEFINED_OBJECT, "type \"{}\" does not exist", format_type(ty, -1));
    }
    Ok(())
}

/// Is it an enum type, a domain, or an array of one?
pub fn is_ours(ty: Oid) -> bool {
    types::enums::OIDS.contains(&ty.0) || types::domains::OIDS.contains(&ty.0)
}

/// Is it an enum type, or an array of one?
fn is_enum(ty: Oid) -> bool {
    types::enums::OIDS.contains(&ty.0)
}

/// OIDs for an enum type and its array type.
fn new_oids(state: &SessionState) -> Result<(Oid, Oid)> {
    loop {
        let (oid, array) = types::enums::type_oids(state.cluster.engine().files.new_oid());
        if type_row(state, oid)?.is_none() && type_row(state, array)?.is_none() {
            return Ok((oid, array));
        }
    }
}

pub(super) fn type_row(state: &SessionState, ty: Oid) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_type", &[("oid", Datum::Oid(ty))])?;
    Ok(rows.into_iter().next())
}

/// Stored expressions of text or of an enum do not fit values of another type.
///
/// # Errors
/// `0A000` when a column becomes an enum, or is one no more, and a stored expression uses it.
pub fn refuse_used_column(table: &Table, column: &Column, new: Oid) -> Result<()> {
    let new = types::domains::base_type(new);
    let changes = new != column.ty.oid && (is_enum(new) || is_enum(column.ty.oid));
    let uses =
        |e: &Expr| e.any(&mut |e| matches!(e, Expr::Var { column: c, .. } if *c == column.number));
    let generated =
        table.columns.iter().filter(|c| c.is_generated()).filter_map(|c| c.default.as_ref());
    let checks = table.checks.iter().map(|c| &c.expr);
    let predicates = table.indexes.iter().filter_map(|i| i.predicate.as_ref());
    let keys = table.indexes.iter().flat_map(|i| i.columns.iter().filter_map(|c| c.expr.as_ref()));
    if changes && generated.chain(checks).chain(predicates).chain(keys).any(|e| uses(e)) {
        let what = "altering the type of a column that an expression uses to or from an enum";
        return Err(Error::unsupported(what));
    }
    Ok(())
}

/// The rows of an enum type and of its array type have this in common.
fn new_row(oid: Oid, name: &str, namespace: Oid, owner: Oid) -> NewRow {
    NewRow::of("pg_type")
        .oid("oid", oid)
        .text("typname", name)
        .oid("typnamespace", namespace)
        .oid("typowner", owner)
        .bool("typisdefined", true)
        .char("typdelim", b',')
        .char("typalign", b'i')
        .int("typtypmod", -1)
}

/// The row of the array type over type `element`, if that is aligned to 4 bytes at most and has no collation.
pub(super) fn array_row(oid: Oid, name: &str, namespace: Oid, owner: Oid, element: Oid) -> NewRow {
    new_row(oid, name, namespace, owner)
        .int("typlen", -1)
        .char("typtype", b'b')
        .char("typcategory", b'A')
        .oid("typsubscript", function_oid("array_subscript_handler"))
        .oid("typelem", element)
        .oid("typinput", function_oid("array_in"))
        .oid("typoutput", function_oid("array_out"))
        .oid("typreceive", function_oid("array_recv"))
        .oid("typsend", function_oid("array_send"))
        .oid("typanalyze", function_oid("array_typanalyze"))
        .char("typstorage", b'x')
}

/// The name of the array type over type `name`: an underscore before it, and a number behind it if there is such a type.
pub(super) fn array_name(state: &SessionState, namespace: Oid, name: &str) -> Result<String> {
    let txn = state.txn()?;
    let mut candidate = types::io::truncate_name(&format!("_{name}")).to_owned();
    for n in 1.. {
        if state.catalog.type_oid(&txn, namespace, &candidate)?.is_none() {
            break;
        }
        candidate = super::table::make_object_name("", name, &n.to_string());
    }
    Ok(candidate)
}

impl Ddl<'_> {
    /// CREATE TYPE … AS ENUM
    ///
    /// # Errors
    /// `42710`, `42602`, `23505`, `3F000`, `42501`; I/O.
    pub fn create_enum(&mut self, name: &ObjectName, labels: &[String]) -> Result<()> {
        let namespace = self.creation_namespace(name, false)?;
        let state = self.state();
        // A temporary schema is emptied of relations when its session ends.
        if namespace == state.temp_schema.get() {
            return Err(Error::unsupported("a temporary enum type"));
        }
        free_type_name(state, namespace, &name.name)?;
        labels.iter().try_for_each(|l| check_label(l))?;
        let owner = state.current_user.borrow().oid;
        let (oid, array) = new_oids(state)?;
        let array_name = array_name(state, namespace, &name.name)?;
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let row = new_row(oid, &name.name, namespace, owner)
            .set("typacl", default_acl::of_new(state, Made::Type, owner, namespace)?)
            .int("typlen", 4)
            .bool("typbyval", true)
            .char("typtype", b'e')
            .char("typcategory", b'E')
            .oid("typarray", array)
            .oid("typinput", function_oid("enum_in"))
            .oid("typoutput", function_oid("enum_out"))
            .oid("typreceive", function_oid("enum_recv"))
            .oid("typsend", function_oid("enum_send"))
            .char("typstorage", b'p');
        rows.insert(&row)?;
        rows.insert(&array_row(array, &array_name, namespace, owner, oid))?;
        let (element, array_object) = (Object::of("pg_type", oid), Object::of("pg_type", array));
        depend::record(state, array_object, element, Kind::Internal)?;
        depend::record(state, element, Object::of("pg_namespace", namespace), Kind::Normal)?;
        types::enums::name(oid, &name.name);
        types::enums::name(array, &array_name);
        let mut order = None;
        for (i, label) in labels.iter().enumerate() {
            if labels[..i].contains(label) {
                return Err(SqlError::new(
                    SqlState::UNIQUE_VIOLATION,
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"",
                )
                .detail(format!("Key (enumtypid, enumlabel)=({oid}, {label}) already exists."))
                .into());
            }
            order = between(order, None);
            self.add_label(oid, label, order)?;
        }
        let state = self.state();
        state.new_enums.borrow_mut().types.insert(oid);
        state.catalog.changed(oid);
        Ok(())
    }

    /// The row of a label in `pg_enum`, if there is a place for it.
    fn add_label(&self, ty: Oid, label: &str, order: Option<f32>) -> Result<()> {
        let Some(order) = order else {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!(
                    "no more labels can be added at this place of enum {}",
                    format_type(ty, -1)
                ),
            )
            .hint("Add the label at another place, or make a new type.")
            .into());
        };
        let state = self.state();
        let oid = new_oid(state, "pg_enum")?;
        let row = NewRow::of("pg_enum")
            .oid("oid", oid)
            .oid("enumtypid", ty)
            .set("enumsortorder", Datum::Float4(order))
            .text("enumlabel", label);
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row).map(|_| ())
    }

    /// The type called `name`, if there is one.
    pub(super) fn find_type(&self, name: &ObjectName) -> Result<Option<Row>> {
        super::check_catalog(self.state(), name)?;
        let state = self.state();
        let (schema, name) = (name.schema.as_deref(), name.name.as_str());
        let built_in = schema.is_none_or(|s| s == "pg_catalog");
        let built_in = built_in.then(|| types::typename::type_by_typname(name)).flatten();
        let oid = match built_in {
            Some(info) => Some(info.oid),
            None => state.type_by_name(schema, name)?,
        };
        oid.map_or(Ok(None), |oid| type_row(state, oid))
    }

    /// The OID of the type called `name`, which is the current user's.
    ///
    /// # Errors
    /// `42704`, `42501`
    pub(super) fn own_type(&self, name: &ObjectName) -> Result<Oid> {
        let Some(row) = self.find_type(name)? else {
            bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist");
        };
        self.check_type_owner(&row)?;
        Ok(row.oid("oid"))
    }

    fn check_type_owner(&self, row: &Row) -> Result<()> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        if state.is_superuser() || crate::acl::roles_of(state, me)?.contains(&row.oid("typowner")) {
            return Ok(());
        }
        // An array is spoken of as its elements.
        let element = match types::element_type(row.oid("oid")) {
            Some(element) => type_row(state, element)?,
            None => None,
        };
        let text = self.type_text(element.as_ref().unwrap_or(row));
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of type {text}")
    }

    pub(super) fn type_text(&self, row: &Row) -> String {
        let name = crate::system::names::type_name(self.state(), row.oid("oid"), None);
        name.unwrap_or_else(|| row.text("typname").to_owned())
    }

    /// The row of a type of the current user, which is locked in `mode`.
    pub(super) fn type_to_alter(&mut self, name: &ObjectName, mode: LockMode) -> Result<Row> {
        let oid = self.own_type(name)?;
        lock_type(self.state(), oid, mode)?;
        let Some(row) = type_row(self.state(), oid)? else {
            bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist");
        };
        Ok(row)
    }

    /// ALTER TYPE … ADD VALUE, RENAME VALUE
    ///
    /// # Errors
    /// `42809`, `42710`, `22023`, `54000`; I/O.
    pub fn alter_enum(&mut self, statement: &AlterEnum) -> Result<()> {
        if let Some(row) = self.find_type(&statement.name)?
            && row.char("typtype") != b'e'
        {
            bail!(WRONG_OBJECT_TYPE, "{} is not an enum", self.type_text(&row));
        }
        let row = self.type_to_alter(&statement.name, LockMode::Exclusive)?;
        let ty = row.oid("oid");
        match &statement.action {
            AlterEnumAction::AddValue { if_not_exists, label, neighbour } => {
                self.add_value(ty, label, *if_not_exists, neighbour.as_ref())
            }
            AlterEnumAction::RenameValue { old, new } => self.rename_value(ty, old, new),
        }
    }

    /// The rows of a type's labels, in order.
    fn labels(&self, ty: Oid) -> Result<Vec<Row>> {
        let state = self.state();
        let txn = state.txn()?;
        let mut rows =
            state.catalog.rows(&txn).find("pg_enum", &[("enumtypid", Datum::Oid(ty))])?;
        rows.sort_by(|a, b| a.f32("enumsortorder").total_cmp(&b.f32("enumsortorder")));
        Ok(rows)
    }

    fn add_value(
        &mut self,
        ty: Oid,
        label: &str,
        if_not_exists: bool,
        neighbour: Option<&(bool, String)>,
    ) -> Result<()> {
        check_label(label)?;
        let labels = self.labels(ty)?;
        if labels.iter().any(|r| r.text("enumlabel") == label) {
            if !if_not_exists {
                bail!(DUPLICATE_OBJECT, "enum label \"{label}\" already exists");
            }
            let text = format!("enum label \"{label}\" already exists, skipping");
            return self.notice(SqlState::DUPLICATE_OBJECT, text);
        }
        // How many labels come before the new one.
        let at = match neighbour {
            None => labels.len(),
            Some((before, name)) => {
                let found = labels.iter().position(|r| r.text("enumlabel") == name);
                let Some(found) = found else { return not_a_label(name) };
                found + usize::from(!before)
            }
        };
        let order = |i: Option<usize>| Some(labels.get(i?)?.f32("enumsortorder"));
        let place = between(order(at.checked_sub(1)), order(Some(at)));
        self.add_label(ty, label, place)?;
        let state = self.state();
        let mut new = state.new_enums.borrow_mut();
        if let Some(place) = place
            && !new.types.contains(&ty)
        {
            new.values.insert(EnumValue { type_oid: ty, key: key_of(place) });
        }
        state.catalog.changed(ty);
        Ok(())
    }

    fn rename_value(&mut self, ty: Oid, old: &str, new: &str) -> Result<()> {
        check_label(new)?;
        let labels = self.labels(ty)?;
        let Some(row) = labels.iter().find(|r| r.text("enumlabel") == old) else {
            return not_a_label(old);
        };
        if labels.iter().any(|r| r.text("enumlabel") == new) {
            bail!(DUPLICATE_OBJECT, "enum label \"{new}\" already exists");
        }
        let mut row = row.clone();
        row.set("enumlabel", Datum::text(new));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        state.catalog.changed(ty);
        Ok(())
    }

    /// The row of a type to be altered as a whole: an enum's, a domain's, a composite type's.
    fn whole_type(&mut self, name: &ObjectName) -> Result<Row> {
        let row = self.type_to_alter(name, LockMode::AccessExclusive)?;
        self.check_is_no_part(&row)?;
        if !matches!(row.char("typtype"), b'e' | b'd' | b'c') {
            return Err(Error::unsupported(format!("ALTER TYPE {}", self.type_text(&row))));
        }
        Ok(row)
    }

    /// Is it the row of a composite type of its own?
    fn is_composite(&self, row: &Row) -> Result<bool> {
        let txn = self.state().txn()?;
        composites::is_alone(&self.state().catalog.rows(&txn), row)
    }

    /// A table's row type is altered with the table, an array type with its element's.
    ///
    /// # Errors
    /// `42809`
    fn check_is_no_part(&self, row: &Row) -> Result<()> {
        let name = self.type_text(row);
        if row.oid("typrelid").is_valid() && !self.is_composite(row)? {
            let text = format!("{name} is a table's row type");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .hint("Use ALTER TABLE instead.")
                .into());
        }
        if let Some(element) = type_row(self.state(), row.oid("typelem"))?
            && element.oid("typarray") == row.oid("oid")
        {
            let element = self.type_text(&element);
            let text = format!("cannot alter array type {name}");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, text)
                .hint(format!(
                    "You can alter type {element}, which will alter the array type as well."
                ))
                .into());
        }
        Ok(())
    }

    /// Writes the changed row of a type, and `change` its array type's.
    pub(super) fn update_type(&mut self, row: Row, change: impl FnOnce(&mut Row)) -> Result<()> {
        let state = self.state();
        let (oid, array) = (row.oid("oid"), row.oid("typarray"));
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        rows.update(&row)?;
        state.catalog.changed(oid);
        let mut array_name = String::new();
        if let Some(mut array_row) = type_row(state, array)? {
            change(&mut array_row);
            rows.update(&array_row)?;
            array_row.text("typname").clone_into(&mut array_name);
        }
        if row.char("typtype") == b'd' {
            super::domains::learn(&row, &array_name);
        } else {
            types::enums::name(oid, row.text("typname"));
            types::enums::name(array, &array_name);
        }
        // Descriptions hold expressions that are printed with the type's name.
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// ALTER TYPE … RENAME TO
    ///
    /// # Errors
    /// `42710`, `42809`; I/O.
    pub(super) fn rename_type(&mut self, name: &ObjectName, new: &str) -> Result<()> {
        let mut row = self.whole_type(name)?;
        if let Some(table) = self.relation_of_composite(&row)? {
            return self.rename_relation(&table, new);
        }
        let namespace = row.oid("typnamespace");
        let moved = free_type_name(self.state(), namespace, new)?;
        row.set("typname", Datum::text(new));
        // Its own array type may have had the name.
        let array = match moved == Some(row.oid("typarray")) {
            true => None,
            false => Some(array_name(self.state(), namespace, new)?),
        };
        self.update_type(row, |r| {
            if let Some(name) = &array {
                r.set("typname", Datum::text(name));
            }
        })
    }

    /// ALTER TYPE … SET SCHEMA
    ///
    /// # Errors
    /// `3F000`, `42710`, `42501`; I/O.
    pub(super) fn set_type_schema(&mut self, name: &ObjectName, schema: &str) -> Result<()> {
        let mut row = self.whole_type(name)?;
        let old = row.oid("typnamespace");
        let moved = ObjectName { schema: Some(schema.to_owned()), ..name.clone() };
        if schema == "pg_temp" {
            bail!(FEATURE_NOT_SUPPORTED, "cannot move objects into or out of temporary schemas");
        }
        let namespace = self.creation_namespace(&moved, false)?;
        self.check_set_namespace(old, namespace)?;
        let state = self.state();
        if old == namespace {
            return Ok(());
        }
        if let Some(table) = self.relation_of_composite(&row)? {
            return self.move_composite(&table, namespace, schema);
        }
        if state.catalog.type_oid(&*state.txn()?, namespace, row.text("typname"))?.is_some() {
            bail!(
                DUPLICATE_OBJECT,
                "type \"{}\" already exists in schema \"{schema}\"",
                row.text("typname")
            );
        }
        let object = Object::of("pg_type", row.oid("oid"));
        let array = array_name(state, namespace, row.text("typname"))?;
        row.set("typnamespace", Datum::Oid(namespace));
        self.update_type(row, |r| {
            r.set("typnamespace", Datum::Oid(namespace));
            r.set("typname", Datum::text(&array));
        })?;
        super::domains::move_constraints(self.state(), object.oid, namespace)?;
        depend::forget(self.state(), object, Object::of("pg_namespace", old))?;
        depend::record(self.state(), object, Object::of("pg_namespace", namespace), Kind::Normal)
    }

    /// ALTER TYPE … OWNER TO
    ///
    /// # Errors
    /// `42501`, `42704`; I/O.
    pub(super) fn set_type_owner(&mut self, name: &ObjectName, owner: &RoleName) -> Result<()> {
        let owner = self.role(owner)?;
        super::lock_role(self.state(), owner)?;
        if let Some(row) = self.find_type(name)? {
            self.check_is_no_part(&row)?;
            // Who changes nothing need not own it.
            if matches!(row.char("typtype"), b'e' | b'd' | b'c') && row.oid("typowner") == owner {
                return Ok(());
            }
        }
        let mut row = self.whole_type(name)?;
        self.check_may_own_in(owner, row.oid("typnamespace"))?;
        if let Some(table) = self.relation_of_composite(&row)? {
            return self.give_relation(&table, owner);
        }
        let (old, new) = super::grant::owner_names(self.state(), row.oid("typowner"), owner)?;
        super::grant::hand_over(&mut row, "typacl", &old, &new);
        row.set("typowner", Datum::Oid(owner));
        self.update_type(row, |r| r.set("typowner", Datum::Oid(owner)))
    }

    /// DROP TYPE
    ///
    /// # Errors
    /// `42704`, `42501`, `2BP01`; I/O.
    pub fn drop_type(&mut self, statement: &Drop) -> Result<()> {
        let mut objects = Vec::new();
        for name in &statement.names {
            let Some(row) = self.find_type(name)? else {
                if self.skips_for_its_schema(name, statement.if_exists)? {
                    continue;
                }
                let text = format!("type \"{name}\" does not exist");
                if !statement.if_exists {
                    bail!(UNDEFINED_OBJECT, "{text}");
                }
                self.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{text}, skipping"))?;
                continue;
            };
            if statement.kind == ObjectKind::Domain && row.char("typtype") != b'd' {
                bail!(WRONG_OBJECT_TYPE, "\"{name}\" is not a domain");
            }
            // What is in one's schema one may drop, whose ever it is.
            if !crate::acl::owns_schema(self.state(), row.oid("typnamespace"))? {
                self.check_type_owner(&row)?;
            }
            let oid = row.oid("oid");
            self.check_droppable(&row)?;
            lock_type(self.state(), oid, LockMode::AccessExclusive)?;
            if type_row(self.state(), oid)?.is_none() {
                bail!(UNDEFINED_OBJECT, "type \"{name}\" does not exist");
            }
            objects.push(Object::of("pg_type", oid));
        }
        if objects.is_empty() {
            return Ok(());
        }
        self.drop_unused(&objects, statement.cascade)
    }

    /// Types that something else brought go with that.
    fn check_droppable(&self, row: &Row) -> Result<()> {
        let name = self.type_text(row);
        let refuse = |text: String| SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, text);
        if row.oid("oid") < Oid::FIRST_NORMAL {
            let text =
                format!("cannot drop type {name} because it is required by the database system");
            return Err(refuse(text).into());
        }
        let owner = match (row.oid("typrelid"), row.oid("typelem")) {
            (relation, _) if relation.is_valid() && self.is_composite(row)? => return Ok(()),
            (relation, _) if relation.is_valid() => {
                super::drop::describe(self.state(), Object::relation(relation))?
            }
            (_, element) if element.is_valid() => {
                super::drop::describe(self.state(), Object::of("pg_type", element))?
            }
            _ => return Ok(()),
        };
        Err(refuse(format!("cannot drop type {name} because {owner} requires it"))
            .hint(format!("You can drop {owner} instead."))
            .into())
    }
}

fn not_a_label<T>(name: &str) -> Result<T> {
    bail!(INVALID_PARAMETER_VALUE, "\"{name}\" is not an existing enum label")
}
