//! CREATE INDEX and the building of indexes.
//!
//! # Purpose
//! [`build`] fills an empty B-tree from a table: used by CREATE INDEX, by constraints, by REINDEX and by
//! rewrites.
//!
//! # Locks
//! CREATE INDEX holds Share on the table: readers go on, writers wait. CONCURRENTLY is [`super::concurrently`]'s.
//!
//! # Differs from PostgreSQL
//! Of several indexes made at once on a table that had none, all but one wait, when they are built, for that one's transaction: it says in the table's row
//! that there is one ([`relation::note_index`]). PostgreSQL writes that where it stands.

use super::depend::{self, Kind, Object};
use super::index_feed::{RowsOf, feed_plain};
use super::relation::{IndexColumnRow, IndexRows};
use super::{Ddl, new_oid, relation, virtual_columns};
use crate::analyse::{self, IndexExpression};
use crate::exec::modify::IndexWriter;
use crate::maintenance::commands::{self, Command, Progress, create_index as progress};
use crate::parse::ast::IndexElement;
use crate::parse::utility::CreateIndex;
use crate::session::SessionState;
use crate::session::run::{exec_context, work_mem_bytes};
use base::{Oid, Result, SqlError, SqlState, bail};
use btree::{BuildOutcome, SortConfig, Sorter};
use engine::catalog::model::{Index, RelationKind, RelationPersistence, Table};
use engine::catalog::options::RelationOptions;
use expr::TypeRef;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use txn::{LockMode, Snapshot};
use types::Datum;

/// What an index to be is made of.
pub struct NewIndex {
    /// Its name; None: one is chosen.
    pub name: Option<String>,
    /// UNIQUE
    pub unique: bool,
    /// PRIMARY KEY
    pub primary: bool,
    /// NULLS NOT DISTINCT
    pub nulls_not_distinct: bool,
    /// Its constraint is DEFERRABLE.
    pub deferrable: bool,
    /// Columns, keys first.
    pub columns: Vec<IndexColumnRow>,
    /// How many are keys.
    pub key_columns: usize,
    /// A partial index's WHERE.
    pub predicate: Option<expr::Expr>,
    /// Storage parameters.
    pub options: RelationOptions,
    /// What the name ends with if one is chosen.
    pub suffix: &'static str,
    /// Made empty, neither kept up nor used yet: CONCURRENTLY sees to the rest.
    pub concurrently: bool,
}

/// CREATE on the table's schema, in which the index will be; temporary tables' is for whoever has such a table.
///
/// # Errors
/// `42501`
pub(super) fn check_may_make_index(state: &SessionState, table: &Table) -> Result<()> {
    if table.namespace == state.temp_schema.get() {
        return Ok(());
    }
    super::check_schema_create(state, table.namespace, &table.namespace_name)
}

impl Ddl<'_> {
    /// CREATE INDEX
    ///
    /// # Errors
    /// `42P07`, `42704`, `42P17`, `23505`; I/O.
    pub fn create_index(&mut self, statement: &CreateIndex) -> Result<()> {
        self.create_index_rows(statement).map(|_| ())
    }

    /// CREATE INDEX, or the first step of it when it is CONCURRENTLY: returns table and index, None if there is one
    /// already.
    pub(super) fn create_index_rows(
        &mut self,
        statement: &CreateIndex,
    ) -> Result<Option<(Oid, Oid)>> {
        if statement.method != "btree" {
            return match statement.method.as_str() {
                "hash" | "gist" | "gin" | "spgist" | "brin" => {
                    Err(base::Error::unsupported(format!("access method \"{}\"", statement.method)))
                }
                other => bail!(UNDEFINED_OBJECT, "access method \"{other}\" does not exist"),
            };
        }
        let check = |table: &Table| {
            if !matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView) {
                let what = match table.kind {
                    RelationKind::Index | RelationKind::Composite => "open",
                    _ => "create index on",
                };
                return Err(SqlError::new(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot {what} relation \"{}\"", table.name),
                )
                .detail(format!(
                    "This operation is not supported for {}.",
                    crate::acl::nouns(table.kind)
                ))
                .into());
            }
            super::refuse_catalog(table)?;
            crate::acl::check_owner(self.state(), table)?;
            crate::relations::check_own(self.state(), table, "create indexes on temporary tables")
        };
        let mode =
            if statement.concurrently { LockMode::ShareUpdateExclusive } else { LockMode::Share };
        let table = self.relation_locked(&statement.table, mode, &check)?;
        let state = self.state();
        check_may_make_index(state, &table)?;
        super::check_tablespace(statement.tablespace.as_deref())?;
        let txn = state.txn()?;
        if let Some(name) = &statement.name
            && state.catalog.relation_oid(&txn, table.namespace, name)?.is_some()
        {
            if statement.if_not_exists {
                self.notice(
                    SqlState::DUPLICATE_TABLE,
                    format!("relation \"{name}\" already exists, skipping"),
                )?;
                return Ok(None);
            }
            bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
        }
        self.check_not_in_use(&table, "CREATE INDEX")?;
        let mut columns = Vec::new();
        for element in &statement.elements {
            columns.push(self.index_column(&table, element, true)?);
        }
        for element in &statement.include {
            columns.push(self.index_column(&table, element, false)?);
        }
        let predicate = match &statement.filter {
            None => None,
            Some(filter) => Some(analyse::analyse_index_predicate(
                filter,
                &table,
                &self.source,
                state,
                self.session.env().as_ref(),
            )?),
        };
        // They are not in the row that an expression is worked out of.
        let (mut system, mut whole) = (false, false);
        let exprs = columns.iter().filter_map(|c| c.expr.as_ref()).chain(&predicate);
        exprs.for_each(|e| {
            e.walk(&mut |v| {
                if let expr::Expr::Var { column, .. } = v {
                    system |= *column < 0;
                    whole |= *column == 0;
                }
            });
        });
        if whole {
            return Err(base::Error::unsupported("an index expression over a whole row"));
        }
        if system {
            bail!(FEATURE_NOT_SUPPORTED, "index creation on system columns is not supported");
        }
        if columns.iter().any(|c| virtual_columns::is_asked(&table, c.column, c.expr.as_ref()))
            || virtual_columns::is_asked(&table, 0, predicate.as_ref())
        {
            bail!(FEATURE_NOT_SUPPORTED, "indexes on virtual generated columns are not supported");
        }
        let new = NewIndex {
            name: statement.name.clone(),
            unique: statement.unique,
            primary: false,
            nulls_not_distinct: statement.nulls_not_distinct,
            deferrable: false,
            key_columns: statement.elements.len(),
            columns,
            predicate,
            options: super::storage_options::index_options(&statement.options)?,
            suffix: "idx",
            concurrently: statement.concurrently,
        };
        let (index, _) = self.make_index(&table, &new)?;
        Ok(Some((table.oid, index)))
    }

    fn index_column(
        &self,
        table: &Arc<Table>,
        element: &IndexElement,
        key: bool,
    ) -> Result<IndexColumnRow> {
        let analysed = analyse::analyse_index_expr(
            element,
            table,
            &self.source,
            self.state(),
            self.session.env().as_ref(),
        )?;
        let IndexExpression { expr, column, ty, collation, name } = analysed;
        let collation = if key {
            collation_in(element, ty.oid)?.unwrap_or(collation)
        } else {
            check_included(element)?;
            Oid::INVALID
        };
        // What is only carried along need not be comparable.
        let opclass = if key { opclass(ty, element.opclass.as_deref())? } else { Oid::INVALID };
        Ok(IndexColumnRow {
            name,
            column,
            expr,
            ty,
            opclass,
            collation,
            descending: element.descending,
            nulls_first: element.nulls_first.unwrap_or(element.descending),
        })
    }

    /// Makes and builds an index on `table`, which is locked. Returns its OID and name.
    ///
    /// # Errors
    /// `42P07`, `23505`; I/O.
    pub fn make_index(&mut self, table: &Arc<Table>, new: &NewIndex) -> Result<(Oid, String)> {
        let state = self.state();
        let keys = new.columns[..new.key_columns].iter().map(|c| c.ty.oid);
        if let Some(ty) = keys.into_iter().find(|ty| engine::relation::is_only_told_apart(*ty)) {
            let what = format!("an index on type {}", types::format_type(ty, -1));
            return Err(base::Error::unsupported(what));
        }
        let columns = unique_names(new.columns.clone());
        let name = match &new.name {
            Some(name) => name.clone(),
            None => {
                // Those of INCLUDE too.
                let parts: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                let parts = if new.primary { String::new() } else { parts.join("_") };
                super::table::choose_name(state, &table.name, &parts, new.suffix, table.namespace)?
            }
        };
        let oid = new_oid(state, "pg_class")?;
        if !new.concurrently {
            crate::relations::lock(state, oid, LockMode::AccessExclusive)?;
            crate::relations::lock(state, table.oid, LockMode::Share)?;
        }
        let mut rows = IndexRows {
            oid,
            name: name.clone(),
            namespace: table.namespace,
            owner: table.owner,
            table: table.oid,
            persistence: table.persistence,
            columns,
            key_columns: new.key_columns,
            unique: new.unique,
            nulls_not_distinct: new.nulls_not_distinct,
            primary: new.primary,
            deferrable: new.deferrable,
            predicate: new.predicate.clone(),
            options: new.options.clone(),
            valid: !new.concurrently,
            ready: !new.concurrently,
            ..IndexRows::default()
        };
        let description = describe(&rows);
        let schema = engine::relation::key_schema(&table.name, &description)?;
        let (file_number, tree) = relation::create_btree_file(state, table.persistence, schema)?;
        rows.file_number = file_number;
        relation::insert_index(state, &rows)?;
        let index =
            Arc::new(Index { storage: relation::location(state, file_number), ..description });
        if new.concurrently {
            tree.create()?;
        } else {
            build(self.session, table, &index, &tree)?;
        }
        let state = self.state();
        for column in &rows.columns {
            let object = Object::relation(oid);
            match &column.expr {
                None => {
                    let on = Object::column(table.oid, column.column);
                    depend::record(state, object, on, Kind::Auto)?;
                }
                Some(expr) => depend::record_expr(state, object, table.oid, expr, Kind::Auto)?,
            }
        }
        if let Some(predicate) = &rows.predicate {
            depend::record_expr(state, Object::relation(oid), table.oid, predicate, Kind::Auto)?;
        }
        depend::record(state, Object::relation(oid), Object::relation(table.oid), Kind::Auto)?;
        relation::note_index(state, table.oid)?;
        Ok((oid, name))
    }
}

/// The collation that is written: one that there is, and of a type that has one. (All are in the order of code points.)
fn collation_in(element: &IndexElement, ty: Oid) -> Result<Option<Oid>> {
    let Some(names) = &element.collation else { return Ok(None) };
    if !types::type_info(ty).is_some_and(|t| t.collation.is_valid()) {
        let ty = types::format_type(ty, -1);
        bail!(DATATYPE_MISMATCH, "collations are not supported by type {ty}");
    }
    analyse::collation_of(names).map(Some)
}

/// What INCLUDE names are columns, in no order.
fn check_included(element: &IndexElement) -> Result<()> {
    if element.column.is_none() {
        bail!(FEATURE_NOT_SUPPORTED, "expressions are not supported in included columns");
    }
    let what = match element {
        e if e.collation.is_some() => "a collation",
        e if e.opclass.is_some() => "an operator class",
        e if e.descending => "ASC/DESC options",
        e if e.nulls_first.is_some() => "NULLS FIRST/LAST options",
        _ => return Ok(()),
    };
    bail!(INVALID_OBJECT_DEFINITION, "including column does not support {what}")
}

/// Columns of an index are told apart: `expr`, `expr1`, …
fn unique_names(mut columns: Vec<IndexColumnRow>) -> Vec<IndexColumnRow> {
    for i in 1..columns.len() {
        let base = columns[i].name.clone();
        let mut n = 0;
        while columns[..i].iter().any(|c| c.name == columns[i].name) {
            n += 1;
            columns[i].name = format!("{base}{n}");
        }
    }
    columns
}

/// The rows of an index to be, as a description.
fn describe(rows: &IndexRows) -> Index {
    Index {
        oid: rows.oid,
        name: rows.name.clone(),
        namespace: rows.namespace,
        table: rows.table,
        storage: base::RelationId { database: Oid(0), file_number: rows.file_number },
        columns: rows
            .columns
            .iter()
            .map(|c| engine::catalog::model::IndexColumn {
                column: c.column,
                expr: c.expr.clone().map(Arc::new),
                ty: c.ty,
                opclass: c.opclass,
                collation: c.collation,
                descending: c.descending,
                nulls_first: c.nulls_first,
                name: c.name.clone(),
            })
            .collect(),
        key_columns: rows.key_columns,
        unique: rows.unique,
        nulls_not_distinct: rows.nulls_not_distinct,
        primary: rows.primary,
        immediate: !rows.deferrable,
        valid: rows.valid,
        ready: rows.ready,
        live: true,
        predicate: rows.predicate.clone().map(Arc::new),
        options: rows.options.clone(),
        reltuples: -1.0,
        relpages: 0,
        persistence: rows.persistence,
        constraint: None,
        constraint_oid: Oid::INVALID,
        deferred: false,
    }
}

/// Fills an empty index from its table and notes how large both are.
///
/// # Errors
/// `23505` when two live rows have one key; `57014`; I/O.
pub fn build(
    session: &crate::session::Session,
    table: &Arc<Table>,
    index: &Arc<Index>,
    tree: &Arc<btree::Btree>,
) -> Result<()> {
    build_seen(session, table, index, tree, None, false)
}

/// Fills an empty index from the rows that a snapshot sees (None: nobody writes the table, all that anybody may still
/// see) and notes how large it is. If it `was_whole` before, its key is the same all along any chain.
///
/// # Errors
/// As [`build`].
pub(super) fn build_seen(
    session: &crate::session::Session,
    table: &Arc<Table>,
    index: &Arc<Index>,
    tree: &Arc<btree::Btree>,
    seen: Option<Arc<Snapshot>>,
    was_whole: bool,
) -> Result<()> {
    let shown = commands::show(session.state(), Command::CreateIndex, table.oid);
    if let Some(shown) = &shown {
        shown.progress.set(progress::COMMAND, 1);
    }
    let state = session.state().as_ref();
    let at = state.progress.of(Command::CreateIndex);
    let show = |n: usize, value: u64| {
        if let Some(at) = &at {
            at.set(n, value);
        }
    };
    show(progress::INDEX, u64::from(index.oid.0));
    show(progress::PHASE, progress::BUILD);
    show(progress::SUBPHASE, progress::SCANNING);
    show(progress::BLOCKS_DONE, 0);
    show(progress::TUPLES_DONE, 0);
    show(progress::TUPLES_TOTAL, 0);
    let txn = state.txn()?;
    let env = session.env();
    let snapshot = txn.take_latest_snapshot();
    let cx = exec_context(state, env, &txn, snapshot, &[], work_mem_bytes(state));
    let heap = state.open_relation(table)?.heap;
    show(progress::BLOCKS_TOTAL, u64::from(heap.len_blocks()?.0));
    let txns = &state.cluster.engine().txns;
    let begun = txns.current_csn();
    let lacks_some = AtomicBool::new(false);
    let from = RowsOf { heap: &heap, table, index, seen: seen.as_ref(), lacks_some: &lacks_some };
    let (sorters, rows) = feed(session, &from, tree, at.as_deref())?;
    if lacks_some.load(Ordering::Relaxed) && !was_whole {
        state.cluster.young_indexes.note(index.oid, begun, txn.xid()?, txns)?;
    }
    let entries = sorters.iter().map(Sorter::count).sum();
    show(progress::BLOCKS_DONE, u64::from(heap.len_blocks()?.0));
    show(progress::TUPLES_TOTAL, entries);
    show(progress::SUBPHASE, progress::SORTING);
    base::stop_point!("sql.index.build.sorting");
    let sorted = Sorter::finish_all(sorters, &state.backend.cancel)?;
    show(progress::SUBPHASE, progress::LOADING);
    let built = tree.build(sorted, &mut |done| {
        show(progress::TUPLES_DONE, done);
        state.check_cancel()
    })?;
    show(progress::TUPLES_DONE, entries);
    state.progress.add(Command::Cluster, commands::cluster::INDEXES_REBUILT, 1);
    if let BuildOutcome::Duplicate { values, .. } = built {
        return Err(duplicate(&cx, table, index, &values));
    }
    note_size(state, index.oid, index.storage, index.persistence, Some(entries))?;
    // "Never counted" stays so for an empty table, which is often about to be filled.
    let rows = (rows > 0 || table.reltuples >= 0.0).then_some(rows);
    match table.storage {
        // Others may be changing the table's row.
        // A table that autovacuum leaves alone may have been given its statistics.
        Some(id) if seen.is_none() && !is_left_alone(table) => {
            note_size(state, table.oid, id, table.persistence, rows)
        }
        _ => Ok(()),
    }
}

/// How the entries of an index are sorted.
pub(super) fn sort_config(state: &SessionState) -> SortConfig {
    let memory_kb = usize::try_from(state.settings.borrow().int("maintenance_work_mem"));
    SortConfig {
        memory_bytes: memory_kb.unwrap_or(65_536).saturating_mul(1024),
        disk: Arc::clone(&state.cluster.engine().disk),
        temp_dir: "base/pgsql_tmp".to_owned(),
        space: Some(Arc::new(crate::exec::SortSpace::new())),
    }
}

/// Collects the entries of an index: the sorters, and the number of live rows.
///
/// # Errors
/// `57014`, `54000`, I/O.
pub(super) fn feed(
    session: &crate::session::Session,
    from: &RowsOf<'_>,
    tree: &Arc<btree::Btree>,
    progress: Option<&Progress>,
) -> Result<(Vec<Sorter>, u64)> {
    let state = session.state().as_ref();
    let config = sort_config(state);
    let cancel = &state.backend.cancel;
    let fed = match feed_plain(from, tree.schema(), config.clone(), cancel, progress)? {
        Some(fed) => fed,
        None => {
            let (sorter, rows) = feed_rows(session, from, tree, config)?;
            (vec![sorter], rows)
        }
    };
    crate::relations::note_whole_scan(state, from.table.oid, fed.1);
    Ok(fed)
}

/// Collects the entries of an index row by row, expressions and predicate evaluated.
fn feed_rows(
    session: &crate::session::Session,
    from: &RowsOf<'_>,
    tree: &Arc<btree::Btree>,
    config: SortConfig,
) -> Result<(Sorter, u64)> {
    let RowsOf { heap, table, index, .. } = *from;
    let (state, env) = (session.state().as_ref(), session.env());
    let mut sorter = Sorter::new(Arc::clone(tree.schema()), config);
    let mut writer = IndexWriter::over(index, tree)?;
    let mut decoder = RowDecoder::new(table, index);
    let exec_params = std::cell::RefCell::new(Vec::new());
    let eval = expr::eval::EvalContext::new(env.as_ref(), &exec_params);
    let mut scan = from.scan(None)?;
    let mut rows = 0u64;
    while scan.next_page()? {
        state.check_cancel()?;
        state.progress.set(
            Command::CreateIndex,
            progress::BLOCKS_DONE,
            u64::from(scan.block().0) + 1,
        );
        for found in scan.tuples() {
            let row = match decoder.decode(heap, found.tuple.bytes) {
                Ok(row) => row,
                // The snapshot that saw it has gone meanwhile, and its values with it.
                Err(_) if !found.alive && heap.is_out_of_sight(&found.tuple)? => continue,
                Err(e) => return Err(e),
            };
            rows += u64::from(found.alive);
            if writer.encode(row, &eval)? {
                sorter.add(&writer.values(), found.tid, found.alive)?;
            }
        }
        from.note(&scan);
    }
    from.note(&scan);
    Ok((sorter, rows))
}

/// `23505`, with the key that two rows have.
pub(super) fn duplicate(
    cx: &crate::exec::ExecContext<'_>,
    table: &Table,
    index: &Index,
    values: &[Option<Vec<u8>>],
) -> base::Error {
    let keys = index.columns.iter().zip(values).take(index.key_columns);
    let (names, shown): (Vec<String>, Vec<String>) = keys
        .map(|(column, value)| {
            let datum = match value {
                None => Datum::Null,
                Some(bytes) => types::decode(column.ty.oid, bytes).unwrap_or_default(),
            };
            let name = match &column.expr {
                Some(expr) => relation::expr_text(expr, table, cx.env).unwrap_or_default(),
                None => table.name_of_indexed(column).to_owned(),
            };
            (name, crate::exec::modify::shown(column.ty.oid, &datum, cx))
        })
        .unzip();
    SqlError::new(
        SqlState::UNIQUE_VIOLATION,
        format!("could not create unique index \"{}\"", index.name),
    )
    .detail(format!("Key ({})=({}) is duplicated.", names.join(", "), shown.join(", ")))
    .table(&table.namespace_name, &table.name)
    .constraint(&index.name)
    .into()
}

/// Decodes the columns that an index needs; the others stay NULL.
pub(crate) struct RowDecoder {
    desc: page::tuple::TupleDesc,
    columns: Vec<(usize, Oid, Datum)>,
    last: usize,
    row: Vec<Datum>,
}

impl RowDecoder {
    pub(crate) fn new(table: &Table, index: &Index) -> RowDecoder {
        let mut used = std::collections::HashSet::new();
        let mut note = |expr: &expr::Expr| {
            expr.walk(&mut |e| {
                if let expr::Expr::Var { column, .. } = e {
                    used.insert(*column);
                }
            });
        };
        for column in &index.columns {
            if let Some(expr) = &column.expr {
                note(expr);
            }
        }
        if let Some(predicate) = &index.predicate {
            note(predicate);
        }
        used.extend(index.columns.iter().map(|c| c.column).filter(|c| *c > 0));
        let columns: Vec<(usize, Oid, Datum)> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| used.contains(&c.number))
            .map(|(i, c)| (i, c.ty.oid, c.missing.clone().unwrap_or_default()))
            .collect();
        RowDecoder {
            desc: engine::relation::tuple_desc(&table.columns),
            last: columns.last().map_or(0, |(i, ..)| i + 1),
            columns,
            row: vec![Datum::Null; table.columns.len()],
        }
    }

    pub(crate) fn decode(&mut self, heap: &heap::Heap, tuple: &[u8]) -> Result<&[Datum]> {
        let mut attrs = vec![page::tuple::AttrValue::Null; self.last];
        page::tuple::deform(tuple, &self.desc, &mut attrs).map_err(base::Error::corrupt_file)?;
        let stored = page::tuple::TupleView { bytes: tuple, xid_base: base::Xid::INVALID }.natts();
        for (i, ty, missing) in &self.columns {
            self.row[*i] = match &attrs[*i] {
                page::tuple::AttrValue::Null if *i >= stored => missing.clone(),
                page::tuple::AttrValue::Null => Datum::Null,
                page::tuple::AttrValue::Inline(bytes) => types::decode(*ty, bytes)?,
                other => types::decode(*ty, &heap.detoast(other)?)?,
            };
        }
        Ok(&self.row)
    }
}

pub(super) fn is_left_alone(table: &Table) -> bool {
    let option = table.options.get("autovacuum_enabled");
    option.and_then(|o| types::io::parse_bool(o)) == Some(false)
}

/// `relpages` of a relation, and `reltuples` if they were counted: where they stand, as VACUUM does, for others may be making an index of the same table.
#[expect(clippy::cast_precision_loss, reason = "pg_class keeps floats")]
pub(super) fn note_size(
    state: &SessionState,
    oid: Oid,
    storage: base::RelationId,
    persistence: RelationPersistence,
    rows: Option<u64>,
) -> Result<()> {
    let rel = state.cluster.storage().open(storage, persistence);
    let pages = i32::try_from(rel.len_blocks(base::Fork::Main)?.0).unwrap_or(i32::MAX);
    relation::update_class_in_place(state, oid, |row| {
        if let Some(rows) = rows {
            row.set("reltuples", Datum::Float4(rows as f32));
        }
        row.set("relpages", Datum::Int4(pages));
    })
}

/// The operator class of a key column.
///
/// # Errors
/// `42704` when the type has none, or there is none by that name.
pub fn opclass(ty: TypeRef, named: Option<&[String]>) -> Result<Oid> {
    let base_type = match ty.oid {
        types::oids::VARCHAR => types::oids::TEXT,
        types::oids::CIDR => types::oids::INET,
        t if types::enums::is_enum(t) => types::oids::ANYENUM,
        t if types::row_types::is_row(t) => types::oids::RECORD,
        other => other,
    };
    if let Some(named) = named {
        let name = named.last().map(String::as_str).unwrap_or_default();
        let found = types::facts::operator_classes().iter().find(|c| {
            c.method == Oid(403)
                && c.name == name
                && (c.input_type == base_type || name.starts_with("varchar"))
        });
        return match found {
            Some(class) => Ok(class.oid),
            None if types::facts::operator_classes()
                .iter()
                .any(|c| c.method == Oid(403) && c.name == name) =>
            {
                bail!(
                    DATATYPE_MISMATCH,
                    "operator class \"{name}\" does not accept data type {}",
                    types::format_type(ty.oid, -1)
                )
            }
            None => bail!(
                UNDEFINED_OBJECT,
                "operator class \"{name}\" does not exist for access method \"btree\""
            ),
        };
    }
    match types::registry::default_btree_class(ty.oid) {
        Some(class) => Ok(class.oid),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "data type {} has no default operator class for access method \"btree\"",
                types::format_type(ty.oid, -1)
            ),
        )
        .hint("You must specify an operator class for the index or define a default operator class for the data type.")
        .into()),
    }
}
