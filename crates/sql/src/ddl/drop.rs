//! DROP: what depends on what, and removal.
//!
//! # Invariants
//! Everything that depends on an object goes with it, or the object stays: nothing is left that refers to
//! something that is not there.

use super::depend::{Kind, Object};
use super::{Ddl, drop_notice, relation};
use crate::client::Notice;
use crate::parse::ast::ObjectName;
use crate::parse::utility::{Drop, ObjectKind};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::PUBLIC;
use engine::catalog::defs;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use engine::catalog::rows::Row;
use std::collections::{HashMap, HashSet};
use txn::LockMode;
use types::Datum;

/// Something found to depend on what is dropped.
struct Dependent {
    object: Object,
    on: Object,
    kind: Kind,
}

/// Removes the notes of what `object` depends on.
///
/// # Errors
/// I/O.
pub fn forget_dependencies(state: &SessionState, object: Object) -> Result<()> {
    let txn = state.txn()?;
    let key = [("classid", Datum::Oid(object.class)), ("objid", Datum::Oid(object.oid))];
    let rows = state.catalog.rows(&txn);
    for row in rows.find("pg_depend", &key)? {
        if object.sub == 0 || row.i32("objsubid") == object.sub {
            rows.delete(&row)?;
        }
    }
    Ok(())
}

fn dependents(state: &SessionState, on: Object) -> Result<Vec<Dependent>> {
    let txn = state.txn()?;
    let key = [("refclassid", Datum::Oid(on.class)), ("refobjid", Datum::Oid(on.oid))];
    let mut found: Vec<Dependent> = state
        .catalog
        .rows(&txn)
        .find("pg_depend", &key)?
        .iter()
        .filter(|r| on.sub == 0 || r.i32("refobjsubid") == on.sub)
        .map(|r| Dependent {
            object: Object { class: r.oid("classid"), oid: r.oid("objid"), sub: r.i32("objsubid") },
            on,
            kind: match r.char("deptype") {
                b'a' => Kind::Auto,
                b'i' => Kind::Internal,
                b'e' => Kind::Extension,
                _ => Kind::Normal,
            },
        })
        .collect();
    match defs::by_oid(on.class).map_or("", |d| d.name) {
        "pg_namespace" => found.extend(in_schema(state, on)?),
        "pg_extension" => {
            let views = super::extension::views(state, on.oid)?;
            found.extend(views.into_iter().map(|object| Dependent {
                object,
                on,
                kind: Kind::Extension,
            }));
        }
        _ => {}
    }
    Ok(found)
}

/// What is in a schema though nobody has noted it: extensions; and all that is in `public`, which is there from the beginning
/// ([`super::depend::record`] notes nothing of such) and yet may be dropped.
fn in_schema(state: &SessionState, schema: Object) -> Result<Vec<Dependent>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let whole = |row: &Row| match row.def.name {
        // Indexes and TOAST tables are parts of tables, and composite types are types.
        "pg_class" => Ok(!matches!(row.char("relkind"), b'i' | b't' | b'c')),
        "pg_type" => super::composites::is_object(&rows, row),
        _ => Ok(true),
    };
    let homes = [
        ("pg_extension", "extnamespace"),
        ("pg_class", "relnamespace"),
        ("pg_type", "typnamespace"),
        ("pg_statistic_ext", "stxnamespace"),
    ];
    let unnoted = if schema.oid == PUBLIC { &homes[..] } else { &homes[..1] };
    let mut found = Vec::new();
    for (catalog, home) in unnoted {
        let inside = rows.find(catalog, &[(home, Datum::Oid(schema.oid))])?;
        for row in &inside {
            if whole(row)? {
                let object = Object::of(catalog, row.oid("oid"));
                found.push(Dependent { object, on: schema, kind: Kind::Normal });
            }
        }
    }
    Ok(found)
}

/// The order in which to drop: `objects` and all that depends on them, dependents first; and those that need
/// CASCADE, described.
struct Closure {
    order: Vec<Object>,
    needs_cascade: Vec<(Object, Object)>,
}

/// The column whose generating expression this is the row of.
///
/// # Errors
/// I/O.
pub(super) fn generated_column(state: &SessionState, object: Object) -> Result<Option<Object>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let found = rows.find("pg_attrdef", &[("oid", Datum::Oid(object.oid))])?;
    let Some(row) = found.first() else { return Ok(None) };
    let (table, column) = (row.oid("adrelid"), row.i32("adnum"));
    let Some(table) = state.catalog.table(&txn, table)? else { return Ok(None) };
    let of = |c: &&engine::catalog::model::Column| c.number == column && c.is_generated();
    Ok(table.columns.iter().find(of).map(|c| Object::column(table.oid, c.number)))
}

impl Closure {
    /// Fails if something needs CASCADE.
    fn check(&self, state: &SessionState, objects: &[Object]) -> Result<()> {
        if self.needs_cascade.is_empty() {
            return Ok(());
        }
        let described: Vec<String> = self
            .needs_cascade
            .iter()
            .map(|(o, on)| {
                Ok(format!("{} depends on {}", describe(state, *o)?, describe(state, *on)?))
            })
            .collect::<Result<_>>()?;
        let (what, whom) = match objects {
            [one] => (describe(state, *one)?, "it"),
            _ => ("desired object(s)".to_owned(), "them"),
        };
        Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop {what} because other objects depend on {whom}"),
        )
        .detail(described.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too.")
        .into())
    }
}

/// A view's rule is spoken of as the view, what generates a column as the column.
pub(super) fn owner_of_rule(state: &SessionState, object: Object) -> Result<Object> {
    if object.class == defs::by_name("pg_attrdef").oid {
        return Ok(generated_column(state, object)?.unwrap_or(object));
    }
    if object.class != defs::by_name("pg_rewrite").oid {
        return Ok(object);
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_rewrite", &[("oid", Datum::Oid(object.oid))])?;
    Ok(rows.first().map_or(object, |r| Object::relation(r.oid("ev_class"))))
}

/// As PostgreSQL has it, so that what is older is told of first, and after it what depends on it: by OIDs, and by columns. Types of ours
/// are older than what uses them whatever their OIDs, and arrays of them, and of rows, are before them.
fn younger_first(object: &Object) -> (bool, bool, std::cmp::Reverse<Oid>, i32) {
    let of_rows = types::row_types::row_of(object.oid).is_some();
    let ours = super::enums::is_ours(object.oid) || of_rows;
    let (enums, domains) = (types::enums::is_enum_array, types::domains::is_domain_array);
    let array = of_rows || ours && (enums(object.oid) || domains(object.oid));
    (ours, array, std::cmp::Reverse(object.oid), object.sub)
}

/// What goes with `on` when `object` does: of a view's rule the view, whose part it is; of what generates a column the column, with
/// all that depends on that, unless the column or its table goes already. None: nothing besides.
fn with_its_owner(state: &SessionState, object: Object, on: Object) -> Result<Option<Object>> {
    let owner = owner_of_rule(state, object)?;
    if object.class == defs::by_name("pg_attrdef").oid {
        let goes = [owner, Object { sub: 0, ..owner }].contains(&on);
        return Ok(Some(if goes { object } else { owner }));
    }
    Ok(Some(owner).filter(|v| v == &object || *v != Object { sub: 0, ..on }))
}

fn closure(state: &SessionState, objects: &[Object]) -> Result<Closure> {
    let mut closure = Closure { order: Vec::new(), needs_cascade: Vec::new() };
    let mut seen: HashSet<Object> = objects.iter().copied().collect();
    let mut normal = Vec::new();
    let mut automatic = HashSet::new();
    let mut todo: Vec<Object> = objects.to_vec();
    // What uses the array of a type is told of before what uses the type.
    let types = Object::of("pg_type", Oid::INVALID).class;
    for object in objects.iter().filter(|o| o.class == types) {
        let parts = dependents(state, *object)?.into_iter().filter(|d| d.kind == Kind::Internal);
        let arrays = parts.map(|d| d.object).filter(|o| o.class == types);
        todo.extend(arrays.filter(|array| seen.insert(*array)));
    }
    let mut below: HashMap<Object, Vec<Object>> = HashMap::new();
    // By what columns that go with others are generated: as old as that they are.
    let mut generated: HashMap<Object, Object> = HashMap::new();
    while let Some(object) = todo.pop() {
        for d in dependents(state, object)? {
            let Some(found) = with_its_owner(state, d.object, object)? else { continue };
            if found != d.object && found.sub != 0 {
                generated.insert(found, d.object);
            }
            let d = Dependent { object: found, ..d };
            let whole = Object { sub: 0, ..d.object };
            if d.kind != Kind::Normal {
                // It goes with what it belongs to, whatever else it depends on.
                automatic.insert(d.object);
            }
            if whole == object {
                continue;
            }
            let goes = if seen.contains(&whole) { whole } else { d.object };
            below.entry(object).or_default().push(goes);
            if seen.contains(&goes) {
                continue;
            }
            if d.kind == Kind::Normal {
                normal.push((d.object, owner_of_rule(state, d.object)?, d.on));
            }
            seen.insert(d.object);
            todo.push(d.object);
        }
    }
    let goes_anyway = |o: &Object, owner: &Object| {
        objects.contains(owner) || automatic.contains(owner) || automatic.contains(o)
    };
    normal.retain(|(object, owner, _)| !goes_anyway(object, owner));
    let age = |object: &Object| younger_first(generated.get(object).unwrap_or(object));
    below.values_mut().for_each(|all| all.sort_by_key(age));
    closure.order = dependents_first(objects, &below);
    let places: HashMap<Object, usize> = closure.order.iter().copied().zip(0..).collect();
    normal.sort_by_key(|(object, ..)| std::cmp::Reverse(places.get(object).copied()));
    closure.needs_cascade = normal.into_iter().map(|(_, owner, on)| (owner, on)).collect();
    Ok(closure)
}

/// `objects` and all `below` them, each after what depends on it. (Of two that depend on each other one is first.)
fn dependents_first(objects: &[Object], below: &HashMap<Object, Vec<Object>>) -> Vec<Object> {
    let mut order = Vec::new();
    let mut begun = HashSet::new();
    for first in objects {
        let mut path: Vec<(Object, usize)> = Vec::new();
        if begun.insert(*first) {
            path.push((*first, 0));
        }
        while let Some((object, at)) = path.last_mut() {
            let next = below.get(object).and_then(|all| all.get(*at)).copied();
            *at += 1;
            match next {
                Some(next) if begun.insert(next) => path.push((next, 0)),
                Some(_) => {}
                None => {
                    order.push(*object);
                    path.pop();
                }
            }
        }
    }
    order
}

/// Drops `objects`. Without `cascade`, nothing else may depend on them.
///
/// # Errors
/// `2BP01`; I/O.
pub fn drop_objects(
    state: &SessionState,
    objects: &[Object],
    cascade: bool,
) -> Result<Vec<Notice>> {
    drop_if(state, objects, cascade, &|_| Ok(()), &mut |_| Ok(()))
}

/// As [`drop_objects`], if `may` allows it of each relation that goes, be it dropped by itself or with another, and `before` of all that goes.
fn drop_if(
    state: &SessionState,
    objects: &[Object],
    cascade: bool,
    may: &dyn Fn(&Table) -> Result<()>,
    before: &mut dyn FnMut(&[Object]) -> Result<()>,
) -> Result<Vec<Notice>> {
    let closure = locked_closure(state, objects)?;
    let mut notices = Vec::new();
    if !cascade {
        closure.check(state, objects)?;
    } else if !closure.needs_cascade.is_empty() {
        notices.push(drop_notice::cascades(state, &closure.needs_cascade)?);
    }
    let txn = state.txn()?;
    let relations = Object::relation(Oid::INVALID).class;
    for object in closure.order.iter().filter(|o| o.class == relations && o.sub == 0) {
        if let Some(table) = state.catalog.table(&txn, object.oid)? {
            may(&table)?;
        }
    }
    before(&closure.order)?;
    for object in &closure.order {
        remove(state, *object)?;
    }
    Ok(notices)
}

/// Fails if something depends on `objects` that does not go with them of itself.
///
/// # Errors
/// `2BP01`; I/O.
pub(super) fn check_dependents(state: &SessionState, objects: &[Object]) -> Result<()> {
    closure(state, objects)?.check(state, objects)
}

/// `objects` and all that depends on them, locked: more may have come to depend on one while its lock was waited for, and
/// nothing does afterwards. Where nobody has committed anything meanwhile, nothing more has.
fn locked_closure(state: &SessionState, objects: &[Object]) -> Result<Closure> {
    let mut locked = HashSet::new();
    loop {
        let csn = state.txn()?.take_latest_snapshot().csn;
        let found = closure(state, objects)?;
        let before = locked.len();
        for object in &found.order {
            if locked.insert(*object) {
                lock(state, *object)?;
            }
        }
        if locked.len() == before || state.txn()?.take_latest_snapshot().csn == csn {
            return Ok(found);
        }
    }
}

/// Waits for those who use what is dropped.
fn lock(state: &SessionState, object: Object) -> Result<()> {
    match defs::by_oid(object.class).map_or("", |d| d.name) {
        "pg_class" => crate::relations::lock(state, object.oid, LockMode::AccessExclusive),
        "pg_namespace" => super::lock_object(state, object, LockMode::AccessExclusive),
        "pg_statistic_ext" => super::statistics::lock(state, object.oid),
        // A table, and the one it refers to, are written by what the constraint says.
        "pg_constraint" => {
            let txn = state.txn()?;
            let rows = state.catalog.rows(&txn);
            for row in rows.find("pg_constraint", &[("oid", Datum::Oid(object.oid))])? {
                for table in [row.oid("conrelid"), row.oid("confrelid")] {
                    if table.is_valid() {
                        crate::relations::lock(state, table, LockMode::AccessExclusive)?;
                    }
                }
            }
            Ok(())
        }
        "pg_type" => match types::row_types::row_of(object.oid) {
            Some(row) => super::enums::lock_type(state, row, LockMode::AccessExclusive),
            None if super::depend::is_of_users(object.oid) => {
                super::enums::lock_type(state, object.oid, LockMode::AccessExclusive)
            }
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// `table t`, `column a of table t`, `constraint c on table t`, …
///
/// # Errors
/// I/O.
pub fn describe(state: &SessionState, object: Object) -> Result<String> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let class = defs::by_oid(object.class).map_or("", |d| d.name);
    let one = |catalog: &str| -> Result<Option<Row>> {
        Ok(rows.find(catalog, &[("oid", Datum::Oid(object.oid))])?.into_iter().next())
    };
    let unknown = || format!("object {} of catalog {class}", object.oid);
    Ok(match class {
        "pg_class" => match state.catalog.table(&txn, object.oid)? {
            None => unknown(),
            Some(table) => {
                let name = crate::system::names::relation_name(state, &table);
                let noun = crate::acl::noun(table.kind);
                let column =
                    usize::try_from(object.sub - 1).ok().and_then(|i| table.columns.get(i));
                match column {
                    Some(column) => format!("column {} of {noun} {name}", column.name),
                    None => format!("{noun} {name}"),
                }
            }
        },
        "pg_constraint" => match one("pg_constraint")? {
            None => unknown(),
            Some(row) => {
                let on = Object::relation(row.oid("conrelid"));
                if !on.oid.is_valid() {
                    return Ok(format!("constraint {}", row.text("conname")));
                }
                format!("constraint {} on {}", row.text("conname"), describe(state, on)?)
            }
        },
        "pg_attrdef" => match one("pg_attrdef")? {
            None => unknown(),
            Some(row) => {
                let on = Object::column(row.oid("adrelid"), row.i32("adnum"));
                format!("default value for {}", describe(state, on)?)
            }
        },
        "pg_rewrite" => match one("pg_rewrite")? {
            None => unknown(),
            Some(row) => {
                let on = Object::relation(row.oid("ev_class"));
                format!("rule {} on {}", row.text("rulename"), describe(state, on)?)
            }
        },
        "pg_namespace" => match one("pg_namespace")? {
            None => unknown(),
            Some(row) => format!("schema {}", row.text("nspname")),
        },
        "pg_extension" => match one("pg_extension")? {
            None => unknown(),
            Some(row) => format!("extension {}", row.text("extname")),
        },
        "pg_default_acl" => match one("pg_default_acl")? {
            None => unknown(),
            Some(row) => super::default_acl::describe(state, &row)?,
        },
        "pg_statistic_ext" => match one("pg_statistic_ext")? {
            None => unknown(),
            Some(row) => {
                let name = super::statistics::shown_name(state, &row)?;
                format!("statistics object {name}")
            }
        },
        "pg_type" => match one("pg_type")? {
            None => unknown(),
            Some(_) => {
                let name = crate::system::names::type_name(state, object.oid, None);
                format!("type {}", name.unwrap_or_else(|| "???".to_owned()))
            }
        },
        _ => unknown(),
    })
}

/// Removes one object's rows and files.
fn remove(state: &SessionState, object: Object) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let oid = Datum::Oid(object.oid);
    let class = defs::by_oid(object.class).map_or("", |d| d.name);
    match class {
        "pg_class" if object.sub != 0 => super::table::drop_column(state, object.oid, object.sub)?,
        "pg_class" => remove_relation(state, object.oid)?,
        "pg_constraint" => super::constraint::remove(state, object.oid)?,
        "pg_attrdef" => {
            if let Some(column) = generated_column(state, object)? {
                super::table::drop_column(state, column.oid, column.sub)?;
                forget_dependencies(state, column)?;
            } else if let Some(row) = rows.find("pg_attrdef", &[("oid", oid)])?.first() {
                let (table, column) = (row.oid("adrelid"), row.i32("adnum"));
                rows.delete(row)?;
                relation::update_attribute(state, table, column, |row| {
                    row.set("atthasdef", Datum::Bool(false));
                })?;
            }
        }
        // A view's rule goes with the view, and a view that loses its rule goes.
        "pg_rewrite" => {
            if let Some(row) = rows.find("pg_rewrite", &[("oid", oid)])?.first() {
                let view = row.oid("ev_class");
                rows.delete(row)?;
                if state.catalog.table(&txn, view)?.is_some() {
                    drop_objects(state, &[Object::relation(view)], true)?;
                }
            }
        }
        "pg_statistic_ext" => super::statistics::remove(state, object.oid)?,
        // Its constraint goes too, and says so to both tables.
        "pg_trigger" => {
            rows.delete_where(class, &[("oid", oid)])?;
        }
        "pg_type" => {
            rows.delete_where("pg_enum", &[("enumtypid", oid.clone())])?;
            let types = rows.find("pg_type", &[("oid", oid)])?;
            for ty in &types {
                rows.delete(ty)?;
                // A relation's row type, or its array; what has a column of it says so by its own change.
                let of_rows = types::row_types::row_of(object.oid).is_some();
                if of_rows || ty.oid("typrelid").is_valid() {
                    state.catalog.changed_named(object.oid, ty.text("typname"));
                } else {
                    state.catalog.changed(Oid::INVALID);
                }
            }
        }
        _ => {
            rows.delete_where(class, &[("oid", oid)])?;
            state.catalog.changed(Oid::INVALID);
        }
    }
    forget_dependencies(state, object)?;
    remove_comments(state, object)
}

/// Takes an object's comments away.
pub(super) fn remove_comments(state: &SessionState, object: Object) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = [("objoid", Datum::Oid(object.oid)), ("classoid", Datum::Oid(object.class))];
    for row in rows.find("pg_description", &key)? {
        if object.sub == 0 || row.i32("objsubid") == object.sub {
            rows.delete(&row)?;
        }
    }
    Ok(())
}

/// The same, of what all databases share.
pub(super) fn remove_shared_comments(state: &SessionState, object: Object) -> Result<()> {
    let txn = state.txn()?;
    let key = [("objoid", Datum::Oid(object.oid)), ("classoid", Datum::Oid(object.class))];
    state.catalog.rows(&txn).delete_where("pg_shdescription", &key).map(|_| ())
}

fn remove_relation(state: &SessionState, oid: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = Datum::Oid(oid);
    let Some(class) = rows.find("pg_class", &[("oid", key.clone())])?.into_iter().next() else {
        return Ok(());
    };
    let kind = RelationKind::from_letter(class.char("relkind"));
    if class.oid("relfilenode").is_valid() {
        let id = relation::location(state, class.oid("relfilenode").0);
        relation::remove_files(state, id)?;
    }
    if matches!(kind, Some(RelationKind::Index)) {
        for row in rows.find("pg_index", &[("indexrelid", key.clone())])? {
            state.catalog.changed_alone(row.oid("indrelid"));
            rows.delete(&row)?;
        }
    }
    rows.delete_where("pg_attribute", &[("attrelid", key.clone())])?;
    rows.delete_where("pg_attrdef", &[("adrelid", key.clone())])?;
    rows.delete_where("pg_statistic", &[("starelid", key.clone())])?;
    rows.delete_where("pg_sequence", &[("seqrelid", key.clone())])?;
    rows.delete_where("pg_inherits", &[("inhrelid", key.clone())])?;
    for row in rows.find("pg_rewrite", &[("ev_class", key)])? {
        forget_dependencies(state, Object::of("pg_rewrite", row.oid("oid")))?;
        rows.delete(&row)?;
    }
    rows.delete(&class)?;
    state.relations.borrow_mut().remove(&oid);
    state.fates.borrow_mut().dropped(oid);
    state.catalog.changed_named(oid, class.text("relname"));
    Ok(())
}

impl Ddl<'_> {
    /// [`drop_objects`], unless a relation that goes is in use in this session; the client is told what else goes.
    ///
    /// # Errors
    /// `2BP01`, `55006`; I/O.
    pub(super) fn drop_unused(&mut self, objects: &[Object], cascade: bool) -> Result<()> {
        let may = |table: &Table| self.check_not_in_use(table, "DROP TABLE");
        let mut shrinking = super::shrunk_rows::Shrinking::default();
        let notices = drop_if(self.state(), objects, cascade, &may, &mut |going| {
            shrinking = self.before_columns_go(going)?;
            Ok(())
        })?;
        self.columns_have_gone(&shrinking)?;
        notices.iter().try_for_each(|notice| self.client.notice(notice))
    }

    /// DROP TABLE, VIEW, INDEX, SEQUENCE, MATERIALIZED VIEW, SCHEMA.
    ///
    /// # Errors
    /// `42P01`, `42704`, `42809`, `42501`, `2BP01`; I/O.
    pub fn drop_statement(&mut self, statement: &Drop) -> Result<()> {
        let mut objects = Vec::new();
        if statement.concurrently {
            self.check_drop_concurrently(statement)?;
        }
        for name in &statement.names {
            if statement.kind == ObjectKind::Schema {
                objects.extend(self.schema_to_drop(&name.name, statement.if_exists)?);
                continue;
            }
            let mode = if statement.concurrently {
                LockMode::ShareUpdateExclusive
            } else {
                LockMode::AccessExclusive
            };
            let check = |table: &Table| self.check_may_drop(statement.kind, table, mode);
            let Some(table) = self.find_locked(name, mode, &check)? else {
                self.missing(statement, name)?;
                continue;
            };
            self.check_not_in_use(&table, "DROP TABLE")?;
            let object = Object::relation(table.oid);
            self.check_part(object, statement.kind)?;
            if statement.concurrently
                && table.persistence != RelationPersistence::Temporary
                && let Some(of) = self.table_of_index(table.oid)?
            {
                return self.drop_index_concurrently(of, table.oid);
            }
            objects.push(object);
        }
        if objects.is_empty() {
            return Ok(());
        }
        self.drop_unused(&objects, statement.cascade)
    }

    /// Fails unless the current user may drop `table`. The table of an index is locked before it: who reads an index holds a
    /// lock on its table.
    fn check_may_drop(&self, kind: ObjectKind, table: &Table, mode: LockMode) -> Result<()> {
        check_kind(kind, table.kind, &table.name)?;
        if table.oid < Oid::FIRST_NORMAL {
            bail!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied: \"{}\" is a system catalog",
                table.name
            );
        }
        if !crate::acl::owns_schema(self.state(), table.namespace)? {
            crate::acl::check_owner(self.state(), table)?;
        }
        match self.table_of_index(table.oid)? {
            Some(of) if kind == ObjectKind::Index => crate::relations::lock(self.state(), of, mode),
            _ => Ok(()),
        }
    }

    fn missing(&mut self, statement: &Drop, name: &ObjectName) -> Result<()> {
        let noun = statement.kind.noun();
        if self.skips_for_its_schema(name, statement.if_exists)? {
            return Ok(());
        }
        if statement.if_exists {
            return self.notice(
                SqlState::SUCCESSFUL_COMPLETION,
                format!("{noun} \"{name}\" does not exist, skipping"),
            );
        }
        match statement.kind {
            ObjectKind::Index => bail!(UNDEFINED_OBJECT, "index \"{name}\" does not exist"),
            _ => bail!(UNDEFINED_TABLE, "{noun} \"{name}\" does not exist"),
        }
    }

    /// What is to be dropped is not there, as its schema is not: is that said already?
    ///
    /// # Errors
    /// `3F000`
    pub(super) fn skips_for_its_schema(
        &mut self,
        name: &ObjectName,
        if_exists: bool,
    ) -> Result<bool> {
        let Err(e) = self.state().check_schema_exists(name.schema.as_deref()) else {
            return Ok(false);
        };
        if !if_exists || e.state() != SqlState::INVALID_SCHEMA_NAME {
            return Err(e);
        }
        self.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{e}, skipping"))?;
        Ok(true)
    }

    fn schema_to_drop(&mut self, name: &str, if_exists: bool) -> Result<Option<Object>> {
        let mut locked = None;
        loop {
            let Some(oid) = self.state().schema_by_name(name)? else {
                if if_exists {
                    self.notice(
                        SqlState::SUCCESSFUL_COMPLETION,
                        format!("schema \"{name}\" does not exist, skipping"),
                    )?;
                    return Ok(None);
                }
                bail!(INVALID_SCHEMA_NAME, "schema \"{name}\" does not exist");
            };
            let mine = crate::acl::owns_schema(self.state(), oid)?;
            if !mine || oid < Oid::FIRST_NORMAL && name != "public" {
                bail!(INSUFFICIENT_PRIVILEGE, "must be owner of schema {name}");
            }
            let object = Object::of("pg_namespace", oid);
            if locked == Some(oid) {
                return Ok(Some(object));
            }
            lock(self.state(), object)?;
            locked = Some(oid);
        }
    }

    /// A constraint's index goes with the constraint only, an identity column's sequence with the column.
    fn check_part(&self, object: Object, kind: ObjectKind) -> Result<()> {
        if !matches!(kind, ObjectKind::Index | ObjectKind::Sequence) {
            return Ok(());
        }
        let state = self.state();
        let txn = state.txn()?;
        let key = [("classid", Datum::Oid(object.class)), ("objid", Datum::Oid(object.oid))];
        for row in state.catalog.rows(&txn).find("pg_depend", &key)? {
            if row.char("deptype") == b'i' {
                let sub = row.i32("refobjsubid");
                let on = Object { class: row.oid("refclassid"), oid: row.oid("refobjid"), sub };
                let (this, that) = (describe(state, object)?, describe(state, on)?);
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    format!("cannot drop {this} because {that} requires it"),
                )
                .hint(format!("You can drop {that} instead."))
                .into());
            }
        }
        Ok(())
    }
}

fn check_kind(wanted: ObjectKind, is: RelationKind, name: &str) -> Result<()> {
    let fits = matches!(
        (wanted, is),
        (ObjectKind::Table, RelationKind::Table | RelationKind::PartitionedTable)
            | (ObjectKind::Index, RelationKind::Index)
            | (ObjectKind::View, RelationKind::View)
            | (ObjectKind::MaterializedView, RelationKind::MaterializedView)
            | (ObjectKind::Sequence, RelationKind::Sequence)
    );
    if fits {
        return Ok(());
    }
    let (article, noun) = match wanted {
        ObjectKind::Index => ("an", "index"),
        other => ("a", other.noun()),
    };
    let is_noun = match is {
        RelationKind::Composite => "type",
        other => crate::acl::noun(other),
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {article} {noun}"))
        .hint(format!(
            "Use DROP {} to remove {} {is_noun}.",
            is_noun.to_uppercase(),
            if is == RelationKind::Index { "an" } else { "a" }
        ))
        .into())
}
