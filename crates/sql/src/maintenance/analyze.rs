//! ANALYZE of one table.
//!
//! # Locks
//! ShareUpdateExclusive on the table, AccessShare on its indexes; in a transaction block until its end.
//!
//! # Differs from PostgreSQL
//! Statistics of array elements are not gathered.

use super::analyze_extended::Seen;
use super::analyze_index::{index_fractions, largest_target};
use super::options::Options;
use super::progress::analyze as phase;
use super::throttle::throttle;
use super::vacuum::{Ignored, Target, lock_target, log_limit};
use crate::analyze_stats::{column_statistics, is_wide, sample_rows, width};
use crate::client::{Client, Notice, Severity};
use crate::session::{Session, SessionState};
use base::{GiveWay, Oid, Result, bail};
use buffer::Strategy;
use engine::catalog::defs;
use engine::catalog::load::RowSource;
use engine::catalog::model::{Column, ColumnStatistics, Table};
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::{NewRow, Row, options_of};
use engine::kept::KeptValue;
use page::tuple::AttrValue;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use txn::LockMode;
use types::Datum;
use vacuum::{AnalyzeSample, SampledRow, Throttle, UsageMeter};

/// `pg_statistic`: of itself nothing is kept there, and ANALYZE passes over it without a word.
pub(super) const STATISTICS: Oid = Oid(2619);

/// The least sample, where no statistics are asked for.
const FEWEST_ROWS: usize = 100;

impl Session {
    /// Analyses one table; `own`: in a transaction of its own.
    ///
    /// # Errors
    /// `42703`; I/O, cancellation.
    pub(crate) fn analyze_table(
        &mut self,
        target: &Target,
        options: &Options,
        own: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        if !own {
            let result = self.analyze_one(target, options, client);
            if let Some(txn) = self.state().txn_opt() {
                txn.advance_command()?;
            }
            return result;
        }
        self.begin_own()?;
        if let Err(error) = self.analyze_one(target, options, client) {
            self.abort_own();
            return Err(error);
        }
        self.end_own()
    }

    fn analyze_one(
        &mut self,
        target: &Target,
        options: &Options,
        client: &mut dyn Client,
    ) -> Result<()> {
        let state = Rc::clone(self.state());
        let mode = LockMode::ShareUpdateExclusive;
        let Some(table) = lock_target(self, target, mode, options, "analyze", client)? else {
            return Ok(());
        };
        if table.oid == STATISTICS {
            return Ok(());
        }
        let columns = chosen(&table, &target.columns)?;
        crate::relations::lock_indexes(&state, &table, LockMode::AccessShare)?;
        let started = UsageMeter::start();
        let name = format!("{}.{}", table.namespace_name, table.name);
        let verbose = options.verbose && !options.automatic;
        if verbose {
            let text = format!("analyzing \"{name}\"");
            client.notice(&Notice::new(Severity::Info, text))?;
        }
        let (progress, _shown) =
            state.cluster.maintenance.analyze(state.backend.pid, state.database.oid, table.oid);
        let open = state.open_relation(&table)?;
        let default = state.settings.borrow().int("default_statistics_target");
        let goal = |c: &Column| -> usize {
            let own = c.statistics_target.filter(|t| *t >= 0).map(i64::from);
            usize::try_from(own.unwrap_or(default)).unwrap_or(100)
        };
        let whole = target.columns.is_empty();
        let mut rows = columns.iter().map(|c| sample_rows(goal(c))).max().unwrap_or(0);
        if whole {
            rows = rows.max(sample_rows(largest_target(&state, &table, default)?));
        }
        let objects = super::analyze_extended::objects(
            &state,
            &table,
            &goal,
            usize::try_from(default).unwrap_or(100),
        )?;
        let wanted = objects.iter().map(|(_, target)| sample_rows(*target)).max();
        let rows = rows.max(FEWEST_ROWS).max(wanted.unwrap_or(0));
        let ring = options.buffer_usage_limit_kb.unwrap_or_else(|| {
            usize::try_from(state.settings.borrow().int("vacuum_buffer_usage_limit"))
                .unwrap_or(2048)
        });
        let strategy = Strategy::vacuum(open.heap.relation().pool(), ring);
        let settings = throttle(&state, &table, options.automatic, u64::MAX);
        if state.settings.borrow().bool("track_cost_delay_timing") {
            let progress = Arc::clone(&progress);
            let tell = move |slept: Duration| {
                let us = u64::try_from(slept.as_micros()).unwrap_or(u64::MAX);
                progress.delay_us.fetch_add(us, Ordering::Relaxed);
            };
            let _ = settings.on_sleep.set(Box::new(tell));
        }
        let mut throttle = Throttle::new(settings);
        progress.enter(phase::SAMPLING);
        let sample = {
            // Sampling reads through no snapshot.
            let _ignored = (!self.in_block()).then(|| Ignored::new(&state));
            vacuum::analyze_sample(
                &open.heap,
                rows,
                &state.backend,
                strategy,
                &mut throttle,
                rand::random(),
                &|total, scanned| {
                    progress.blocks_total.store(total.into(), Ordering::Relaxed);
                    progress.blocks_scanned.store(scanned.into(), Ordering::Relaxed);
                },
            )?
        };
        base::stop_point!("sql.analyze.sampled");
        if verbose {
            let text = format!(
                "\"{}\": scanned {} of {} pages, containing {} live rows and {} dead rows; {} rows in sample, {} estimated total rows",
                table.name,
                sample.scanned_pages,
                sample.total_pages,
                sample.seen_live_rows,
                sample.seen_dead_rows,
                sample.rows.len(),
                sample.live_rows
            );
            client.notice(&Notice::new(Severity::Info, text))?;
        }
        progress.enter(phase::COLUMNS);
        for column in &columns {
            let target = goal(column);
            if target == 0 || sample.rows.is_empty() {
                continue;
            }
            state.check_cancel()?;
            let give_way = throttle.give_way();
            let (values, width) = column_values(&open.heap, &table, column, &sample, give_way)?;
            let ty = column.ty.oid;
            let statistics =
                column_statistics(ty, &values, width, sample.live_rows, target, give_way);
            let place = Place {
                relation: table.oid,
                number: column.number,
                ty: column.ty.oid,
                collation: column.collation,
            };
            store(&state, &place, statistics)?;
        }
        let analysed = columns.iter().filter(|c| goal(c) > 0).map(|c| c.number);
        let analysed: Vec<i32> = analysed.collect();
        if !sample.rows.is_empty() {
            let seen = Seen {
                table: &table,
                columns: &analysed,
                heap: &open.heap,
                sample: &sample,
                automatic: options.automatic,
                progress: &progress,
            };
            seen.gather(self, &objects, client, throttle.give_way())?;
        }
        let target = whole.then_some(default);
        let fractions = index_fractions(self, &table, &open, &sample, target, throttle.give_way())?;
        progress.enter(phase::FINALIZING);
        note(&state, table.oid, &open.heap, &sample)?;
        // After a VACUUM, too: it reads only those indexes that have something to be cleaned.
        note_indexes(&state, &table, &sample, &fractions)?;
        count(&state, &table, &sample, whole, options.automatic, started.elapsed());
        let limit = log_limit(&state, Some(&table));
        let elapsed = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let log = options.automatic && limit >= 0 && elapsed >= limit;
        if verbose || log {
            let verb = if log { "automatic analyze of table" } else { "finished analyzing table" };
            let mut text = format!("{verb} \"{}.{name}\"\n", state.database.name);
            let timings = state.settings.borrow().bool("track_io_timing");
            let delays = state.settings.borrow().bool("track_cost_delay_timing");
            // Writing to a string cannot fail.
            let _ = started.used().write_to(&mut text, delays.then(|| throttle.delayed()), timings);
            if log {
                base::log::write(base::log::Level::Log, &text);
            } else {
                client.notice(&Notice::new(Severity::Info, text))?;
            }
        }
        Ok(())
    }
}

/// The columns to be analysed.
fn chosen<'t>(table: &'t Table, names: &[String]) -> Result<Vec<&'t Column>> {
    if names.is_empty() {
        return Ok(table.columns.iter().filter(|c| !c.dropped && !c.is_virtual()).collect());
    }
    let mut columns: Vec<&Column> = Vec::new();
    for name in names {
        let Some(column) = table.column(name) else {
            bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            );
        };
        if columns.iter().any(|c| c.number == column.number) {
            bail!(
                DUPLICATE_COLUMN,
                "column \"{name}\" of relation \"{}\" appears more than once",
                table.name
            );
        }
        columns.push(column);
    }
    // They are in no row.
    columns.retain(|c| !c.is_virtual());
    Ok(columns)
}

/// A column's values in the sample, in physical order; and how wide they are in their rows, on average.
fn column_values(
    heap: &heap::Heap,
    table: &Table,
    column: &Column,
    sample: &AnalyzeSample,
    give_way: &mut GiveWay,
) -> Result<(Vec<Datum>, Option<i32>)> {
    let desc = engine::relation::tuple_desc(&table.columns);
    let at = usize::try_from(column.number - 1).unwrap_or(0);
    let mut attrs = vec![AttrValue::Null; at + 1];
    let mut values = Vec::with_capacity(sample.rows.len());
    let (mut present, mut bytes) = (0usize, 0usize);
    for row in &sample.rows {
        give_way.tick();
        page::tuple::deform(&row.tuple, &desc, &mut attrs).map_err(base::Error::corrupt_file)?;
        let attr = &attrs[at];
        let kept = KeptValue::of(heap, attr, column.ty.oid);
        let width_as_kept = kept.as_ref().map(|kept| width(kept, column.ty.oid));
        let value = match kept {
            // Nobody looks at it.
            Some(unread) if is_wide(&unread, column.ty.oid) => unread,
            _ => match sampled_value(heap, column, row, attr)? {
                Some(value) => value,
                None => continue,
            },
        };
        if !value.is_null() {
            present += 1;
            bytes += width_as_kept.unwrap_or_else(|| width(&value, column.ty.oid));
        }
        values.push(value);
    }
    let width = bytes.checked_div(present).and_then(|width| i32::try_from(width).ok());
    Ok((values, width))
}

/// A column's value in a sampled row, of which it is `attr`. None: what belongs to the row has gone meanwhile, for no snapshot keeps it.
pub(super) fn sampled_value(
    heap: &heap::Heap,
    column: &Column,
    row: &SampledRow,
    attr: &AttrValue<'_>,
) -> Result<Option<Datum>> {
    let view = page::tuple::TupleView { bytes: &row.tuple, xid_base: row.xid_base };
    let is_stored = |number: i32| usize::try_from(number).is_ok_and(|n| n <= view.natts());
    Ok(Some(match attr {
        AttrValue::Null if !is_stored(column.number) => column.missing.clone().unwrap_or_default(),
        AttrValue::Null => Datum::Null,
        AttrValue::Inline(bytes) => types::decode(column.ty.oid, bytes)?,
        stored => match heap.detoast(stored) {
            Ok(bytes) => types::decode(column.ty.oid, &bytes)?,
            Err(_) if heap.has_gone(row.tid, &view)? => return Ok(None),
            Err(e) => return Err(e),
        },
    }))
}

fn floats(values: &[f32]) -> Datum {
    let elements = values.iter().map(|v| Datum::Float4(*v)).collect();
    Datum::Array(Arc::new(types::ArrayValue::one_dimension(types::oids::FLOAT4, elements)))
}

fn values_array(ty: Oid, values: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(types::ArrayValue::one_dimension(ty, values)))
}

/// The operators `=` and `<` of a type, as `staop` names them.
pub(crate) fn operators(ty: Oid) -> (Oid, Oid) {
    let ty = match ty {
        types::oids::VARCHAR => types::oids::TEXT,
        t if types::enums::is_enum(t) => types::oids::ANYENUM,
        t if types::row_types::is_row(t) => types::oids::RECORD,
        t => t,
    };
    match types::registry::default_btree_class(ty) {
        Some(class) => {
            let find = |strategy| {
                types::registry::btree_operator(class.family, ty, ty, strategy)
                    .unwrap_or(Oid::INVALID)
            };
            (find(3), find(1))
        }
        None => (Oid::INVALID, Oid::INVALID),
    }
}

/// What statistics are of: a table's column, or an expression of an index.
pub(super) struct Place {
    pub(super) relation: Oid,
    pub(super) number: i32,
    pub(super) ty: Oid,
    pub(super) collation: Oid,
}

impl Place {
    fn number(&self) -> Datum {
        Datum::Int2(i16::try_from(self.number).unwrap_or(0))
    }

    /// Its row of `pg_attribute`.
    pub(super) fn attribute(&self, state: &SessionState) -> Result<Option<Row>> {
        let txn = state.txn()?;
        let key = [("attrelid", Datum::Oid(self.relation)), ("attnum", self.number())];
        Ok(state.catalog.rows(&txn).find("pg_attribute", &key)?.into_iter().next())
    }

    /// What that says in `attoptions`.
    fn options(&self, state: &SessionState) -> Result<RelationOptions> {
        let txn = state.txn()?;
        let key = [("attrelid", Datum::Oid(self.relation)), ("attnum", self.number())];
        let [at] = defs::by_name("pg_attribute").places(["attoptions"]);
        let mut found = RelationOptions::default();
        state.catalog.rows(&txn).visit("pg_attribute", &key, &mut |row| {
            if !row.is_null(at) {
                found = options_of(&row.datum(at)?);
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// Replaces a column's row in `pg_statistic`; `n_distinct`, where it is set, has the better of the estimate.
pub(super) fn store(
    state: &SessionState,
    place: &Place,
    mut statistics: ColumnStatistics,
) -> Result<()> {
    if let Some(distinct) = place.options(state)?.number("n_distinct")
        && distinct != 0.0
    {
        #[expect(clippy::cast_possible_truncation, reason = "pg_statistic keeps float4")]
        {
            statistics.distinct = distinct as f32;
        }
    }
    let number = place.number();
    let mut row = NewRow::of("pg_statistic")
        .oid("starelid", place.relation)
        .set("staattnum", number.clone())
        .bool("stainherit", false)
        .set("stanullfrac", Datum::Float4(statistics.null_fraction))
        .set("stawidth", Datum::Int4(statistics.width_bytes))
        .set("stadistinct", Datum::Float4(statistics.distinct));
    let (equal, less) = operators(place.ty);
    let mut slot = 1;
    let mut add =
        |row: NewRow, kind: i16, op: Oid, numbers: Option<Datum>, values: Option<Datum>| {
            let row = row
                .set(&format!("stakind{slot}"), Datum::Int2(kind))
                .oid(&format!("staop{slot}"), op)
                .oid(&format!("stacoll{slot}"), place.collation)
                .set(&format!("stanumbers{slot}"), numbers.unwrap_or_default())
                .set(&format!("stavalues{slot}"), values.unwrap_or_default());
            slot += 1;
            row
        };
    let ty = place.ty;
    if !statistics.common.is_empty() {
        let (values, frequencies): (Vec<Datum>, Vec<f32>) =
            statistics.common.iter().cloned().unzip();
        let values = values_array(ty, values);
        row = add(row, 1, equal, Some(floats(&frequencies)), Some(values));
    }
    if !statistics.histogram.is_empty() {
        let values = values_array(ty, statistics.histogram.clone());
        row = add(row, 2, less, None, Some(values));
    }
    if let Some(correlation) = statistics.correlation {
        row = add(row, 3, less, Some(floats(&[correlation])), None);
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = [
        ("starelid", Datum::Oid(place.relation)),
        ("staattnum", number),
        ("stainherit", Datum::Bool(false)),
    ];
    match rows.find("pg_statistic", &key)?.into_iter().next() {
        // A table that stays as it is is analysed again and again: no new version is made, and no plan made anew, for nothing.
        Some(old) if rows.are_stored_alike(&row, &old.values)? => return Ok(()),
        Some(mut old) => {
            old.values = row.values;
            rows.update(&old)?;
        }
        None => {
            rows.insert(&row)?;
        }
    }
    state.catalog.changed_statistics(place.relation);
    Ok(())
}

/// What `pg_class` is to say now.
#[expect(clippy::cast_possible_truncation, reason = "pg_class keeps float4")]
fn note(state: &SessionState, table: Oid, heap: &heap::Heap, sample: &AnalyzeSample) -> Result<()> {
    let (visible, frozen) = heap.visibility_map().count()?;
    let pages = |n: u64| Datum::Int4(i32::try_from(n).unwrap_or(i32::MAX));
    let total = u64::from(sample.total_pages);
    crate::ddl::relation::update_class_in_place(state, table, |row| {
        row.set("relpages", pages(total));
        row.set("reltuples", Datum::Float4(sample.live_rows as f32));
        row.set("relallvisible", pages(visible.min(total)));
        row.set("relallfrozen", pages(frozen.min(total)));
    })
}

/// And of its indexes, of which `fractions` of the rows are in.
#[expect(clippy::cast_possible_truncation, reason = "pg_class keeps float4")]
fn note_indexes(
    state: &SessionState,
    table: &Table,
    sample: &AnalyzeSample,
    fractions: &[f64],
) -> Result<()> {
    for (index, fraction) in table.indexes.iter().zip(fractions) {
        let rel = state.cluster.storage().open(index.storage, index.persistence);
        let len = rel.len_blocks(base::Fork::Main)?.0;
        crate::ddl::relation::update_class_in_place(state, index.oid, |row| {
            row.set("relpages", Datum::Int4(i32::try_from(len).unwrap_or(i32::MAX)));
            row.set("reltuples", Datum::Float4((sample.live_rows * fraction).ceil() as f32));
        })?;
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "row counts")]
fn count(
    state: &SessionState,
    table: &Table,
    sample: &AnalyzeSample,
    whole: bool,
    automatic: bool,
    elapsed: Duration,
) {
    if !state.counts_rows() {
        return;
    }
    let counts = state.database.activity.of(table.oid);
    let set = |to: &std::sync::atomic::AtomicI64, n: i64| to.store(n, Ordering::Relaxed);
    // What this very transaction did is in the sample, and will be added when it ends.
    let own = state.changes.borrow().get(&table.oid).copied().unwrap_or_default();
    set(&counts.live, (sample.live_rows as i64 - own.live(true)).max(0));
    set(&counts.dead, (sample.dead_rows as i64 - own.dead(true)).max(0));
    if whole {
        set(&counts.modified_since_analyze, 0);
    }
    let now = base::sync::now_timestamp_us();
    if automatic {
        set(&counts.last_autoanalyze, now);
        counts.autoanalyze_count.fetch_add(1, Ordering::Relaxed);
    } else {
        set(&counts.last_analyze, now);
        counts.analyze_count.fetch_add(1, Ordering::Relaxed);
    }
    let us = u64::try_from(elapsed.as_micros()).unwrap_or(0);
    let total = if automatic { &counts.autoanalyze_time_us } else { &counts.analyze_time_us };
    total.fetch_add(us, Ordering::Relaxed);
}
