//! What the language asks of a session.

use super::cast::Casts;
use super::cursors::CursorColumns;
use super::errors;
use super::run::Texts;
use super::sites::{self, Made, Sites};
use super::type_names;
use crate::client::{Client, CopyWireFormat, Notice, OutputColumn, Severity};
use crate::session::{Session, SessionState};
use base::{Result, SqlError, SqlState, bail};
use expr::TypeRef;
use plpgsql::{
    Direction, Frame, Host, Level, OpenCursor, Outcome, Reference, Site, Source, TypeKind, Value,
    VarId, Want,
};
use std::rc::Rc;
use types::{Datum, Env};

/// A session that runs a block.
pub(super) struct BlockHost<'a> {
    pub session: &'a mut Session,
    client: &'a mut dyn Client,
    /// The transaction is not the block's to end.
    atomic: bool,
    /// The error under way is that somebody has cancelled the statement.
    cancelled: bool,
    /// How many savepoints were open before each subtransaction that is open.
    subtransactions: Vec<usize>,
    pub sites: Sites,
    casts: Casts,
    pub cursors: CursorColumns,
    pub texts: Texts,
}

impl<'a> BlockHost<'a> {
    pub fn new(session: &'a mut Session, client: &'a mut dyn Client, atomic: bool) -> Self {
        BlockHost {
            session,
            client,
            atomic,
            cancelled: false,
            subtransactions: Vec::new(),
            sites: Sites::default(),
            casts: Casts::default(),
            cursors: CursorColumns::default(),
            texts: Texts::default(),
        }
    }

    /// The session, and a client whose notices say where they come from.
    pub fn parts<'b>(
        &'b mut self,
        source: Source<'b>,
        frame: &'b Frame,
    ) -> (&'b mut Session, Within<'b>) {
        let state = Rc::clone(self.session.state());
        (&mut *self.session, Within { client: &mut *self.client, source, frame, state })
    }

    /// Fails unless the block may end the transaction.
    fn check_may_end(&self, what: &str) -> Result<()> {
        if self.atomic {
            bail!(INVALID_TRANSACTION_TERMINATION, "invalid transaction termination");
        }
        if !self.subtransactions.is_empty() {
            bail!(
                INVALID_TRANSACTION_TERMINATION,
                "cannot {what} while a subtransaction is active"
            );
        }
        Ok(())
    }

    /// Notes whether it was cancelled.
    fn noted<T>(&mut self, done: Result<T>) -> Result<T> {
        if let Err(error) = &done {
            self.cancelled = error.state() == SqlState::QUERY_CANCELED;
        }
        done
    }

    fn innermost(&mut self) -> Result<usize> {
        match self.subtransactions.pop() {
            Some(depth) => Ok(depth),
            None => bail!(INTERNAL_ERROR, "no subtransaction is open"),
        }
    }
}

impl Host for BlockHost<'_> {
    fn check_syntax(&mut self, site: &Site) -> Result<()> {
        sites::check_syntax(self.session, site)
    }

    fn type_of_text(&mut self, text: &str) -> Result<TypeRef> {
        type_names::of_text(self.session, text)
    }

    fn type_of_column(&mut self, names: &[String]) -> Result<TypeRef> {
        type_names::of_column(self.session, names)
    }

    fn type_of_row(&mut self, names: &[String]) -> Result<TypeRef> {
        type_names::of_row(self.session, names)
    }

    fn check_collation(&mut self, names: &[String], ty: TypeRef) -> Result<()> {
        type_names::check_collation(names, ty)
    }

    fn kind_of(&mut self, ty: TypeRef) -> Result<TypeKind> {
        type_names::kind_of(self.session, ty)
    }

    fn cast(&mut self, value: Datum, from: TypeRef, to: TypeRef) -> Result<Datum> {
        self.casts.assign(self.session, value, from, to)
    }

    fn text(&mut self, value: &Datum, ty: TypeRef) -> Result<String> {
        let mut text = String::new();
        types::text_output(ty.oid, value, self.session.env().as_ref(), &mut text)?;
        Ok(text)
    }

    #[inline]
    fn evaluate(&mut self, site: &Site, frame: &Frame) -> Result<Value> {
        if let Some(kept) = self.sites.ready(site, frame)?
            && let Made::Simple(simple) = &kept.made
            && simple.holds(self.session)
        {
            let value = simple.value(self.session, &kept.params)?;
            return Ok(Value { value, ty: simple.ty });
        }
        let done = self.evaluate_anew(site, frame);
        self.noted(done)
    }

    fn evaluate_into(&mut self, site: &Site, frame: &mut Frame, id: VarId) -> Result<bool> {
        let Some(to) = frame.unchecked(id) else { return Ok(false) };
        let Some(kept) = self.sites.ready(site, frame)? else { return Ok(false) };
        let Made::Simple(simple) = &kept.made else { return Ok(false) };
        let fits = simple.ty.oid == to.oid && (to.typmod == -1 || to.typmod == simple.ty.typmod);
        if !fits || !simple.holds(self.session) {
            return Ok(false);
        }
        match simple.value(self.session, &kept.params) {
            Ok(value) => {
                if let Some(slot) = frame.scalar_mut(id) {
                    *slot = value;
                }
                Ok(true)
            }
            failed => self.noted(failed.map(|_| true)),
        }
    }

    fn run(&mut self, source: Source<'_>, frame: &Frame, want: Want) -> Result<Outcome> {
        let done = match source {
            Source::Site(site) => self.run_site(site, frame, want),
            Source::Text { text, using } => self.run_text((text, using), frame, want),
        };
        self.noted(done)
    }

    fn open(&mut self, cursor: OpenCursor<'_>, frame: &Frame) -> Result<String> {
        let done = self.open_cursor(cursor, frame);
        self.noted(done)
    }

    fn fetch(&mut self, name: &str, direction: Direction, want: Want) -> Result<Outcome> {
        let done = self.fetch_rows(name, direction, want);
        self.noted(done)
    }

    fn close(&mut self, name: &str, in_loop: bool) -> Result<()> {
        self.close_cursor(name, in_loop)
    }

    fn begin_subtransaction(&mut self) -> Result<()> {
        let depth = self.session.begin_nested()?;
        self.subtransactions.push(depth);
        Ok(())
    }

    fn release_subtransaction(&mut self) -> Result<()> {
        let depth = self.innermost()?;
        self.session.end_nested(depth)
    }

    fn roll_back_subtransaction(&mut self) -> Result<()> {
        let depth = self.innermost()?;
        if std::mem::take(&mut self.cancelled) {
            // A handler may go on after it: what was asked for has been done.
            self.session.state().backend.cancel.clear();
        }
        self.session.undo_nested(depth)
    }

    fn commit(&mut self, chain: bool) -> Result<()> {
        self.check_may_end("commit")?;
        self.session.keep_loops()?;
        self.session.tell(self.client)?;
        self.session.commit_and_go_on(chain)
    }

    fn roll_back(&mut self, chain: bool) -> Result<()> {
        self.check_may_end("roll back")?;
        self.session.keep_loops()?;
        self.session.tell(self.client)?;
        self.session.roll_back_and_go_on(chain)
    }

    fn report(&mut self, level: Level, message: SqlError) -> Result<()> {
        let severity = match level {
            Level::Debug => Severity::Debug,
            Level::Log => Severity::Log,
            Level::Info => Severity::Info,
            Level::Notice => Severity::Notice,
            Level::Warning => Severity::Warning,
        };
        self.session.tell(self.client)?;
        send(self.client, self.session.state(), &Notice { severity, body: message })
    }

    fn parameters(&mut self, site: &Site) -> Vec<Reference> {
        self.sites.references(site)
    }

    #[inline]
    fn check_interrupts(&mut self) -> Result<()> {
        match self.session.state().check_cancel() {
            Ok(()) => Ok(()),
            cancelled => self.noted(cancelled),
        }
    }
}

/// Sends a notice, if the settings of now let it through: the client knows those of when the statement began.
fn send(client: &mut dyn Client, state: &SessionState, notice: &Notice) -> Result<()> {
    if notice.severity < state.min_notice() && notice.severity != Severity::Info {
        base::log::write_error(notice.severity.level(), &notice.body);
        return Ok(());
    }
    client.notice(notice)
}

/// The client, as statements of a block see it.
pub(super) struct Within<'a> {
    client: &'a mut dyn Client,
    source: Source<'a>,
    frame: &'a Frame,
    state: Rc<SessionState>,
}

impl Client for Within<'_> {
    fn row_description(&mut self, columns: &[OutputColumn]) -> Result<()> {
        self.client.row_description(columns)
    }
    fn data_row(&mut self, columns: &[OutputColumn], row: &[Datum], env: &dyn Env) -> Result<()> {
        self.client.data_row(columns, row, env)
    }
    fn command_complete(&mut self, tag: &str) -> Result<()> {
        self.client.command_complete(tag)
    }
    fn empty_query(&mut self) -> Result<()> {
        self.client.empty_query()
    }
    fn notice(&mut self, notice: &Notice) -> Result<()> {
        let mut notice = notice.clone();
        let lines = format!("{}\n{}", errors::context(self.source), self.frame.context());
        notice.body.position = None;
        notice.body.context = Some(match notice.body.context.take() {
            Some(inner) => format!("{inner}\n{lines}"),
            None => lines,
        });
        send(self.client, &self.state, &notice)
    }
    fn parameter_status(&mut self, name: &str, value: &str) -> Result<()> {
        self.client.parameter_status(name, value)
    }
    fn copy_in_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        self.client.copy_in_begin(format, columns)
    }
    fn copy_in_read(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        self.client.copy_in_read(buffer)
    }
    fn copy_out_begin(&mut self, format: CopyWireFormat, columns: usize) -> Result<()> {
        self.client.copy_out_begin(format, columns)
    }
    fn copy_out_data(&mut self, data: &[u8]) -> Result<()> {
        self.client.copy_out_data(data)
    }
    fn copy_out_end(&mut self) -> Result<()> {
        self.client.copy_out_end()
    }
    fn flush(&mut self) -> Result<()> {
        self.client.flush()
    }
}
