//! CREATE VIEW.
//!
//! # Layout
//! A view is a relation without storage and a rule `_RETURN` in `pg_rewrite`, whose action is the analysed
//! query, serialised.

use super::depend::{self, Kind, Object};
use super::relation::{self, NewColumn, NewRelation};
use super::{Ddl, drop, new_oid};
use crate::analyse::set_ops::empty_query;
use crate::analyse::{ParamTypes, analyse_query};
use crate::parse::utility::CreateView;
use crate::plan::query_walk::{Visitor, nested_queries, own_rte, visit_clauses};
use crate::query::{Query, RteKind};
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, RelationKind, RelationPersistence, Table};
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::{NewRow, options_array};
use std::collections::BTreeSet;
use types::Datum;

impl Ddl<'_> {
    /// Makes or replaces a view.
    ///
    /// # Errors
    /// `42P07`, `42P16`, `0A000`; the query's own.
    pub fn create_view(&mut self, s: &CreateView) -> Result<()> {
        let env = std::rc::Rc::clone(self.session.env());
        let mut params = ParamTypes::fixed(Vec::new());
        let query = analysed_under_locks(self.state(), &mut || {
            analyse_query(&s.query, &self.source, self.state(), &mut params, &*env)
        })?;
        if query.modifies_in_with() {
            bail!(
                FEATURE_NOT_SUPPORTED,
                "views must not contain data-modifying statements in WITH"
            );
        }
        if s.check_option.is_some() || s.options.iter().any(|o| o.name == "check_option") {
            may_check(self.state(), &query)?;
        }
        let options = view_options(s)?;
        let mut temporary = s.temporary || s.name.schema.as_deref() == Some("pg_temp");
        if !temporary && reads_temporary(self.state(), &query)? {
            // It can't outlive what it reads.
            temporary = true;
            self.notice(
                base::SqlState::SUCCESSFUL_COMPLETION,
                format!("view \"{}\" will be a temporary view", s.name.name),
            )?;
        }
        let namespace = self.relation_namespace(&s.name, temporary)?;
        let mut columns: Vec<NewColumn> = query
            .targets
            .iter()
            .filter(|t| !t.hidden)
            .zip(query.output_types())
            .map(|(t, ty)| NewColumn::plain(&t.name, ty))
            .collect();
        if s.columns.len() > columns.len() {
            bail!(SYNTAX_ERROR, "CREATE VIEW specifies more column names than columns");
        }
        for (column, name) in columns.iter_mut().zip(&s.columns) {
            column.name.clone_from(name);
        }
        if let Some(c) = columns.iter().find(|c| c.ty.oid == types::oids::RECORD) {
            bail!(INVALID_TABLE_DEFINITION, "column \"{}\" has pseudo-type record", c.name);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = columns.iter().find(|c| !seen.insert(c.name.as_str())) {
            bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", twice.name);
        }
        let state = self.state();
        let temporary = temporary || namespace == state.temp_schema.get();
        let mut query = query;
        let shown = query.targets.iter_mut().filter(|t| !t.hidden);
        for (target, column) in shown.zip(&columns) {
            target.name.clone_from(&column.name);
        }
        let txn = state.txn()?;
        let existing = match state.catalog.relation_oid(&txn, namespace, &s.name.name)? {
            Some(oid) if s.or_replace => state.catalog.table(&txn, oid)?,
            _ => None,
        };
        let view = match existing {
            Some(old) => {
                replace(state, &old, &columns)?;
                self.rows_have_changed(&old)?;
                let options = options_array(&options);
                relation::update_class(state, old.oid, |row| row.set("reloptions", options))?;
                old.oid
            }
            None => relation::create(
                state,
                &NewRelation {
                    name: s.name.name.clone(),
                    namespace,
                    kind: RelationKind::View,
                    persistence: if temporary {
                        RelationPersistence::Temporary
                    } else {
                        RelationPersistence::Permanent
                    },
                    owner: state.current_user.borrow().oid,
                    columns,
                    options,
                    toast_options: RelationOptions::new(),
                },
            )?,
        };
        if view < Oid::FIRST_NORMAL && s.name.name != "pg_shadow" {
            // Init's views are for everybody to read, but for some. A dump leaves out what is given here, and not what GRANT gives.
            let readers = match &*s.name.name {
                "pg_aios" => Some("pg_read_all_stats=r/postgres"),
                "pg_config"
                | "pg_file_settings"
                | "pg_hba_file_rules"
                | "pg_ident_file_mappings" => None,
                _ => Some("=r/postgres"),
            };
            let acl: Vec<&str> =
                std::iter::once("postgres=arwdDxtm/postgres").chain(readers).collect();
            let acl = engine::catalog::bootstrap::acl(&acl);
            let rows = state.catalog.rows(&txn);
            engine::catalog::bootstrap::initial_privileges(&rows, "pg_class", view, &acl)?;
            relation::update_class(state, view, |row| row.set("relacl", acl))?;
        }
        store_rule(state, view, &query)
    }
}

/// The options that CREATE VIEW gives, WITH CHECK OPTION among them.
fn view_options(s: &CreateView) -> Result<RelationOptions> {
    let mut options = super::storage_options::view_options(&s.options)?;
    if let Some(check) = &s.check_option
        && options.insert("check_option".into(), check.clone()).is_some()
    {
        bail!(INVALID_PARAMETER_VALUE, "parameter \"check_option\" specified more than once");
    }
    Ok(options)
}

/// Only what is written through a view can be checked.
///
/// # Errors
/// `0A000`
pub(super) fn may_check(catalog: &dyn CatalogView, query: &Query) -> Result<()> {
    match crate::updatable::not_updatable(catalog, query, true)? {
        None => Ok(()),
        Some(why) => Err(base::SqlError::new(
            base::SqlState::FEATURE_NOT_SUPPORTED,
            "WITH CHECK OPTION is supported only on automatically updatable views",
        )
        .hint(why)
        .into()),
    }
}

/// CREATE OR REPLACE: the old columns stay as they are, new ones come behind them.
fn replace(state: &crate::session::SessionState, old: &Table, columns: &[NewColumn]) -> Result<()> {
    if old.kind != RelationKind::View {
        bail!(WRONG_OBJECT_TYPE, "\"{}\" is not a view", old.name);
    }
    crate::acl::check_owner(state, old)?;
    let mode = txn::LockMode::AccessExclusive;
    let old = &super::truncate::lock_and_look_again(state, old.oid, mode)?;
    if columns.len() < old.columns.len() {
        bail!(INVALID_TABLE_DEFINITION, "cannot drop columns from view");
    }
    for (was, is) in old.columns.iter().zip(columns) {
        if was.name != is.name {
            return Err(base::SqlError::new(
                base::SqlState::INVALID_TABLE_DEFINITION,
                format!("cannot change name of view column \"{}\" to \"{}\"", was.name, is.name),
            )
            .hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
            .into());
        }
        if was.declared() != is.ty {
            bail!(
                INVALID_TABLE_DEFINITION,
                "cannot change data type of view column \"{}\" from {} to {}",
                was.name,
                types::format_type(was.declared().oid, was.declared().typmod),
                types::format_type(is.ty.oid, is.ty.typmod)
            );
        }
    }
    for (number, column) in (1..).zip(columns).skip(old.columns.len()) {
        relation::insert_column(state, old.oid, number, column)?;
    }
    let count = i64::try_from(columns.len()).unwrap_or(0);
    relation::update_class(state, old.oid, |row| {
        row.set("relnatts", Datum::Int2(i16::try_from(count).unwrap_or(0)));
    })?;
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for rule in rows.find("pg_rewrite", &[("ev_class", Datum::Oid(old.oid))])? {
        drop::forget_dependencies(state, Object::of("pg_rewrite", rule.oid("oid")))?;
        rows.delete(&rule)?;
    }
    Ok(())
}

/// What `analyse` makes of a query, the relations in it locked: none of them goes before it is known that a view depends on it.
///
/// # Errors
/// What `analyse` meets; those of waiting.
pub(super) fn analysed_under_locks(
    state: &crate::session::SessionState,
    analyse: &mut dyn FnMut() -> Result<Query>,
) -> Result<Query> {
    loop {
        let before = state.catalog.generation();
        let query = crate::relations::analysed(state, &mut *analyse).0?;
        let mut used = BTreeSet::new();
        relations_of(&query, &mut used, &mut BTreeSet::new());
        let used: BTreeSet<Oid> = used.into_iter().map(|(relation, _)| relation).collect();
        for relation in used {
            crate::relations::lock(state, relation, txn::LockMode::AccessShare)?;
        }
        if state.catalog.generation() == before {
            return Ok(query);
        }
        state.check_cancel()?;
    }
}

pub(super) fn store_rule(
    state: &crate::session::SessionState,
    view: Oid,
    query: &Query,
) -> Result<()> {
    let mut stripped = query.clone();
    without_views(&mut stripped);
    let action = engine::catalog::stored::to_text(&stripped)?;
    let txn = state.txn()?;
    let rule = new_oid(state, "pg_rewrite")?;
    let row = NewRow::of("pg_rewrite")
        .oid("oid", rule)
        .text("rulename", "_RETURN")
        .oid("ev_class", view)
        .char("ev_type", b'1')
        .char("ev_enabled", b'O')
        .bool("is_instead", true)
        .text("ev_qual", "<>")
        .text("ev_action", &action);
    state.catalog.rows(&txn).insert(&row)?;
    relation::update_class(state, view, |row| row.set("relhasrules", Datum::Bool(true)))?;
    let rule = Object::of("pg_rewrite", rule);
    depend::record(state, rule, Object::relation(view), Kind::Internal)?;
    let mut used = BTreeSet::new();
    let mut types = BTreeSet::new();
    let mut fields = BTreeSet::new();
    Uses { above: Vec::new(), used: &mut used, types: &mut types, fields: &mut fields }
        .query(&mut query.clone());
    for ty in types {
        depend::record_type(state, rule, ty)?;
    }
    used.extend(depend::columns_of_fields(state, fields)?);
    for (relation, column) in used {
        let on = Object { sub: column, ..Object::relation(relation) };
        if relation != view {
            depend::record(state, rule, on, Kind::Normal)?;
        }
    }
    let mut keys = Vec::new();
    keys_of(query, &mut keys);
    for index in keys {
        for row in
            state.catalog.rows(&txn).find("pg_constraint", &[("conindid", Datum::Oid(index))])?
        {
            depend::record(state, rule, Object::of("pg_constraint", row.oid("oid")), Kind::Normal)?;
        }
    }
    state.catalog.changed_alone(view);
    Ok(())
}

/// Takes the queries of the views out that a query reads: they are what they are when it is run.
fn without_views(query: &mut Query) {
    for entry in &mut query.range_table {
        if let RteKind::Subquery { query: inner, view: 1.. } = &mut entry.kind {
            **inner = empty_query();
        }
    }
    nested_queries(query).for_each(without_views);
}

/// Does a query read a temporary relation?
///
/// # Errors
/// I/O.
pub(super) fn reads_temporary(state: &crate::session::SessionState, query: &Query) -> Result<bool> {
    let mut used = BTreeSet::new();
    relations_of(query, &mut used, &mut BTreeSet::new());
    let txn = state.txn()?;
    for oid in used.into_iter().map(|(oid, _)| oid).collect::<BTreeSet<_>>() {
        let table = state.catalog.table(&txn, oid)?;
        if table.is_some_and(|t| t.persistence == RelationPersistence::Temporary) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The indexes of the primary keys without which a query would be none.
fn keys_of(query: &Query, keys: &mut Vec<Oid>) {
    keys.extend(
        query.keys_relied_on.iter().filter(|k| !keys.contains(k)).copied().collect::<Vec<_>>(),
    );
    for entry in &query.range_table {
        if let RteKind::Subquery { query, view: 0, .. } = &entry.kind {
            keys_of(query, keys);
        }
    }
    query.ctes.iter().for_each(|cte| keys_of(&cte.query, keys));
    query.sub_selects.iter().for_each(|sub| keys_of(sub, keys));
}

/// The relations, and their columns, that a query reads. Views count as themselves.
fn relations_of(query: &Query, used: &mut BTreeSet<(Oid, i32)>, types: &mut BTreeSet<Oid>) {
    let fields = &mut BTreeSet::new();
    Uses { above: Vec::new(), used, types, fields }.query(&mut query.clone());
}

/// What an entry of a range table stands for.
enum Place {
    /// A relation, or a view.
    Relation(Oid),
    /// A join; what its columns are.
    Join(Vec<expr::Expr>),
    /// Rows of that type.
    Rows(Oid),
    Other,
}

impl Place {
    fn of(kind: &RteKind) -> Place {
        match kind {
            RteKind::Relation { oid, .. } => Place::Relation(Oid(*oid)),
            RteKind::Subquery { view, .. } if *view != 0 => Place::Relation(Oid(*view)),
            RteKind::Join { vars, .. } => Place::Join(vars.clone()),
            RteKind::Function { calls, .. } => match &calls[..] {
                [one] => Place::Rows(one.call.ty().oid),
                _ => Place::Other,
            },
            _ => Place::Other,
        }
    }
}

/// What a query, and the queries in it, use.
struct Uses<'a> {
    /// The entries of the query that is walked, and before them those of the queries around it.
    above: Vec<Vec<Place>>,
    used: &'a mut BTreeSet<(Oid, i32)>,
    types: &'a mut BTreeSet<Oid>,
    /// Fields taken from rows of tables: the row's type, and the field's place.
    fields: &'a mut BTreeSet<(Oid, usize)>,
}

impl Uses<'_> {
    fn query(&mut self, query: &mut Query) {
        let places: Vec<Place> = query.range_table.iter().map(|e| Place::of(&e.kind)).collect();
        self.used.extend(places.iter().filter_map(|place| match place {
            Place::Relation(oid) => Some((*oid, 0)),
            _ => None,
        }));
        self.above.push(places);
        for entry in &mut query.range_table {
            match &mut entry.kind {
                // What is used of a join is seen where it is used.
                RteKind::Join { .. } => {}
                RteKind::Subquery { query, view: 0 } => self.query(query),
                kind => {
                    if matches!(kind, RteKind::Function { .. }) {
                        let named = entry.column_types.iter().map(|ty| ty.oid);
                        self.types.extend(named.filter(|ty| depend::is_of_users(*ty)));
                    }
                    own_rte(kind, 0, self);
                }
            }
        }
        visit_clauses(query, 0, self);
        query.ctes.iter_mut().for_each(|cte| self.query(&mut cte.query));
        query.sub_selects.iter_mut().for_each(|sub| self.query(sub));
        self.above.pop();
    }

    /// A column of an entry, `levels_up` queries out.
    fn column(&mut self, levels_up: u32, rte: usize, column: i32) {
        let out = usize::try_from(levels_up).unwrap_or(usize::MAX).saturating_add(1);
        let Some(level) = self.above.len().checked_sub(out) else { return };
        match self.above[level].get(rte) {
            Some(Place::Relation(oid)) => {
                self.used.insert((*oid, column.max(0)));
            }
            Some(Place::Rows(ty)) => {
                let at = usize::try_from(column - 1).ok();
                self.fields.extend(at.map(|at| (*ty, at)));
            }
            Some(Place::Join(columns)) => {
                let mut meant: Vec<expr::Expr> = match usize::try_from(column - 1) {
                    Ok(at) => columns.get(at).cloned().into_iter().collect(),
                    Err(_) => columns.clone(),
                };
                let within = self.above.split_off(level + 1);
                for e in &mut meant {
                    e.rewrite(&mut |e| self.expr(e, 0));
                }
                self.above.extend(within);
            }
            _ => {}
        }
    }
}

impl Visitor for Uses<'_> {
    fn expr(&mut self, e: &mut expr::Expr, _: u32) -> bool {
        depend::types_of_node(e, self.types);
        match e {
            expr::Expr::Var { levels_up, rte, column, .. } => {
                self.column(*levels_up, *rte, *column);
            }
            expr::Expr::Field { arg, index, .. } => {
                self.fields.insert((arg.ty().oid, *index));
            }
            expr::Expr::Const(c) if c.ty.oid == types::oids::REGCLASS => {
                if let Datum::Oid(oid) = c.value {
                    self.used.insert((oid, 0));
                }
            }
            _ => {}
        }
        false
    }
}
