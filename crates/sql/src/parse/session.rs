//! Settings, transactions, cursors, prepared statements, and the small session commands.

use super::Statement;
use super::UtilityStatement as U;
use super::ast::{IntoClause, QueryStatement, Select, SelectBody};
use super::lexer::Kind;
use super::parser::Parser;
use super::utility::{
    AlterSystem, CreateTableAs, DeclareCursor, DiscardKind, Fetch, FetchDirection, Isolation,
    LockMode, OnCommit, RelationPersistence, SetStatement, SettingChange, TransactionModes,
    TransactionStatement as T, UtilityStatement,
};
use base::Result;

/// SELECT … INTO's clause, wherever the leftmost SELECT of a set operation has it.
pub(super) fn select_into(s: &Select) -> Option<IntoClause> {
    match &s.body {
        SelectBody::Core(c) => c.into.as_deref().cloned(),
        SelectBody::SetOp { left, .. } => select_into(left),
        SelectBody::Values(_) => None,
    }
}

fn clear_into(s: &mut Select) {
    match &mut s.body {
        SelectBody::Core(c) => c.into = None,
        SelectBody::SetOp { left, .. } => clear_into(left),
        SelectBody::Values(_) => {}
    }
}

impl Parser<'_> {
    /// SELECT INTO is CREATE TABLE AS.
    pub fn select_into(&self, mut q: QueryStatement, into: IntoClause) -> Result<Statement> {
        let mut start = into.loc;
        if let QueryStatement::Select(s) = &mut q {
            clear_into(s);
            start = s.loc;
        }
        let persistence = if into.temporary {
            RelationPersistence::Temporary
        } else if into.unlogged {
            RelationPersistence::Unlogged
        } else {
            RelationPersistence::Permanent
        };
        let create = CreateTableAs {
            name: into.name,
            columns: Vec::new(),
            persistence,
            if_not_exists: false,
            materialized_view: false,
            select_into: true,
            access_method: None,
            options: Vec::new(),
            on_commit: OnCommit::PreserveRows,
            tablespace: None,
            statement: Statement::Query(q),
            query_span: (start, self.last_end()),
            with_data: true,
        };
        Ok(Statement::Utility(Box::new(U::CreateTableAs(Box::new(create)))))
    }

    pub fn session_statement(&mut self) -> Result<UtilityStatement> {
        let word = self.peek().text.clone();
        match &*word {
            "set" => self.set_statement(),
            "reset" => {
                self.skip(1);
                if self.accept("all") {
                    return Ok(U::Reset(None));
                }
                Ok(U::Reset(Some(self.setting_name()?)))
            }
            "show" => {
                self.skip(1);
                if self.accept("all") {
                    return Ok(U::Show(None));
                }
                Ok(U::Show(Some(self.setting_name()?)))
            }
            "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint"
            | "release" => self.transaction(),
            "prepare" => self.prepare(),
            "execute" => {
                self.skip(1);
                let name = self.name()?;
                let args = if self.is_op("(") { self.paren_list(Self::expr)? } else { Vec::new() };
                Ok(U::Execute { name, args })
            }
            "deallocate" => {
                self.skip(1);
                self.accept("prepare");
                if self.accept("all") {
                    return Ok(U::Deallocate(None));
                }
                Ok(U::Deallocate(Some(self.name()?)))
            }
            "declare" => self.declare(),
            "fetch" | "move" => self.fetch(),
            "close" => {
                self.skip(1);
                if self.accept("all") {
                    return Ok(U::Close(None));
                }
                Ok(U::Close(Some(self.name()?)))
            }
            "lock" => self.lock(),
            "discard" => {
                self.skip(1);
                let kind = if self.accept("all") {
                    DiscardKind::All
                } else if self.accept("plans") {
                    DiscardKind::Plans
                } else if self.accept("sequences") {
                    DiscardKind::Sequences
                } else if self.accept("temp") || self.accept("temporary") {
                    DiscardKind::Temp
                } else {
                    return Err(self.unexpected());
                };
                Ok(U::Discard(kind))
            }
            "listen" => {
                self.skip(1);
                Ok(U::Listen(self.name()?))
            }
            "unlisten" => {
                self.skip(1);
                if self.accept_op("*") {
                    return Ok(U::Unlisten(None));
                }
                Ok(U::Unlisten(Some(self.name()?)))
            }
            "notify" => {
                self.skip(1);
                let channel = self.name()?;
                let payload = if self.accept_op(",") { self.string()? } else { String::new() };
                Ok(U::Notify { channel, payload })
            }
            "load" => {
                self.skip(1);
                Ok(U::Load(self.string()?))
            }
            "do" => {
                self.skip(1);
                let mut language = None;
                let mut body = None;
                while !self.at_end() {
                    let again =
                        if self.is("language") { language.is_some() } else { body.is_some() };
                    if again {
                        let e = base::err!(SYNTAX_ERROR, "conflicting or redundant options");
                        return self.error_here(e, self.loc());
                    }
                    if self.accept("language") {
                        language = Some(if self.is_string() {
                            self.string()?
                        } else {
                            self.non_reserved()?
                        });
                    } else {
                        body = Some(self.string()?);
                    }
                }
                match body {
                    Some(body) => Ok(U::Do { language, body }),
                    None if language.is_some() => {
                        Err(base::err!(SYNTAX_ERROR, "no inline code specified"))
                    }
                    None => Err(self.unexpected()),
                }
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A setting's name, with the spellings SQL has for some.
    fn setting_name(&mut self) -> Result<String> {
        if self.accept_all(&["time", "zone"]) {
            return Ok("timezone".into());
        }
        if self.accept_all(&["transaction", "isolation", "level"]) {
            return Ok("transaction_isolation".into());
        }
        if self.accept_all(&["session", "authorization"]) {
            return Ok("session_authorization".into());
        }
        self.dotted_setting()
    }

    pub fn dotted_setting(&mut self) -> Result<String> {
        let mut name = self.non_reserved()?;
        while self.accept_op(".") {
            name.push('.');
            name.push_str(&self.label()?);
        }
        Ok(name.to_ascii_lowercase())
    }

    fn set_statement(&mut self) -> Result<UtilityStatement> {
        self.expect("set")?;
        let mut local = false;
        if self.is("constraints") {
            self.skip(1);
            let names = if self.accept("all") { Vec::new() } else { self.list(Self::object_name)? };
            let deferred = self.accept("deferred");
            if !deferred {
                self.expect("immediate")?;
            }
            return Ok(U::SetConstraints { names, deferred });
        }
        if self.accept("local") {
            local = true;
        } else if self.is("session") && !self.is_at(1, "authorization") {
            self.skip(1);
            if self.accept("characteristics") {
                self.expect_all(&["as", "transaction"])?;
                let modes = self.transaction_modes(true)?;
                return Ok(U::SetTransaction { session: true, modes, snapshot: None });
            }
        }
        if self.accept("transaction") {
            if self.accept("snapshot") {
                let snapshot = Some(self.string()?);
                let modes = TransactionModes::default();
                return Ok(U::SetTransaction { session: false, modes, snapshot });
            }
            let modes = self.transaction_modes(true)?;
            return Ok(U::SetTransaction { session: false, modes, snapshot: None });
        }
        let setting = self.setting_change()?;
        Ok(U::Set(SetStatement { local, setting }))
    }

    /// What follows SET [LOCAL | SESSION].
    pub fn setting_change(&mut self) -> Result<SettingChange> {
        let named = |name: &str, value: String| SettingChange::Set {
            name: name.to_owned(),
            values: vec![value],
        };
        if self.accept_all(&["time", "zone"]) {
            let name = "timezone".to_owned();
            if self.is_any(&["local", "default"]) {
                self.skip(1);
                return Ok(SettingChange::SetDefault { name });
            }
            if self.accept("interval") {
                let loc = self.loc();
                let text = self.string()?;
                let typmod = self.interval_fields()?.map_or(-1, |f| f << 16 | 0xffff);
                let zone = interval_zone(&text, typmod).or_else(|e| self.error_here(e, loc))?;
                return Ok(named("timezone", zone));
            }
            return Ok(named("timezone", self.setting_value()?));
        }
        if self.accept_all(&["session", "authorization"]) {
            if self.accept("default") {
                return Ok(SettingChange::SetDefault { name: "session_authorization".into() });
            }
            return Ok(named("session_authorization", self.setting_value()?));
        }
        if self.is("role") && !self.is_op_at(1, "=") && !self.is_at(1, "to") {
            self.skip(1);
            return Ok(named("role", self.setting_value()?));
        }
        if self.accept("names") {
            if self.at_end() || self.accept("default") {
                return Ok(SettingChange::SetDefault { name: "client_encoding".into() });
            }
            return Ok(named("client_encoding", self.setting_value()?));
        }
        if self.is("schema") && self.peek_at(1).kind == Kind::String {
            self.skip(1);
            return Ok(named("search_path", self.string()?));
        }
        if self.is("catalog") && self.peek_at(1).kind == Kind::String {
            return Err(base::Error::unsupported("SET CATALOG"));
        }
        let name = self.dotted_setting()?;
        if self.accept_all(&["from", "current"]) {
            return Ok(SettingChange::FromCurrent { name });
        }
        if !self.accept_op("=") {
            self.expect("to")?;
        }
        if self.accept("default") {
            return Ok(SettingChange::SetDefault { name });
        }
        let values = self.list(Self::setting_value)?;
        Ok(SettingChange::Set { name, values })
    }

    /// One value of a setting, as text.
    pub fn setting_value(&mut self) -> Result<String> {
        let t = self.peek();
        match t.kind {
            Kind::String => self.string(),
            Kind::Word if matches!(&*t.text, "true" | "false" | "on") => self.label(),
            Kind::Word | Kind::Quoted => {
                let mut text = self.non_reserved()?;
                while self.accept_op(".") {
                    text.push('.');
                    text.push_str(&self.label()?);
                }
                Ok(text)
            }
            Kind::Number => Ok(self.next().text.into_owned()),
            Kind::Op if t.text == "-" || t.text == "+" => {
                let minus = t.text == "-";
                self.skip(1);
                if self.peek().kind != Kind::Number {
                    return Err(self.unexpected());
                }
                let n = self.next().text.into_owned();
                Ok(if minus { format!("-{n}") } else { n })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `SET …` or `RESET …` in ALTER ROLE and ALTER DATABASE.
    pub fn set_or_reset(&mut self) -> Result<SettingChange> {
        if self.accept("reset") {
            if self.accept("all") {
                return Ok(SettingChange::ResetAll);
            }
            return Ok(SettingChange::Reset { name: self.setting_name()? });
        }
        self.expect("set")?;
        self.setting_change()
    }

    /// After ALTER SYSTEM.
    pub fn alter_system(&mut self) -> Result<UtilityStatement> {
        Ok(U::AlterSystem(match self.set_or_reset()? {
            SettingChange::Set { name, values } => AlterSystem::Set { name, values },
            SettingChange::SetDefault { name } | SettingChange::Reset { name } => {
                AlterSystem::Reset { name }
            }
            SettingChange::ResetAll => AlterSystem::ResetAll,
            SettingChange::FromCurrent { .. } => return Err(self.unexpected()),
        }))
    }

    fn transaction_modes(&mut self, required: bool) -> Result<TransactionModes> {
        let mut modes = TransactionModes::default();
        let mut any = false;
        loop {
            if self.accept_all(&["isolation", "level"]) {
                modes.isolation = Some(if self.accept("serializable") {
                    Isolation::Serializable
                } else if self.accept_all(&["repeatable", "read"]) {
                    Isolation::RepeatableRead
                } else if self.accept_all(&["read", "committed"]) {
                    Isolation::ReadCommitted
                } else {
                    self.expect_all(&["read", "uncommitted"])?;
                    Isolation::ReadUncommitted
                });
            } else if self.accept_all(&["read", "only"]) {
                modes.read_only = Some(true);
            } else if self.accept_all(&["read", "write"]) {
                modes.read_only = Some(false);
            } else if self.accept_all(&["not", "deferrable"]) {
                modes.deferrable = Some(false);
            } else if self.accept("deferrable") {
                modes.deferrable = Some(true);
            } else if any || !required {
                return Ok(modes);
            } else {
                return Err(self.unexpected());
            }
            any = true;
            if self.is_op(",") {
                self.skip(1);
            }
        }
    }

    fn chain(&mut self) -> Result<bool> {
        if self.accept_all(&["and", "chain"]) {
            return Ok(true);
        }
        if self.accept("and") {
            self.expect_all(&["no", "chain"])?;
        }
        Ok(false)
    }

    fn transaction(&mut self) -> Result<UtilityStatement> {
        let word = self.next().text.into_owned();
        let work = |p: &mut Self| {
            if p.is_any(&["work", "transaction"]) {
                p.skip(1);
            }
        };
        Ok(U::Transaction(match word.as_str() {
            "begin" => {
                work(self);
                T::Begin { modes: self.transaction_modes(false)?, start: false }
            }
            "start" => {
                self.expect("transaction")?;
                T::Begin { modes: self.transaction_modes(false)?, start: true }
            }
            "commit" | "end" => {
                if word == "commit" && self.accept("prepared") {
                    T::CommitPrepared(self.string()?)
                } else {
                    work(self);
                    T::Commit { chain: self.chain()? }
                }
            }
            "savepoint" => T::Savepoint(self.name()?),
            "release" => {
                self.accept("savepoint");
                T::Release(self.name()?)
            }
            _ => {
                if word == "rollback" && self.accept("prepared") {
                    T::RollbackPrepared(self.string()?)
                } else {
                    work(self);
                    if word == "rollback" && self.accept("to") {
                        self.accept("savepoint");
                        T::RollbackTo(self.name()?)
                    } else {
                        T::Rollback { chain: self.chain()? }
                    }
                }
            }
        }))
    }

    fn prepare(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        if self.is("transaction") && self.peek_at(1).kind == Kind::String {
            self.skip(1);
            return Ok(U::Transaction(T::PrepareTransaction(self.string()?)));
        }
        let name = self.name()?;
        let types = if self.is_op("(") { self.paren_list(Self::type_name)? } else { Vec::new() };
        self.expect("as")?;
        let query = self.is_op("(")
            || self.is_any(&[
                "select", "values", "with", "table", "insert", "update", "delete", "merge",
            ]);
        if !query {
            return Err(self.unexpected());
        }
        let statement = Box::new(self.statement()?);
        Ok(U::Prepare { name, types, statement })
    }

    fn declare(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let name = self.name()?;
        let nothing = super::select::plain(super::ast::SelectBody::Values(Vec::new()), 0);
        let mut c = DeclareCursor {
            name,
            binary: false,
            scroll: None,
            hold: false,
            insensitive: false,
            query: QueryStatement::Select(nothing),
            query_span: (0, 0),
        };
        loop {
            if self.accept("binary") {
                c.binary = true;
            } else if self.accept("insensitive") {
                c.insensitive = true;
            } else if self.accept("asensitive") {
                c.insensitive = false;
            } else if self.accept_all(&["no", "scroll"]) {
                c.scroll = Some(false);
            } else if self.accept("scroll") {
                c.scroll = Some(true);
            } else {
                break;
            }
        }
        self.expect("cursor")?;
        if self.accept_all(&["with", "hold"]) {
            c.hold = true;
        } else {
            self.accept_all(&["without", "hold"]);
        }
        self.expect("for")?;
        let start = self.loc();
        c.query = QueryStatement::Select(self.select()?);
        c.query_span = (start, self.last_end());
        Ok(U::DeclareCursor(Box::new(c)))
    }

    fn fetch(&mut self) -> Result<UtilityStatement> {
        use FetchDirection as D;
        let move_only = self.is("move");
        self.skip(1);
        let number = |p: &Self| p.peek().kind == Kind::Number || p.is_op("-") || p.is_op("+");
        let direction = if self.accept("next") {
            D::Next
        } else if self.accept("prior") {
            D::Prior
        } else if self.accept("first") {
            D::First
        } else if self.accept("last") {
            D::Last
        } else if self.accept("absolute") {
            D::Absolute(self.signed_integer()?)
        } else if self.accept("relative") {
            D::Relative(self.signed_integer()?)
        } else if self.accept("all") {
            D::ForwardAll
        } else if self.accept("forward") {
            if self.accept("all") {
                D::ForwardAll
            } else if number(self) {
                D::Forward(self.signed_integer()?)
            } else {
                D::Forward(1)
            }
        } else if self.accept("backward") {
            if self.accept("all") {
                D::BackwardAll
            } else if number(self) {
                D::Backward(self.signed_integer()?)
            } else {
                D::Backward(1)
            }
        } else if number(self) {
            D::Forward(self.signed_integer()?)
        } else {
            D::Next
        };
        if self.is_any(&["from", "in"]) {
            self.skip(1);
        }
        Ok(U::Fetch(Fetch { move_only, direction, cursor: self.name()? }))
    }

    fn lock(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        self.accept("table");
        let tables = self.table_names()?;
        let mut mode = LockMode::AccessExclusive;
        if self.accept("in") {
            mode = if self.accept_all(&["access", "share"]) {
                LockMode::AccessShare
            } else if self.accept_all(&["access", "exclusive"]) {
                LockMode::AccessExclusive
            } else if self.accept_all(&["row", "share"]) {
                LockMode::RowShare
            } else if self.accept_all(&["row", "exclusive"]) {
                LockMode::RowExclusive
            } else if self.accept_all(&["share", "update", "exclusive"]) {
                LockMode::ShareUpdateExclusive
            } else if self.accept_all(&["share", "row", "exclusive"]) {
                LockMode::ShareRowExclusive
            } else if self.accept("share") {
                LockMode::Share
            } else {
                self.expect("exclusive")?;
                LockMode::Exclusive
            };
            self.expect("mode")?;
        }
        let nowait = self.accept("nowait");
        Ok(U::LockTable { tables, mode, nowait })
    }
}

/// The zone so far east of UTC.
fn interval_zone(text: &str, typmod: i32) -> Result<String> {
    use types::datetime::zone::{TimeZone, interval_offset};
    let env = types::env::PlainEnv;
    let read = types::text_input(types::oids::INTERVAL, typmod, text, &env)?;
    let types::Datum::Interval(i) = read else { base::bail!(INTERNAL_ERROR, "interval expected") };
    Ok(TimeZone::fixed(interval_offset(&i, &env)?).name().to_owned())
}
