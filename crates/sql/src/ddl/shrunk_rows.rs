//! A column goes from a table whose rows other relations' columns hold: these are written anew, without it.
//!
//! # Invariants
//! The fields of a row that a column holds are the first ones of its table's columns: those that are there, in their order. (Columns that
//! the table got since are not among them: [`types::row_types::RowShape`].)
//!
//! # Locks
//! The row type is locked as for its end: nothing comes to be of it meanwhile. What holds rows of it is locked as any table that is
//! rewritten.
//!
//! # Differs from PostgreSQL
//! There rows stay as they are, and are read without what has gone. What makes rows follows there, too: here such a column stays while a
//! stored expression makes rows of its table otherwise than by ROW(…).

use super::depend::{Kind, Object};
use super::{Ddl, drop, enums, field_places, rewrite};
use crate::plan::query_walk::{Visitor, visit};
use crate::query::{Query, RteKind};
use crate::session::Session;
use base::{Oid, Result, bail};
use engine::catalog::load::{RowSource, stored_expr};
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use engine::catalog::rows::Row;
use engine::catalog::stored::from_text;
use expr::Expr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use txn::LockMode;
use types::Datum;
use types::row_types::{RowShape, array_of};

/// What goes from rows, and who holds such.
#[derive(Default)]
pub(super) struct Shrinking {
    /// Row types, and the places of their fields that go, the last first.
    gone: Vec<(Oid, Vec<usize>)>,
    /// What may take fields of such rows in its expressions, or make such rows.
    users: BTreeSet<Object>,
    /// Relations, with what the rows are like that their columns hold.
    holders: BTreeMap<Oid, Vec<Option<Arc<RowShape>>>>,
}

/// Where rows of a table may be, be it within others.
struct Spread {
    /// Its row type, and those of the relations that have columns of one of these.
    types: Vec<Oid>,
    /// Relations that store rows of these types.
    holders: BTreeSet<Oid>,
}

impl Ddl<'_> {
    /// Before `going` are removed.
    ///
    /// # Errors
    /// `0A000`, `55006`; those of waiting; I/O.
    pub(super) fn before_columns_go(&self, going: &[Object]) -> Result<Shrinking> {
        let state = self.state();
        let mut shrinking = Shrinking::default();
        let mut columns: BTreeMap<Oid, BTreeSet<i32>> = BTreeMap::new();
        for object in going {
            let column = if *object == Object::column(object.oid, object.sub) {
                Some(*object).filter(|o| o.sub != 0)
            } else if object.class == Object::of("pg_attrdef", object.oid).class {
                drop::generated_column(state, *object)?
            } else {
                None
            };
            let stays = |o: &Object| !going.contains(&Object { sub: 0, ..*o });
            if let Some(column) = column.filter(stays) {
                columns.entry(column.oid).or_default().insert(column.sub);
            }
        }
        for (oid, numbers) in columns {
            let table = self.described(oid)?;
            if !table.row_type.is_valid() {
                continue;
            }
            enums::lock_type(state, table.row_type, LockMode::AccessExclusive)?;
            let spread = self.spread_of(&table)?;
            self.check_no_rows_are_made(&table, &spread.types, going, false)?;
            for holder in spread.holders {
                if !going.contains(&Object::relation(holder))
                    && let Some(shapes) = self.shapes_in(&table, holder)?
                {
                    shrinking.holders.insert(holder, shapes);
                }
            }
            let mut users = field_places::users(state, table.oid)?;
            users.extend(self.dependents_of_rows(table.row_type)?);
            users.retain(|user| user.sub == 0 && !going.contains(user));
            shrinking.users.extend(users);
            let there = table.columns.iter().filter(|c| !c.dropped).enumerate();
            let places = there.filter(|(_, c)| numbers.contains(&c.number)).map(|(at, _)| at);
            let mut places: Vec<usize> = places.collect();
            places.reverse();
            shrinking.gone.push((table.row_type, places));
        }
        Ok(shrinking)
    }

    /// After they have been removed.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn columns_have_gone(&mut self, shrinking: &Shrinking) -> Result<()> {
        let mut moved = false;
        for user in &shrinking.users {
            moved |= field_places::move_up(self.state(), *user, &shrinking.gone)?;
        }
        if moved || !shrinking.holders.is_empty() {
            self.state().catalog.changed(Oid::INVALID);
        }
        for (holder, shapes) in &shrinking.holders {
            let holder = self.described(*holder)?;
            let mut shrink = |_: &mut Session, mut row: Vec<Datum>| -> Result<Vec<Datum>> {
                for (value, shape) in row.iter_mut().zip(shapes) {
                    if let Some(shape) = shape {
                        let before = shape.fit(std::mem::take(value));
                        *value = shape.without(before, &shrinking.gone);
                    }
                }
                Ok(row)
            };
            rewrite::rewrite(self.session, &holder, &mut shrink)?;
        }
        Ok(())
    }

    /// What the rows are like that a relation's columns hold, once it may be rewritten; None: it has gone.
    fn shapes_in(&self, table: &Table, holder: Oid) -> Result<Option<Vec<Option<Arc<RowShape>>>>> {
        let state = self.state();
        crate::relations::lock(state, holder, LockMode::AccessExclusive)?;
        let Some(holder) = state.table_by_oid(holder)? else { return Ok(None) };
        if holder.persistence == RelationPersistence::Temporary
            && holder.namespace != state.temp_schema.get()
        {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "cannot alter table \"{}\" because temporary table \"{}\" of another session uses its row type",
                table.name,
                holder.name
            );
        }
        self.check_not_in_use(&holder, "ALTER TABLE")?;
        Ok(Some(holder.columns.iter().map(|c| c.rows.clone()).collect()))
    }

    fn spread_of(&self, table: &Table) -> Result<Spread> {
        let mut types = vec![table.row_type];
        let mut holders = BTreeSet::new();
        let mut views = self.views_over(table.oid)?;
        let mut at = 0;
        while let Some(&ty) = types.get(at) {
            at += 1;
            for user in self.dependents_of_rows(ty)? {
                let is_of = |t: &Table| {
                    let of = |own: Oid| own == ty || Some(own) == array_of(ty);
                    t.columns.iter().any(|c| !c.dropped && of(c.ty.oid))
                };
                let user = match user.class == Object::relation(user.oid).class {
                    true => self.described(user.oid)?,
                    false => match self.view_of_rule(user)? {
                        Some(view) => view,
                        None => continue,
                    },
                };
                if !is_of(&user) {
                    continue;
                }
                if user.storage.is_some() && holders.insert(user.oid) {
                    views.extend(self.views_over(user.oid)?);
                }
                views.push(user);
            }
            // Views have such columns of what they read; what has a column of a view's rows is found when their type has its turn.
            let mut grown = true;
            while std::mem::take(&mut grown) {
                for view in &views {
                    let is_of = |own: Oid| types.contains(&types::element_type(own).unwrap_or(own));
                    if view.row_type.is_valid()
                        && !types.contains(&view.row_type)
                        && view.columns.iter().any(|c| !c.dropped && is_of(c.ty.oid))
                    {
                        types.push(view.row_type);
                        grown = true;
                    }
                }
            }
        }
        Ok(Spread { types, holders })
    }

    /// What is of a row type, or of an array of it, or says so in an expression: columns, and other objects.
    pub(super) fn dependents_of_rows(&self, ty: Oid) -> Result<Vec<Object>> {
        let class = |name| engine::catalog::defs::by_name(name).oid;
        let txn = self.state().txn()?;
        let rows = self.state().catalog.rows(&txn);
        let mut found = Vec::new();
        for ty in [Some(ty), array_of(ty)].into_iter().flatten() {
            let key = [("refclassid", Datum::Oid(class("pg_type"))), ("refobjid", Datum::Oid(ty))];
            // A composite type's relation is a part of it.
            let is_part = |r: &&Row| {
                r.oid("classid") == class("pg_class")
                    && r.char("deptype") == Kind::Internal.letter()
            };
            let noted = rows.find("pg_depend", &key)?;
            found.extend(noted.iter().filter(|r| !is_part(r)).map(|r| Object {
                class: r.oid("classid"),
                oid: r.oid("objid"),
                sub: r.i32("objsubid"),
            }));
        }
        Ok(found)
    }

    fn view_of_rule(&self, rule: Object) -> Result<Option<Arc<Table>>> {
        if rule.class != Object::of("pg_rewrite", rule.oid).class {
            return Ok(None);
        }
        let txn = self.state().txn()?;
        let key = [("oid", Datum::Oid(rule.oid))];
        let found = self.state().catalog.rows(&txn).find("pg_rewrite", &key)?;
        found.first().map_or(Ok(None), |row| self.state().table_by_oid(row.oid("ev_class")))
    }

    /// Fails if a stored expression makes rows of the table's type, be it within others.
    ///
    /// # Errors
    /// `0A000`
    pub(super) fn check_makes_no_rows(&self, table: &Table) -> Result<()> {
        let spread = self.spread_of(table)?;
        self.check_no_rows_are_made(table, &spread.types, &[], true)
    }

    /// Stored expressions make rows with as many fields as there were when they were written. Of those that name each field one may go
    /// ([`field_places`]), but none is `retyped`.
    ///
    /// # Errors
    /// `0A000`
    fn check_no_rows_are_made(
        &self,
        table: &Table,
        types: &[Oid],
        going: &[Object],
        retyped: bool,
    ) -> Result<()> {
        for ty in types {
            for user in self.dependents_of_rows(*ty)? {
                let owner = drop::owner_of_rule(self.state(), user)?;
                if user.sub != 0
                    || [user, owner].iter().any(|o| going.contains(o))
                    || !self.makes_rows(user, types, retyped)?
                {
                    continue;
                }
                let (name, user) = (&table.name, drop::describe(self.state(), owner)?);
                if table.kind == RelationKind::Composite {
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "cannot alter type \"{name}\" because {user} uses it"
                    );
                }
                bail!(
                    FEATURE_NOT_SUPPORTED,
                    "cannot alter table \"{name}\" because {user} uses its row type"
                );
            }
        }
        Ok(())
    }

    fn makes_rows(&self, user: Object, types: &[Oid], retyped: bool) -> Result<bool> {
        let txn = self.state().txn()?;
        let rows = self.state().catalog.rows(&txn);
        let stored = |catalog: &str, column: &str| -> Result<Option<String>> {
            let found = rows.find(catalog, &[("oid", Datum::Oid(user.oid))])?;
            Ok(found.first().map(|row| row.text(column).to_owned()))
        };
        let mut makers = Makers { types, retyped, found: false };
        match engine::catalog::defs::by_oid(user.class).map_or("", |def| def.name) {
            // An array type, or what is over the type.
            "pg_type" => return Ok(false),
            "pg_rewrite" => {
                let Some(text) = stored("pg_rewrite", "ev_action")? else { return Ok(false) };
                let Ok(mut query) = from_text::<Query>(&text) else { return Ok(true) };
                visit(&mut query, 0, &mut makers);
            }
            class @ ("pg_attrdef" | "pg_constraint") => {
                let column = if class == "pg_attrdef" { "adbin" } else { "conbin" };
                let Some(text) = stored(class, column)? else { return Ok(false) };
                let expr: Expr = (*stored_expr(&text)?).clone();
                expr.walk(&mut |e| makers.note(e));
            }
            _ => return Ok(true),
        }
        Ok(makers.found)
    }
}

/// A row, or an array with one?
fn has_rows(value: &Datum) -> bool {
    match value {
        Datum::Array(array) => array.elements.iter().any(has_rows),
        value => !value.is_null(),
    }
}

/// Looks for what makes rows of some types, or arrays of them.
struct Makers<'a> {
    types: &'a [Oid],
    /// ROW(…) counts, too.
    retyped: bool,
    found: bool,
}

impl Makers<'_> {
    fn note(&mut self, e: &Expr) {
        let makes = match e {
            Expr::Const(c) => has_rows(&c.value),
            Expr::Relabel { arg, .. } if matches!(**arg, Expr::Row { .. }) => self.retyped,
            _ => super::depend::names_type(e),
        };
        self.found |= makes && self.is_of(e.ty().oid);
    }

    fn is_of(&self, ty: Oid) -> bool {
        self.types.contains(&types::element_type(ty).unwrap_or(ty))
    }
}

impl Visitor for Makers<'_> {
    fn expr(&mut self, e: &mut Expr, _: u32) -> bool {
        self.note(e);
        false
    }

    fn rte(&mut self, kind: &mut RteKind, _: u32) {
        if let RteKind::Function { calls, .. } = kind {
            // It has as many columns as there were.
            self.found |= calls.iter().any(|c| self.is_of(c.call.ty().oid));
        }
    }
}
