//! CREATE INDEX, VIEW, SEQUENCE, SCHEMA, DATABASE, ROLE, EXTENSION; CREATE TABLE is in `create_table`.

use super::UtilityStatement as U;
use super::ast::{Loc, ObjectName, QueryStatement};
use super::lexer::Kind;
use super::parser::Parser;
use super::utility::{
    CreateIndex, CreateSequence, CreateView, OptionValue, RelationPersistence, RoleName,
    SequenceOption as S, UtilityOption, UtilityStatement,
};
use base::{Result, err};

impl Parser<'_> {
    pub fn create(&mut self) -> Result<UtilityStatement> {
        self.expect("create")?;
        let or_replace = self.accept_all(&["or", "replace"]);
        let mut persistence = RelationPersistence::Permanent;
        if self.is_any(&["local", "global"])
            && (self.is_at(1, "temp") || self.is_at(1, "temporary"))
        {
            self.skip(1);
        }
        if self.is_any(&["temp", "temporary"]) {
            self.skip(1);
            persistence = RelationPersistence::Temporary;
        } else if self.accept("unlogged") {
            persistence = RelationPersistence::Unlogged;
        }
        self.words_before_kind(or_replace, persistence)?;
        if self.accept("table") {
            return self.create_table(persistence);
        }
        if self.accept("sequence") {
            let if_not_exists = self.if_not_exists();
            let name = self.object_name()?;
            let options = self.sequence_options()?;
            let s = CreateSequence { name, persistence, if_not_exists, options };
            return Ok(U::CreateSequence(Box::new(s)));
        }
        let recursive = self.is("recursive") && self.is_at(1, "view");
        if recursive {
            self.skip(1);
        }
        if self.accept("view") {
            let temporary = persistence == RelationPersistence::Temporary;
            return self.create_view(or_replace, temporary, recursive);
        }
        if self.accept_all(&["materialized", "view"]) {
            return self.create_as(persistence, true);
        }
        let unique = self.is("unique") && self.is_at(1, "index");
        if unique {
            self.skip(1);
        }
        if self.accept("index") {
            return self.create_index(unique);
        }
        if self.accept("schema") {
            return self.create_schema();
        }
        if self.accept("database") {
            let name = self.name()?;
            self.accept("with");
            let options = self.word_options()?;
            return Ok(U::CreateDatabase { name, options });
        }
        if self.is_any(&["role", "user", "group"]) && !self.is_at(1, "mapping") {
            let login = self.is("user");
            self.skip(1);
            let name = self.new_role_name()?;
            self.accept("with");
            let options = self.role_options(false)?;
            return Ok(U::CreateRole { name, login, options });
        }
        if self.is("type") {
            return self.create_type();
        }
        if self.is("domain") {
            return self.create_domain();
        }
        if self.accept("statistics") {
            return self.create_statistics();
        }
        if self.accept("extension") {
            let if_not_exists = self.if_not_exists();
            let name = self.name()?;
            self.accept("with");
            let options = self.word_options()?;
            return Ok(U::CreateExtension { if_not_exists, name, options });
        }
        let t = self.peek();
        let known = t.kind == Kind::Word
            && matches!(
                &*t.text,
                "function"
                    | "procedure"
                    | "trigger"
                    | "aggregate"
                    | "operator"
                    | "cast"
                    | "rule"
                    | "policy"
                    | "collation"
                    | "conversion"
                    | "language"
                    | "publication"
                    | "subscription"
                    | "server"
                    | "foreign"
                    | "tablespace"
                    | "text"
                    | "event"
                    | "access"
                    | "trusted"
                    | "constraint"
                    | "transform"
                    | "user"
                    | "procedural"
                    | "default"
            );
        if !known {
            return Err(self.unexpected());
        }
        let mut what = format!("CREATE {}", t.text.to_ascii_uppercase());
        // The first word alone names nothing.
        let words = match &*t.text {
            "foreign" if self.is_at(1, "data") => 2,
            "foreign" | "text" | "event" | "access" | "constraint" | "user" | "default"
            | "trusted" | "procedural" => 1,
            _ => 0,
        };
        for word in (1..=words).map(|ahead| self.peek_at(ahead)).filter(|t| t.kind == Kind::Word) {
            what.push(' ');
            what.push_str(&word.text.to_ascii_uppercase());
        }
        self.unsupported(&what)
    }

    /// OR REPLACE, TEMPORARY and UNLOGGED are not of everything that is made.
    fn words_before_kind(&self, or_replace: bool, persistence: RelationPersistence) -> Result<()> {
        let relation = ["table", "view", "sequence", "recursive"];
        let wrong = match persistence {
            RelationPersistence::Permanent => false,
            RelationPersistence::Unlogged => {
                !self.is_any(&relation) && !self.is("materialized") || self.is("recursive")
            }
            RelationPersistence::Temporary => !self.is_any(&relation),
        };
        let never_replaced = [
            "table",
            "sequence",
            "materialized",
            "unique",
            "index",
            "schema",
            "database",
            "role",
            "user",
            "group",
            "type",
            "domain",
            "statistics",
            "extension",
        ];
        if wrong || or_replace && self.is_any(&never_replaced) {
            return Err(self.unexpected());
        }
        Ok(())
    }

    pub fn if_not_exists(&mut self) -> bool {
        self.accept_all(&["if", "not", "exists"])
    }
    pub fn if_exists(&mut self) -> bool {
        self.accept_all(&["if", "exists"])
    }

    pub fn sequence_options(&mut self) -> Result<Vec<S>> {
        let mut out = Vec::new();
        loop {
            let o = if self.accept("as") {
                S::As(self.type_name()?)
            } else if self.accept("increment") {
                self.accept("by");
                S::Increment(self.signed_integer()?)
            } else if self.accept("minvalue") {
                S::MinValue(Some(self.signed_integer()?))
            } else if self.accept("maxvalue") {
                S::MaxValue(Some(self.signed_integer()?))
            } else if self.accept_all(&["no", "minvalue"]) {
                S::MinValue(None)
            } else if self.accept_all(&["no", "maxvalue"]) {
                S::MaxValue(None)
            } else if self.accept_all(&["no", "cycle"]) {
                S::Cycle(false)
            } else if self.accept("cycle") {
                S::Cycle(true)
            } else if self.accept("cache") {
                S::Cache(self.signed_integer()?)
            } else if self.accept("start") {
                self.accept("with");
                S::Start(self.signed_integer()?)
            } else if self.accept("restart") {
                let with = self.accept("with");
                let number = self.peek().kind == Kind::Number || self.is_op("-") || self.is_op("+");
                S::Restart(if with || number { Some(self.signed_integer()?) } else { None })
            } else if self.accept_all(&["owned", "by"]) {
                let loc = self.loc();
                if self.accept("none") {
                    S::OwnedBy(None)
                } else {
                    let mut parts = self.dotted()?;
                    let column = parts.pop().unwrap_or_default();
                    if parts.is_empty() {
                        let e = base::SqlError::new(
                            base::SqlState::SYNTAX_ERROR,
                            "invalid OWNED BY option",
                        )
                        .hint("Specify OWNED BY table.column or OWNED BY NONE.");
                        return Err(e.into());
                    }
                    S::OwnedBy(Some((self.object_name_of(parts, loc)?, column)))
                }
            } else if self.accept_all(&["sequence", "name"]) {
                S::Name(self.object_name()?)
            } else if self.accept("logged") {
                S::Logged(true)
            } else if self.accept("unlogged") {
                S::Logged(false)
            } else {
                return Ok(out);
            };
            out.push(o);
        }
    }

    fn create_index(&mut self, unique: bool) -> Result<UtilityStatement> {
        let concurrently = self.accept("concurrently");
        let if_not_exists = self.if_not_exists();
        let unnamed = self.is("on") && !if_not_exists;
        let name = if unnamed { None } else { Some(self.object_name()?) };
        let name = match name {
            Some(ObjectName { schema: Some(_), .. }) => return Err(self.unexpected()),
            other => other.map(|n| n.name),
        };
        self.expect("on")?;
        let (table, only) = self.only_name()?;
        let method = if self.accept("using") { self.name()? } else { "btree".into() };
        let elements = self.paren_list(Self::index_element)?;
        let include =
            if self.accept("include") { self.paren_list(Self::index_element)? } else { Vec::new() };
        let nulls_not_distinct = self.accept_all(&["nulls", "not", "distinct"]);
        self.accept_all(&["nulls", "distinct"]);
        let options = self.with_storage()?;
        let tablespace = self.tablespace()?;
        let filter = if self.accept("where") { Some(self.expr()?) } else { None };
        Ok(U::CreateIndex(Box::new(CreateIndex {
            name,
            unique,
            concurrently,
            if_not_exists,
            only,
            table,
            method,
            elements,
            include,
            nulls_not_distinct,
            options,
            tablespace,
            filter,
        })))
    }

    fn create_view(
        &mut self,
        or_replace: bool,
        temporary: bool,
        recursive: bool,
    ) -> Result<UtilityStatement> {
        let name = self.object_name()?;
        let listed = recursive || self.is_op("(");
        let columns = if listed { self.paren_list(Self::name)? } else { Vec::new() };
        let options = self.with_storage()?;
        self.expect("as")?;
        let mut query = self.select()?;
        if recursive {
            query = super::select::recursive_view(&name.name, &columns, query);
        }
        let query = QueryStatement::Select(query);
        let mut check_option = None;
        let check_at = self.loc();
        if self.accept("with") {
            let local = self.accept("local");
            if !local {
                self.accept("cascaded");
            }
            self.expect_all(&["check", "option"])?;
            check_option = Some(if local { "local" } else { "cascaded" }.to_owned());
            if recursive {
                let text = "WITH CHECK OPTION not supported on recursive views";
                return self.error_here(err!(FEATURE_NOT_SUPPORTED, "{text}"), check_at);
            }
        }
        Ok(U::CreateView(Box::new(CreateView {
            or_replace,
            temporary,
            name,
            columns,
            options,
            query,
            check_option,
        })))
    }

    fn create_schema(&mut self) -> Result<UtilityStatement> {
        let if_not_exists = self.if_not_exists();
        let mut name = None;
        let mut authorization = None;
        if !self.is("authorization") {
            name = Some(self.name()?);
        }
        if self.accept("authorization") {
            authorization = Some(self.role_name()?);
        }
        let loc = self.loc();
        let mut elements = Vec::new();
        while self.is("create") || self.is("grant") {
            elements.push(self.schema_element()?);
        }
        if if_not_exists && !elements.is_empty() {
            let text = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            return self.error_here(err!(FEATURE_NOT_SUPPORTED, "{text}"), loc);
        }
        Ok(U::CreateSchema { if_not_exists, name, authorization, elements })
    }

    fn schema_element(&mut self) -> Result<UtilityStatement> {
        const MADE: [&str; 14] = [
            "table",
            "view",
            "index",
            "unique",
            "sequence",
            "trigger",
            "constraint",
            "or",
            "temp",
            "temporary",
            "local",
            "global",
            "unlogged",
            "recursive",
        ];
        if self.is("grant") {
            return self.grant();
        }
        if !MADE.iter().any(|word| self.is_at(1, word)) {
            self.skip(1);
            return Err(self.unexpected());
        }
        let begun = self.at;
        let element = self.create()?;
        match element {
            U::CreateTable(_) | U::CreateView(_) | U::CreateIndex(_) | U::CreateSequence(_) => {
                Ok(element)
            }
            _ => {
                self.at = begun;
                Err(self.unexpected())
            }
        }
    }

    /// `NAME [=] value …` as in CREATE DATABASE.
    pub fn word_options(&mut self) -> Result<Vec<UtilityOption>> {
        let mut out = Vec::new();
        while !self.at_end() {
            let loc = self.loc();
            let mut name = self.label()?.to_ascii_lowercase();
            if name == "connection" && self.accept("limit") {
                name = "connection_limit".into();
            }
            self.accept_op("=");
            let value = if self.accept("default") { None } else { self.option_value()? };
            out.push(UtilityOption { name, value, loc });
            self.accept_op(",");
        }
        Ok(out)
    }

    /// The options of CREATE ROLE, or those of ALTER ROLE, which makes nobody a member of anything.
    pub fn role_options(&mut self, altered: bool) -> Result<Vec<UtilityOption>> {
        let mut out = Vec::new();
        while !self.at_end() {
            if altered && self.accept("in")
                || altered && self.is_any(&["role", "user", "admin", "sysid"])
            {
                return Err(self.unexpected());
            }
            let loc = self.loc();
            let word = self.label()?.to_ascii_lowercase();
            let (name, value) = match word.as_str() {
                "password" => {
                    let v = if self.accept("null") {
                        None
                    } else {
                        Some(OptionValue::String(self.string()?))
                    };
                    ("password".to_owned(), v)
                }
                "encrypted" => {
                    self.expect("password")?;
                    ("password".to_owned(), Some(OptionValue::String(self.string()?)))
                }
                "connection" => {
                    self.expect("limit")?;
                    let n = self.signed_integer()?;
                    ("connection_limit".to_owned(), Some(OptionValue::Number(n.to_string())))
                }
                "valid" => {
                    self.expect("until")?;
                    ("valid_until".to_owned(), Some(OptionValue::String(self.string()?)))
                }
                "in" => {
                    if !self.accept("role") {
                        self.expect("group")?;
                    }
                    ("in_role".to_owned(), Some(OptionValue::List(self.list(Self::label)?)))
                }
                "role" | "user" | "admin" => {
                    let name = if word == "admin" { "admin" } else { "role" };
                    (name.to_owned(), Some(OptionValue::List(self.list(Self::label)?)))
                }
                "sysid" => {
                    let n = self.signed_integer()?;
                    ("sysid".to_owned(), Some(OptionValue::Number(n.to_string())))
                }
                "superuser" | "nosuperuser" | "createdb" | "nocreatedb" | "createrole"
                | "nocreaterole" | "inherit" | "noinherit" | "login" | "nologin"
                | "replication" | "noreplication" | "bypassrls" | "nobypassrls" => (word, None),
                _ => {
                    let e = err!(SYNTAX_ERROR, "unrecognized role option \"{word}\"");
                    return self.error_here(e, loc);
                }
            };
            out.push(UtilityOption { name, value, loc });
        }
        Ok(out)
    }

    /// The name of a role that is to be made.
    fn new_role_name(&mut self) -> Result<String> {
        let (loc, word) = (self.loc(), self.peek().text.to_ascii_uppercase());
        let e = match self.role_name()? {
            RoleName::Name(name) => return Ok(name),
            RoleName::Public => err!(RESERVED_NAME, "role name \"public\" is reserved"),
            RoleName::CurrentUser | RoleName::SessionUser => {
                err!(RESERVED_NAME, "{word} cannot be used as a role name here")
            }
        };
        self.error_here(e, loc)
    }

    pub fn role_name(&mut self) -> Result<RoleName> {
        let quoted = self.peek().kind == Kind::Quoted;
        if !quoted {
            if self.is_any(&["current_user", "current_role"]) {
                self.skip(1);
                return Ok(RoleName::CurrentUser);
            }
            if self.accept("session_user") {
                return Ok(RoleName::SessionUser);
            }
            if self.accept("public") {
                return Ok(RoleName::Public);
            }
        }
        let loc: Loc = self.loc();
        let name = self.non_reserved()?;
        if !quoted && name == "none" {
            let e = err!(RESERVED_NAME, "role name \"none\" is reserved");
            return self.error_here(e, loc);
        }
        Ok(RoleName::Name(name))
    }
}
