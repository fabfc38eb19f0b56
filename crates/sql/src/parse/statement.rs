//! Dispatch by a statement's first words; maintenance commands, EXPLAIN and COPY.

use super::ast::QueryStatement;
use super::keywords::Category;
use super::lexer::Kind;
use super::parser::Parser;
use super::utility::{
    Copy, CopySource, CopyTarget, Explain, OptionValue, Reindex, ReindexKind, TableName, Truncate,
    UtilityOption, UtilityStatement, Vacuum, VacuumTable,
};
use super::{Statement, UtilityStatement as U};
use base::Result;

impl Parser<'_> {
    /// One statement, up to `;` or the end.
    pub fn statement(&mut self) -> Result<Statement> {
        let t = self.peek();
        let query = match t.kind {
            Kind::Op => t.text == "(",
            Kind::Word => matches!(
                &*t.text,
                "select" | "values" | "with" | "table" | "insert" | "update" | "delete" | "merge"
            ),
            _ => false,
        };
        if query {
            let q = self.query_statement()?;
            if let QueryStatement::Select(s) = &q
                && let Some(into) = super::session::select_into(s)
            {
                return self.select_into(q.clone(), into);
            }
            return Ok(Statement::Query(q));
        }
        if t.kind != Kind::Word {
            return Err(self.unexpected());
        }
        Ok(Statement::Utility(Box::new(self.deeper(Self::utility)?)))
    }

    fn utility(&mut self) -> Result<UtilityStatement> {
        let word = self.peek().text.clone();
        match &*word {
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop_statement(),
            "truncate" => self.truncate(),
            "vacuum" => self.vacuum(),
            "analyze" | "analyse" => self.analyze(),
            "explain" => self.explain(),
            "copy" => self.copy(),
            "reindex" => self.reindex(),
            "cluster" => self.cluster(),
            "refresh" => {
                self.skip(1);
                self.expect_all(&["materialized", "view"])?;
                let concurrently = self.accept("concurrently");
                let name = self.object_name()?;
                let with_data = self.with_data()?;
                Ok(U::RefreshMaterializedView { concurrently, name, with_data })
            }
            "grant" => self.grant(),
            "revoke" => self.revoke(),
            "comment" => self.comment(),
            "checkpoint" => {
                self.skip(1);
                let options = if self.is_op("(") { self.utility_options()? } else { Vec::new() };
                Ok(U::Checkpoint { options })
            }
            "reassign" => {
                self.skip(1);
                self.expect_all(&["owned", "by"])?;
                let from = self.list(Self::role_name)?;
                self.expect("to")?;
                Ok(U::ReassignOwned { from, to: self.role_name()? })
            }
            "security" | "import" | "call" => self.unsupported(&word.to_ascii_uppercase()),
            _ => self.session_statement(),
        }
    }

    /// Takes the rest of the statement: known, but not Ebb's.
    pub fn unsupported(&mut self, what: &str) -> Result<UtilityStatement> {
        let mut depth = 0;
        while self.peek().kind != Kind::End && (depth > 0 || !self.is_op(";")) {
            if self.is("begin") && self.is_at(1, "atomic") {
                depth += 1;
            } else if depth > 0 && self.is("end") {
                depth -= 1;
            }
            self.skip(1);
        }
        Ok(U::Unsupported { what: what.to_owned() })
    }

    /// `WITH [NO] DATA`
    pub fn with_data(&mut self) -> Result<bool> {
        if self.accept_all(&["with", "no", "data"]) {
            return Ok(false);
        }
        self.accept_all(&["with", "data"]);
        Ok(true)
    }

    pub fn table_names(&mut self) -> Result<Vec<TableName>> {
        self.list(|p| {
            let (name, only) = p.only_name()?;
            Ok(TableName { name, only })
        })
    }

    /// `CASCADE | RESTRICT`
    pub fn cascade(&mut self) -> bool {
        let yes = self.accept("cascade");
        if !yes {
            self.accept("restrict");
        }
        yes
    }

    fn truncate(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        self.accept("table");
        let tables = self.table_names()?;
        let restart_identity = self.accept_all(&["restart", "identity"]);
        if !restart_identity {
            self.accept_all(&["continue", "identity"]);
        }
        let cascade = self.cascade();
        Ok(U::Truncate(Box::new(Truncate { tables, restart_identity, cascade })))
    }

    /// `( name [value], … )`, where reserved words are neither, but those that are truth values.
    pub fn utility_options(&mut self) -> Result<Vec<UtilityOption>> {
        self.paren_list(|p| {
            let loc = p.loc();
            let name = if p.is_any(&["analyze", "analyse"]) {
                p.next().text.into_owned()
            } else {
                p.non_reserved()?
            };
            let value = p.peek();
            if value.kind == Kind::Word
                && value.category == Category::Reserved
                && !p.is_any(&["true", "false", "on"])
            {
                return Err(p.unexpected());
            }
            let value = p.option_value()?;
            Ok(UtilityOption { name, value, loc })
        })
    }

    /// COPY's: any word will do.
    fn copy_options(&mut self) -> Result<Vec<UtilityOption>> {
        self.paren_list(|p| {
            let loc = p.loc();
            let name = p.label()?;
            let value = p.option_value()?;
            Ok(UtilityOption { name, value, loc })
        })
    }

    pub fn option_value(&mut self) -> Result<Option<OptionValue>> {
        let t = self.peek();
        Ok(Some(match t.kind {
            Kind::Word | Kind::Quoted => {
                let mut word = self.label()?;
                while self.accept_op(".") {
                    word.push('.');
                    word.push_str(&self.label()?);
                }
                OptionValue::Word(word)
            }
            Kind::String => OptionValue::String(self.string()?),
            Kind::Number => OptionValue::Number(self.next().text.into_owned()),
            Kind::Op if t.text == "-" || t.text == "+" => {
                let minus = t.text == "-";
                self.skip(1);
                if self.peek().kind != Kind::Number {
                    return Err(self.unexpected());
                }
                let n = self.next().text.into_owned();
                OptionValue::Number(if minus { format!("-{n}") } else { n })
            }
            Kind::Op if t.text == "*" => {
                self.skip(1);
                OptionValue::Star
            }
            Kind::Op if t.text == "(" => {
                let list =
                    self.paren_list(|p| if p.is_string() { p.string() } else { p.label() })?;
                OptionValue::List(list)
            }
            _ => return Ok(None),
        }))
    }

    fn flag(&self, name: &str) -> UtilityOption {
        UtilityOption { name: name.to_owned(), value: None, loc: self.loc() }
    }

    fn vacuum_tables(&mut self) -> Result<Vec<VacuumTable>> {
        if self.at_end() || self.is_op(")") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let only = p.accept("only");
            let parens = only && p.accept_op("(");
            let name = p.object_name()?;
            if parens {
                p.expect_op(")")?;
            } else if !only {
                p.accept_op("*");
            }
            let columns = if p.is_op("(") { p.paren_list(Self::name)? } else { Vec::new() };
            Ok(VacuumTable { name, only, columns })
        })
    }

    fn vacuum(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let mut options = Vec::new();
        if self.is_op("(") {
            options = self.utility_options()?;
        } else {
            for word in ["full", "freeze", "verbose"] {
                if self.is(word) {
                    options.push(self.flag(word));
                    self.skip(1);
                }
            }
            if self.is_any(&["analyze", "analyse"]) {
                options.push(self.flag("analyze"));
                self.skip(1);
            }
        }
        let tables = self.vacuum_tables()?;
        Ok(U::Vacuum(Box::new(Vacuum { vacuum: true, options, tables })))
    }

    fn analyze(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let mut options = Vec::new();
        if self.is_op("(") {
            options = self.utility_options()?;
        } else if self.is("verbose") {
            options.push(self.flag("verbose"));
            self.skip(1);
        }
        let tables = self.vacuum_tables()?;
        Ok(U::Vacuum(Box::new(Vacuum { vacuum: false, options, tables })))
    }

    fn explain(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let mut options = Vec::new();
        if self.is_op("(") && !self.subselect_ahead() {
            options = self.utility_options()?;
        } else {
            if self.is_any(&["analyze", "analyse"]) {
                options.push(self.flag("analyze"));
                self.skip(1);
            }
            if self.is("verbose") {
                options.push(self.flag("verbose"));
                self.skip(1);
            }
        }
        let query = self.is_op("(")
            || self.is_any(&[
                "select", "values", "with", "table", "insert", "update", "delete", "merge",
                "create", "declare", "execute", "refresh", "vacuum",
            ]);
        if !query {
            return Err(self.unexpected());
        }
        let statement = self.deeper(Self::statement)?;
        let fine = match &statement {
            Statement::Query(_) => true,
            Statement::Utility(u) => matches!(
                **u,
                U::CreateTableAs(_)
                    | U::DeclareCursor(_)
                    | U::Execute { .. }
                    | U::RefreshMaterializedView { .. }
                    | U::Vacuum(_)
            ),
        };
        if !fine {
            return Err(self.unexpected());
        }
        Ok(U::Explain(Box::new(Explain { options, statement })))
    }

    fn reindex(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let options = if self.is_op("(") { self.utility_options()? } else { Vec::new() };
        let kind = if self.accept("index") {
            ReindexKind::Index
        } else if self.accept("table") {
            ReindexKind::Table
        } else if self.accept("schema") {
            ReindexKind::Schema
        } else if self.accept("system") {
            ReindexKind::System
        } else {
            self.expect("database")?;
            ReindexKind::Database
        };
        let mut concurrently = self.accept("concurrently");
        for o in &options {
            if o.name == "concurrently" {
                concurrently = o.boolean()?;
            }
        }
        let optional = matches!(kind, ReindexKind::System | ReindexKind::Database);
        let name = if optional && self.at_end() { None } else { Some(self.object_name()?) };
        Ok(U::Reindex(Box::new(Reindex { options, kind, name, concurrently })))
    }

    fn cluster(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let mut options = Vec::new();
        if self.is_op("(") {
            options = self.utility_options()?;
        } else if self.is("verbose") {
            options.push(self.flag("verbose"));
            self.skip(1);
        }
        let mut table = None;
        let mut index = None;
        if !self.at_end() {
            let name = self.object_name()?;
            if self.accept("on") {
                index = Some(name.name);
                table = Some(self.object_name()?);
            } else {
                table = Some(name);
                if self.accept("using") {
                    index = Some(self.name()?);
                }
            }
        }
        Ok(U::Cluster { options, table, index })
    }

    fn copy(&mut self) -> Result<UtilityStatement> {
        self.skip(1);
        let binary = self.is("binary").then(|| self.loc());
        if binary.is_some() {
            self.skip(1);
        }
        let source = if self.is_op("(") {
            self.skip(1);
            let q = self.query_statement()?;
            self.expect_op(")")?;
            CopySource::Query(q)
        } else {
            let name = self.object_name()?;
            let columns = if self.is_op("(") { self.paren_list(Self::name)? } else { Vec::new() };
            CopySource::Table { name, columns }
        };
        let from = self.is("from") && matches!(source, CopySource::Table { .. });
        if !self.accept("to") {
            if !from {
                return Err(self.unexpected());
            }
            self.skip(1);
        }
        let target = if self.is_any(&["stdin", "stdout"]) {
            self.skip(1);
            if from { CopyTarget::Stdin } else { CopyTarget::Stdout }
        } else if self.accept("program") {
            CopyTarget::Program(self.string()?)
        } else {
            CopyTarget::File(self.string()?)
        };
        let mut options = Vec::new();
        if let Some(loc) = binary {
            let value = Some(OptionValue::Word("binary".into()));
            options.push(UtilityOption { name: "format".into(), value, loc });
        }
        if self.accept("using") {
            let loc = self.loc();
            self.expect("delimiters")?;
            let value = Some(OptionValue::String(self.string()?));
            options.push(UtilityOption { name: "delimiter".into(), value, loc });
        }
        self.accept("with");
        if self.is_op("(") {
            options.extend(self.copy_options()?);
        } else {
            self.old_copy_options(&mut options)?;
        }
        let filter = if from && self.accept("where") { Some(self.expr()?) } else { None };
        Ok(U::Copy(Box::new(Copy { source, from, target, options, filter })))
    }

    fn old_copy_options(&mut self, options: &mut Vec<UtilityOption>) -> Result<()> {
        loop {
            let loc = self.loc();
            let t = self.peek();
            if t.kind != Kind::Word {
                return Ok(());
            }
            let (name, value) = match &*t.text {
                "binary" | "csv" => ("format", Some(OptionValue::Word(t.text.to_string()))),
                "freeze" => ("freeze", Some(OptionValue::Word("true".into()))),
                "header" => ("header", Some(OptionValue::Word("true".into()))),
                "delimiter" | "null" | "quote" | "escape" | "encoding" => {
                    let name = match &*t.text {
                        "delimiter" => "delimiter",
                        "null" => "null",
                        "quote" => "quote",
                        "escape" => "escape",
                        _ => "encoding",
                    };
                    self.skip(1);
                    self.accept("as");
                    let value = Some(OptionValue::String(self.string()?));
                    options.push(UtilityOption { name: name.into(), value, loc });
                    continue;
                }
                "force" => {
                    self.skip(1);
                    let name = if self.accept("quote") {
                        "force_quote"
                    } else if self.accept_all(&["not", "null"]) {
                        "force_not_null"
                    } else {
                        self.expect("null")?;
                        "force_null"
                    };
                    let value = if self.accept_op("*") {
                        OptionValue::Star
                    } else {
                        OptionValue::List(self.list(Self::name)?)
                    };
                    options.push(UtilityOption { name: name.into(), value: Some(value), loc });
                    continue;
                }
                _ => return Ok(()),
            };
            self.skip(1);
            options.push(UtilityOption { name: name.into(), value, loc });
        }
    }
}
