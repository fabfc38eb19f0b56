//! COPY FROM: rows in, a thousand at a time.
//!
//! # Differs from PostgreSQL
//! Nothing that shows. A table without indexes, CHECKs, generated columns and foreign keys is loaded without
//! ever making values of its fields: each goes into its stored form at once.

use super::convert::Column;
use super::lines::{Field, Input, Lines, Mark};
use super::options::{Columns, CopyOptions, Format, Header};
use crate::client::{Notice, Severity};
use crate::exec::ExecContext;
use crate::exec::modify::{TableWriter, compile_stored, compile_stored_of};
use crate::exec::{CheckList, foreign_key};
use crate::maintenance::commands::{Command, Progress, copy};
use crate::session::{SessionEnv, SessionState};
use base::{Error, Oid, Result, SqlError, SqlState, Tid, bail, err};
use engine::catalog::model::Table;
use expr::code::Code;
use expr::eval::{EvalContext, EvalHook};
use page::tuple::{AttrValue, TupleDesc};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use types::{Datum, Env};

/// Rows are handed on when there are so many,
const BATCH_ROWS: usize = 1000;
/// or so many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// What an error's context shows of a value or line.
const SHOWN: usize = 100;

/// Where a column's value comes from when the data have none.
enum Default {
    Code(Code),
    Sequence(Oid),
}

/// Sequences, for expressions evaluated outside the executor.
pub(crate) struct Hook<'a>(pub(crate) &'a SessionState);

impl EvalHook for Hook<'_> {
    fn sub_plan(
        &self,
        _: &EvalContext<'_>,
        _: expr::tree::SubLinkKind,
        _: usize,
        _: Option<&Code>,
        _: &[(usize, Code)],
        _: &[Datum],
    ) -> Result<Datum> {
        Err(Error::unsupported("a subquery in COPY"))
    }
    fn next_value(&self, sequence: Oid) -> Result<i64> {
        crate::sequence::next_value(self.0, sequence)
    }
}

/// What an error is about.
enum At<'t> {
    Column(&'t str, Option<&'t [u8]>),
    Line,
    Number(u64),
}

/// What COPY FROM is to do.
pub struct Job<'a> {
    /// The session.
    pub state: &'a SessionState,
    /// The functions' view of it.
    pub env: &'a SessionEnv,
    /// The table, locked.
    pub table: Arc<Table>,
    /// The columns in the data's order (from 1).
    pub columns: Vec<i32>,
    /// Options.
    pub options: CopyOptions,
    /// WHERE
    pub filter: Option<expr::Expr>,
    /// FREEZE, and it may.
    pub frozen: bool,
}

struct Loader<'a> {
    job: &'a Job<'a>,
    x: &'a ExecContext<'a>,
    writer: TableWriter,
    columns: Vec<Column>,
    /// Per table column.
    defaults: Vec<Option<Default>>,
    /// Columns that the data don't have, but that have a default.
    missing: Vec<usize>,
    filter: Option<Code>,
    plain: bool,
    desc: TupleDesc,
    /// The batch: as many as `lines`.
    rows: Vec<Vec<Datum>>,
    tuples: Vec<Vec<u8>>,
    numbers: Vec<u64>,
    bytes_in_batch: usize,
    tids: Vec<Tid>,
    /// A row's stored values under way.
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
    after: CheckList,
    copied: u64,
    skipped: u64,
    /// Rows that WHERE left out.
    excluded: u64,
    progress: Option<Arc<Progress>>,
}

fn named(columns: &Columns, table: &Table, list: &[i32], what: &str) -> Result<Vec<bool>> {
    let mut out = vec![*columns == Columns::All; table.columns.len()];
    let Columns::Named(names) = columns else { return Ok(out) };
    for name in names {
        let number = match table.column(name) {
            Some(c) if list.contains(&c.number) => c.number,
            Some(_) => {
                bail!(INVALID_COLUMN_REFERENCE, "{what} column \"{name}\" not referenced by COPY")
            }
            None => bail!(
                UNDEFINED_COLUMN,
                "column \"{name}\" of relation \"{}\" does not exist",
                table.name
            ),
        };
        out[usize::try_from(number - 1).unwrap_or(0)] = true;
    }
    Ok(out)
}

/// Loads the data; returns how many rows.
///
/// # Errors
/// `22P04`, values' own errors, constraints'; each with its line.
pub fn run(job: &Job<'_>, x: &ExecContext<'_>, input: Input<'_>) -> Result<u64> {
    let table = &job.table;
    let not_null = named(&job.options.force_not_null, table, &job.columns, "FORCE_NOT_NULL")?;
    let null = named(&job.options.force_null, table, &job.columns, "FORCE_NULL")?;
    let columns: Vec<Column> = job
        .columns
        .iter()
        .map(|n| {
            let at = usize::try_from(n - 1).unwrap_or(0);
            let c = &table.columns[at];
            Column {
                name: c.name.clone(),
                at,
                ty: c.declared().oid,
                typmod: c.declared().typmod,
                force_not_null: not_null[at],
                force_null: null[at],
            }
        })
        .collect();
    let mut defaults = Vec::new();
    let mut missing = Vec::new();
    for (i, c) in table.columns.iter().enumerate() {
        let listed = job.columns.contains(&c.number);
        let wanted = !c.dropped && !c.is_generated() && (!listed || job.options.default.is_some());
        let default = match (c.any_default(), c.identity_sequence) {
            _ if !wanted => None,
            (Some(e), _) => Some(Default::Code(compile_stored(e)?)),
            (None, Some(sequence)) => Some(Default::Sequence(sequence)),
            (None, None) => None,
        };
        if default.is_some() && !listed {
            missing.push(i);
        }
        defaults.push(default);
    }
    let mut writer = TableWriter::new(x, table)?;
    writer.shows_only(job.columns.clone());
    writer.bulk(job.frozen);
    // Values of domains are asked for, NULL too.
    let domains = table.columns.iter().any(|c| !c.dropped && c.declared() != c.ty);
    let plain =
        writer.is_plain() && table.foreign_keys.is_empty() && job.filter.is_none() && !domains;
    let mut loader = Loader {
        job,
        x,
        writer,
        columns,
        defaults,
        missing,
        filter: match &job.filter {
            Some(filter) => Some(compile_stored_of(filter, Some(&job.table))?),
            None => None,
        },
        plain,
        desc: engine::relation::tuple_desc(&table.columns),
        rows: Vec::new(),
        tuples: Vec::new(),
        numbers: Vec::new(),
        bytes_in_batch: 0,
        tids: Vec::new(),
        bytes: Vec::new(),
        spans: Vec::new(),
        after: CheckList::default(),
        copied: 0,
        skipped: 0,
        excluded: 0,
        progress: job.state.progress.of(Command::Copy),
    };
    let loaded = loader.load(Lines::new(input));
    // Rows of a COPY that failed are dead, and in the way.
    loader.writer.note(x);
    loaded.map(|()| loader.copied)
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    if text.len() <= SHOWN {
        return text.into_owned();
    }
    let end = (0..=SHOWN).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
    format!("{}...", &text[..end])
}

impl Loader<'_> {
    fn located(&self, error: Error, lines: &Lines<'_>, at: At<'_>) -> Error {
        let table = &self.job.table.name;
        let number = lines.number;
        let context = match at {
            At::Number(number) => format!("COPY {table}, line {number}"),
            At::Column(column, Some(text)) => {
                format!("COPY {table}, line {number}, column {column}: \"{}\"", shown(text))
            }
            At::Column(column, None) => {
                format!("COPY {table}, line {number}, column {column}: null input")
            }
            At::Line if lines.valid => {
                format!("COPY {table}, line {number}: \"{}\"", shown(lines.line()))
            }
            At::Line => format!("COPY {table}, line {number}"),
        };
        with_context(error, context)
    }

    fn load(&mut self, mut lines: Lines<'_>) -> Result<()> {
        if self.job.options.format == Format::Binary {
            self.load_binary(&mut lines)?;
        } else {
            self.load_text(&mut lines)?;
        }
        self.flush()?;
        self.writer.finish()?;
        self.writer.take_doubtful(&mut self.after)?;
        let after = std::mem::take(&mut self.after);
        if !after.is_empty() {
            self.x.txn.advance_command()?;
            foreign_key::run_checks(self.x, after)?;
        }
        self.tell_skipped(&mut lines)
    }

    fn load_text(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        let options = &self.job.options;
        if options.header != Header::None {
            if !lines.next_line(options).map_err(|e| self.located(e, lines, At::Line))? {
                return Ok(());
            }
            if options.header == Header::Match {
                self.match_header(lines).map_err(|e| self.located(e, lines, At::Line))?;
            }
        }
        let mut polled = 0;
        loop {
            match lines.next_line(options) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                // The client's own errors (CopyFail) and the source's have no line.
                Err(e) => return Err(self.located(e, lines, At::Line)),
            }
            lines.split(options).map_err(|e| self.located(e, lines, At::Line))?;
            self.row(lines)?;
            self.job.state.check_cancel()?;
            polled += 1;
            if polled == BATCH_ROWS {
                polled = 0;
                self.show(lines);
            }
        }
    }

    /// Shows how far it has come.
    fn show(&self, lines: &Lines<'_>) {
        if let Some(progress) = &self.progress {
            progress.set(copy::BYTES_PROCESSED, lines.bytes);
            progress.set(copy::TUPLES_PROCESSED, self.copied);
            progress.set(copy::TUPLES_EXCLUDED, self.excluded);
            progress.set(copy::TUPLES_SKIPPED, self.skipped);
        }
        base::stop_point!("sql.copy.shown");
    }

    fn match_header(&self, lines: &mut Lines<'_>) -> Result<()> {
        lines.split(&self.job.options)?;
        let fields = lines.fields();
        if fields.len() != self.columns.len() {
            bail!(
                BAD_COPY_FILE_FORMAT,
                "wrong number of fields in header line: got {}, expected {}",
                fields.len(),
                self.columns.len()
            );
        }
        for (n, (field, column)) in fields.iter().zip(&self.columns).enumerate() {
            let got = String::from_utf8_lossy(lines.text(field));
            if field.mark == Mark::Null {
                bail!(
                    BAD_COPY_FILE_FORMAT,
                    "column name mismatch in header line field {}: got null value (\"{}\"), expected \"{}\"",
                    n + 1,
                    self.job.options.null,
                    column.name
                );
            }
            if got != column.name {
                bail!(
                    BAD_COPY_FILE_FORMAT,
                    "column name mismatch in header line field {}: got \"{got}\", expected \"{}\"",
                    n + 1,
                    column.name
                );
            }
        }
        Ok(())
    }

    /// The present line's row, into the batch.
    fn row(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        let count = lines.fields().len();
        if count > self.columns.len() {
            let e = err!(BAD_COPY_FILE_FORMAT, "extra data after last expected column");
            return Err(self.located(e, lines, At::Line));
        }
        let result = if self.plain { self.plain_row(lines) } else { self.row_of_values(lines) };
        match result {
            Ok(()) => Ok(()),
            Err((Some(n), e)) => {
                let column = &self.columns[n];
                let field = &lines.fields()[n];
                // FORCE NOT NULL has made an empty string of it.
                let is_value = field.mark == Mark::Value || self.columns[n].force_not_null;
                let text = is_value.then(|| lines.text(field));
                let of_domain = types::domains::base(column.ty).is_some()
                    && matches!(
                        e.state(),
                        SqlState::CHECK_VIOLATION | SqlState::NOT_NULL_VIOLATION
                    );
                let soft = self.job.options.ignore_errors
                    && (of_domain || e.state().as_str().starts_with("22"));
                if !soft {
                    return Err(self.located(e, lines, At::Column(&column.name, text)));
                }
                self.skip(lines, n)
            }
            Err((None, e)) => Err(self.located(e, lines, At::Line)),
        }
    }

    /// A line's field for its nth column. One that is missing is told when its turn comes, behind
    /// the errors of the values before it.
    #[inline]
    fn field(&self, lines: &Lines<'_>, n: usize) -> Result<Field, (Option<usize>, Error)> {
        lines.fields().get(n).copied().ok_or_else(|| {
            let name = &self.columns[n].name;
            (None, err!(BAD_COPY_FILE_FORMAT, "missing data for column \"{name}\""))
        })
    }

    /// ON_ERROR IGNORE
    fn skip(&mut self, lines: &mut Lines<'_>, n: usize) -> Result<()> {
        self.skipped += 1;
        let options = &self.job.options;
        if options.verbose {
            let column = &self.columns[n].name;
            let field = lines.fields()[n];
            let number = lines.number;
            let text = match field.mark {
                Mark::Value => format!(
                    "skipping row due to data type incompatibility at line {number} for column \"{column}\": \"{}\"",
                    shown(lines.text(&field))
                ),
                _ => format!(
                    "skipping row due to data type incompatibility at line {number} for column \"{column}\": null input"
                ),
            };
            if let Some(client) = lines.client() {
                client.notice(&Notice::new(Severity::Notice, text))?;
            }
        }
        if let Some(limit) = options.reject_limit
            && self.skipped > limit.unsigned_abs()
        {
            let e = err!(
                INVALID_TEXT_REPRESENTATION,
                "skipped more than REJECT_LIMIT ({limit}) rows due to data type incompatibility"
            );
            return Err(self.located(e, lines, At::Line));
        }
        Ok(())
    }

    fn tell_skipped(&self, lines: &mut Lines<'_>) -> Result<()> {
        if self.skipped == 0 || self.job.options.silent {
            return Ok(());
        }
        let (rows, were) = if self.skipped == 1 { ("row", "was") } else { ("rows", "were") };
        let text =
            format!("{} {rows} {were} skipped due to data type incompatibility", self.skipped);
        match lines.client() {
            Some(client) => client.notice(&Notice::new(Severity::Notice, text)),
            None => {
                self.job.state.notice(Notice::new(Severity::Notice, text));
                Ok(())
            }
        }
    }

    /// What a field says, forced markers seen to.
    #[inline]
    fn mark(&self, lines: &Lines<'_>, column: &Column, field: &Field) -> Mark {
        if column.force_not_null && field.mark == Mark::Null {
            return Mark::Value;
        }
        if column.force_null
            && field.quoted
            && lines.text(field) == self.job.options.null.as_bytes()
        {
            return Mark::Null;
        }
        field.mark
    }

    /// What stands for DEFAULT's marker.
    fn marked_default(&self, at: usize) -> Result<Datum> {
        if self.defaults[at].is_none() {
            let column = &self.job.table.columns[at].name;
            return Err(SqlError::new(
                SqlState::BAD_COPY_FILE_FORMAT,
                "unexpected default marker in COPY data",
            )
            .detail(format!("Column \"{column}\" has no default value."))
            .into());
        }
        self.default_value(at)
    }

    fn default_value(&self, at: usize) -> Result<Datum> {
        let params = RefCell::new(Vec::new());
        let hook = Hook(self.job.state);
        let mut eval = EvalContext::new(self.job.env as &dyn Env, &params);
        eval.hook = Some(&hook);
        match &self.defaults[at] {
            None => Ok(Datum::Null),
            Some(Default::Code(code)) => code.eval(&[], &eval),
            Some(Default::Sequence(sequence)) => {
                sequence_value(self.job.state, *sequence, self.job.table.columns[at].ty.oid)
            }
        }
    }

    fn store(&mut self, at: usize, value: &Datum) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        let start = self.bytes.len();
        types::encode(self.job.table.columns[at].ty.oid, value, &mut self.bytes)?;
        self.spans[at] = Some((start, self.bytes.len()));
        Ok(())
    }

    /// A row without detours: fields to stored bytes to a tuple.
    fn plain_row(&mut self, lines: &Lines<'_>) -> Result<(), (Option<usize>, Error)> {
        self.bytes.clear();
        self.spans.clear();
        self.spans.resize(self.job.table.columns.len(), None);
        for n in 0..self.columns.len() {
            let field = &self.field(lines, n)?;
            let column = &self.columns[n];
            match self.mark(lines, column, field) {
                Mark::Value => {
                    let start = self.bytes.len();
                    column
                        .stored(lines.text(field), self.job.env, &mut self.bytes)
                        .map_err(|e| (Some(n), e))?;
                    self.spans[column.at] = Some((start, self.bytes.len()));
                }
                Mark::Null => {}
                Mark::Default => {
                    let at = column.at;
                    let value = self.marked_default(at).map_err(|e| (None, e))?;
                    self.store(at, &value).map_err(|e| (None, e))?;
                }
            }
        }
        for i in 0..self.missing.len() {
            let at = self.missing[i];
            let value = self.default_value(at).map_err(|e| (None, e))?;
            self.store(at, &value).map_err(|e| (None, e))?;
        }
        if self.writer.not_null().iter().any(|i| self.spans[*i].is_none()) {
            return Err((None, self.null_violation()));
        }
        let attrs: SmallVec<[AttrValue<'_>; 16]> = self
            .spans
            .iter()
            .map(|s| s.map_or(AttrValue::Null, |(a, b)| AttrValue::Inline(&self.bytes[a..b])))
            .collect();
        let n = self.numbers.len();
        if self.tuples.len() == n {
            self.tuples.push(Vec::new());
        }
        let tuple = &mut self.tuples[n];
        page::tuple::form_values_into(&self.desc, &attrs, tuple);
        drop(attrs);
        self.bytes_in_batch += self.tuples[n].len();
        self.numbers.push(lines.number);
        self.flush_if_full().map_err(|e| (None, e))
    }

    /// The error of a plain row that lacks a value.
    fn null_violation(&mut self) -> Error {
        let mut row = Vec::new();
        for (span, column) in self.spans.iter().zip(&self.job.table.columns) {
            row.push(match span {
                None => Datum::Null,
                Some((a, b)) => {
                    types::decode(column.ty.oid, &self.bytes[*a..*b]).unwrap_or_default()
                }
            });
        }
        let mut tuple = Vec::new();
        match self.writer.prepare(self.x, &mut row, &mut tuple) {
            Err(e) => e,
            Ok(()) => err!(INTERNAL_ERROR, "a row lacks a value"),
        }
    }

    fn row_of_values(&mut self, lines: &Lines<'_>) -> Result<(), (Option<usize>, Error)> {
        let mut row = self.fresh_row();
        for n in 0..self.columns.len() {
            let field = &self.field(lines, n)?;
            let column = &self.columns[n];
            row[column.at] = match self.mark(lines, column, field) {
                Mark::Value => {
                    column.datum(lines.text(field), self.job.env).map_err(|e| (Some(n), e))?
                }
                Mark::Null => {
                    let null = types::domains::check(column.ty, &Datum::Null, self.job.env);
                    null.map_err(|e| (Some(n), e))?;
                    Datum::Null
                }
                Mark::Default => self.marked_default(column.at).map_err(|e| (None, e))?,
            };
        }
        self.add_row(row, lines.number).map_err(|e| (None, e))
    }

    /// A row of NULLs, its memory that of one of an earlier batch.
    fn fresh_row(&mut self) -> Vec<Datum> {
        let n = self.numbers.len();
        let mut row =
            if n < self.rows.len() { std::mem::take(&mut self.rows[n]) } else { Vec::new() };
        row.clear();
        row.resize(self.job.table.columns.len(), Datum::Null);
        row
    }

    /// Defaults, WHERE, constraints; then into the batch.
    fn add_row(&mut self, mut row: Vec<Datum>, number: u64) -> Result<()> {
        for i in 0..self.missing.len() {
            let at = self.missing[i];
            row[at] = self.default_value(at)?;
        }
        if let Some(filter) = &self.filter {
            let params = RefCell::new(Vec::new());
            let eval = EvalContext::new(self.job.env as &dyn Env, &params);
            if !filter.is_true(&row, &eval)? {
                self.excluded += 1;
                return Ok(());
            }
        }
        let n = self.numbers.len();
        if self.tuples.len() == n {
            self.tuples.push(Vec::new());
        }
        self.writer.prepare(self.x, &mut row, &mut self.tuples[n])?;
        self.bytes_in_batch += self.tuples[n].len();
        self.writer.after_insert(&row, &mut self.after)?;
        if n < self.rows.len() {
            self.rows[n] = row;
        } else {
            self.rows.push(row);
        }
        self.numbers.push(number);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<()> {
        if self.numbers.len() >= BATCH_ROWS || self.bytes_in_batch >= BATCH_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Inserts the batch.
    fn flush(&mut self) -> Result<()> {
        let n = self.numbers.len();
        if n == 0 {
            return Ok(());
        }
        let rows = if self.plain { &[][..] } else { &self.rows[..n] };
        let result = self.writer.insert_prepared(self.x, rows, &self.tuples[..n], &mut self.tids);
        if let Err((row, error)) = result {
            let at = row.unwrap_or(n - 1);
            let table = &self.job.table.name;
            let context = format!("COPY {table}, line {}", self.numbers[at]);
            return Err(with_context(error, context));
        }
        self.copied += n as u64;
        self.numbers.clear();
        self.bytes_in_batch = 0;
        Ok(())
    }

    fn load_binary(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        if lines.take(11)? != b"PGCOPY\n\xff\r\n\0" {
            bail!(BAD_COPY_FILE_FORMAT, "COPY file signature not recognized");
        }
        let Some(flags) = int4(lines)? else {
            bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (missing flags)");
        };
        if flags & (1 << 16) != 0 {
            bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (WITH OIDS)");
        }
        if flags as u32 & 0xfffe_0000 != 0 {
            bail!(BAD_COPY_FILE_FORMAT, "unrecognized critical flags in COPY file header");
        }
        let length = int4(lines)?.and_then(|n| usize::try_from(n).ok());
        let Some(length) = length else {
            bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (missing length)");
        };
        if lines.take(length)?.len() < length {
            bail!(BAD_COPY_FILE_FORMAT, "invalid COPY file header (wrong length)");
        }
        loop {
            lines.number += 1;
            let number = At::Number(lines.number);
            match self.binary_row(lines) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err((None, e)) => return Err(self.located(e, lines, number)),
                Err((Some(n), e)) => {
                    let context = format!(
                        "COPY {}, line {}, column {}",
                        self.job.table.name, lines.number, self.columns[n].name
                    );
                    return Err(with_context(e, context));
                }
            }
            self.job.state.check_cancel()?;
            if lines.number.is_multiple_of(BATCH_ROWS as u64) {
                self.show(lines);
            }
        }
    }

    /// A row of binary data; false at the trailer.
    fn binary_row(&mut self, lines: &mut Lines<'_>) -> Result<bool, (Option<usize>, Error)> {
        let whole = |e: Error| (None, e);
        let eof = || (None, err!(BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data"));
        let count = match lines.take(2).map_err(whole)? {
            [] => return Ok(false),
            [a, b] => i16::from_be_bytes([*a, *b]),
            _ => return Err(eof()),
        };
        if count == -1 {
            if !lines.take(1).map_err(whole)?.is_empty() {
                return Err((
                    None,
                    err!(BAD_COPY_FILE_FORMAT, "received copy data after EOF marker"),
                ));
            }
            return Ok(false);
        }
        if usize::try_from(count) != Ok(self.columns.len()) {
            let e = err!(
                BAD_COPY_FILE_FORMAT,
                "row field count is {count}, expected {}",
                self.columns.len()
            );
            return Err((None, e));
        }
        let mut row = self.fresh_row();
        for n in 0..self.columns.len() {
            let column = &self.columns[n];
            let at = |e: Error| (Some(n), e);
            let Some(length) = int4(lines).map_err(whole)? else { return Err(eof()) };
            if length == -1 {
                types::domains::check(column.ty, &Datum::Null, self.job.env).map_err(at)?;
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(at(err!(BAD_COPY_FILE_FORMAT, "invalid field size")));
            };
            let bytes = lines.take(length).map_err(whole)?;
            if bytes.len() < length {
                return Err(at(err!(BAD_COPY_FILE_FORMAT, "unexpected EOF in COPY data")));
            }
            row[column.at] = types::io::binary_input(column.ty, column.typmod, bytes, self.job.env)
                .map_err(at)?;
        }
        if self.plain {
            // The batch's rows are not kept for a plain table.
            self.plain = false;
        }
        self.add_row(row, lines.number).map_err(whole)?;
        Ok(true)
    }
}

/// The next of a sequence, as a column of type `ty` takes it.
///
/// # Errors
/// `22003`, `2200H`
pub(crate) fn sequence_value(state: &SessionState, sequence: Oid, ty: Oid) -> Result<Datum> {
    let n = crate::sequence::next_value(state, sequence)?;
    let out_of_range = || err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range");
    Ok(match ty {
        types::oids::INT2 => Datum::Int2(i16::try_from(n).map_err(|_| out_of_range())?),
        types::oids::INT4 => Datum::Int4(i32::try_from(n).map_err(|_| out_of_range())?),
        _ => Datum::Int8(n),
    })
}

fn int4(lines: &mut Lines<'_>) -> Result<Option<i32>> {
    let bytes = lines.take(4)?;
    Ok(bytes.try_into().ok().map(i32::from_be_bytes))
}

/// Adds a line of context, unless the error is the client's or the server's going away.
fn with_context(error: Error, context: String) -> Error {
    let mut e = match error {
        Error::Sql(e) => e,
        other => Box::new(other.to_sql_error()),
    };
    if matches!(e.state, SqlState::ADMIN_SHUTDOWN) {
        return Error::Sql(e);
    }
    e.context = Some(match e.context.take() {
        Some(inner) => format!("{inner}\n{context}"),
        None => context,
    });
    Error::Sql(e)
}
