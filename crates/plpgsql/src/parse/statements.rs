//! Statements.

use super::{Parser, Returns, is, is_reserved, may_be_name};
use crate::ast::{Diagnostic, Kind, Query, Statement, Step, Target};
use crate::host::Mode;
use crate::lex::{Tok, Token};
use crate::names::LabelKind;
use base::{Result, SqlError, SqlState};
use std::sync::Arc;

/// Keywords that begin a statement though they may be names.
const STARTS: &[&str] = &[
    "assert", "call", "close", "commit", "continue", "do", "exit", "fetch", "get", "move", "open",
    "perform", "raise", "return", "rollback",
];

impl Parser<'_> {
    /// Statements up to what ends them.
    pub(super) fn statements(&mut self) -> Result<Vec<Statement>> {
        let mut all = Vec::new();
        loop {
            let token = self.peek()?;
            if token.kind == Tok::Word {
                let ends = match token.text.as_str() {
                    "end" | "else" | "when" => true,
                    // Not reserved, so perhaps a variable.
                    "elsif" | "elseif" | "exception" => !self.is_assignment()?,
                    _ => false,
                };
                if ends {
                    return Ok(all);
                }
            }
            if let Some(statement) = self.statement()? {
                all.push(statement);
            }
        }
    }

    /// Does the text go on as an assignment to a variable does?
    fn is_assignment(&mut self) -> Result<bool> {
        let (names, used, _) = self.names_from(self.at);
        let next = self.token(used);
        let goes_on = ["=", ":=", "["].iter().any(|s| next.is(s));
        Ok(used > 0 && (used > 1 || goes_on) && self.look_up(&names).is_some())
    }

    /// None: it was NULL.
    fn statement(&mut self) -> Result<Option<Statement>> {
        let first = self.peek()?;
        let mut line = self.line(first.start);
        let kind = if first.is("<<") || (first.kind == Tok::Word && is_reserved(&first.text)) {
            match self.compound(&mut line)? {
                Some(kind) => kind,
                None => return Ok(None),
            }
        } else if !may_be_name(&first) && first.kind != Tok::Param {
            return Err(self.syntax(&first));
        } else if self.is_assignment()? {
            self.assignment()?
        } else if first.kind == Tok::Word && STARTS.contains(&first.text.as_str()) {
            self.at += 1;
            self.keyword(&first)?
        } else {
            let (_, used, _) = self.names_from(self.at);
            let next = self.token(used);
            let keeps = ["insert", "merge", "import"].contains(&first.text.as_str());
            if !keeps && ["=", ":=", "[", "."].iter().any(|s| next.is(s)) {
                return Err(self.not_known());
            }
            self.sql_statement()?
        };
        Ok(Some(Statement { line, name: kind.name(), kind }))
    }

    /// What begins with a label or a reserved word; None: NULL.
    fn compound(&mut self, line: &mut u32) -> Result<Option<Kind>> {
        let label_first = self.peek()?.is("<<");
        let ahead = if label_first { 3 } else { 0 };
        let word = self.token(ahead);
        let is_block = word.is_word("declare") || word.is_word("begin");
        if is_block {
            let label = self.label(LabelKind::Block)?;
            let block = self.block(label)?;
            self.expect(";")?;
            *line = block.line;
            return Ok(Some(Kind::Block(block)));
        }
        if label_first || ["loop", "while", "for", "foreach"].iter().any(|w| word.is_word(w)) {
            *line = self.line(word.start);
            return self.nested(Self::any_loop).map(Some);
        }
        self.at += 1;
        match word.text.as_str() {
            "if" => self.nested(Self::if_statement).map(Some),
            "case" => self.nested(Self::case_statement).map(Some),
            "execute" => self.execute().map(Some),
            "null" => {
                self.expect(";")?;
                Ok(None)
            }
            _ => Err(self.near("syntax error", &word)),
        }
    }

    fn keyword(&mut self, first: &Token) -> Result<Kind> {
        match first.text.as_str() {
            "assert" => {
                let (condition, found) = self.expression_to(&[",", ";"], ", or ;")?;
                let message = if found == "," { Some(self.expression(";")?) } else { None };
                Ok(Kind::Assert { condition, message })
            }
            "call" | "do" => {
                self.at -= 1;
                let site = self.statement_text()?;
                Ok(Kind::Call(site, if first.text == "call" { "CALL" } else { "DO" }))
            }
            "perform" => self.perform(first),
            "raise" => self.raise(),
            "get" => self.get_diagnostics(first),
            "open" => self.open(),
            "fetch" => self.fetch(first),
            "move" => self.move_cursor(),
            "close" => {
                let cursor = self.cursor_variable()?;
                self.expect(";")?;
                Ok(Kind::Close(cursor))
            }
            "exit" | "continue" => self.exit(first),
            "return" => self.return_statement(first),
            "commit" => Ok(Kind::Commit { chain: self.chain()? }),
            _ => Ok(Kind::Rollback { chain: self.chain()? }),
        }
    }

    /// `[AND [NO] CHAIN];`
    fn chain(&mut self) -> Result<bool> {
        let mut chain = false;
        if self.accept("and")? {
            chain = !self.accept("no")?;
            self.expect("chain")?;
        }
        self.expect(";")?;
        Ok(chain)
    }

    fn assignment(&mut self) -> Result<Kind> {
        let Some(named) = self.named()? else { return Err(self.not_known()) };
        self.check_assignable(&named)?;
        let target = self.target(&named)?;
        if !self.accept(":=")? && !self.accept("=")? {
            let token = self.peek()?;
            return Err(self.syntax(&token));
        }
        let (start, end) = self.assigned_span()?;
        let text = self.source[named.start..end].to_owned();
        let mode = Mode::Assignment { expression_at: (start - named.start) as u32 };
        let value = self.site(text, mode, named.start)?;
        Ok(Kind::Assign { target, value })
    }

    /// What is assigned; it may be nothing, which is found out when it is run.
    fn assigned_span(&mut self) -> Result<(usize, usize)> {
        if self.peek()?.is(";") {
            let sign = self.token_before();
            self.at += 1;
            return Ok((sign.end, sign.end));
        }
        let (start, end, _) = self.span(&[";"], ";", true)?;
        Ok((start, end))
    }

    fn exit(&mut self, first: &Token) -> Result<Kind> {
        let next = first.text == "continue";
        let mut label = None;
        let token = self.peek()?;
        if may_be_name(&token) {
            self.at += 1;
            match self.names.label(&token.text) {
                None => {
                    let text = format!(
                        "there is no label \"{}\" attached to any block or loop enclosing this statement",
                        token.text
                    );
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, text, token.start));
                }
                Some(LabelKind::Block) if next => {
                    let text = format!("block label \"{}\" cannot be used in CONTINUE", token.text);
                    return Err(self.error_at(SqlState::SYNTAX_ERROR, text, token.start));
                }
                Some(_) => label = Some(Arc::<str>::from(token.text.as_str())),
            }
        }
        let when = if self.accept("when")? {
            Some(self.expression(";")?)
        } else {
            self.expect(";")?;
            None
        };
        if label.is_none() && !self.names.in_loop() {
            let text = if next {
                "CONTINUE cannot be used outside a loop"
            } else {
                "EXIT cannot be used outside a loop, unless it has a label"
            };
            return Err(self.error_at(SqlState::SYNTAX_ERROR, text, first.start));
        }
        Ok(Kind::Exit { next, label, when })
    }

    fn return_statement(&mut self, first: &Token) -> Result<Kind> {
        let token = self.peek()?;
        if token.kind == Tok::End {
            return Err(self.near("unexpected end of function definition", &token));
        }
        if token.is_word("next") || token.is_word("query") {
            self.at += 1;
            return self.return_rows(first, &token);
        }
        let wrong = |text| SqlError::new(SqlState::DATATYPE_MISMATCH, text);
        let refused = match self.options.returns {
            Returns::Value => return Ok(Kind::Return(Some(self.expression(";")?))),
            Returns::Nothing => wrong("RETURN cannot have a parameter in function returning void"),
            Returns::Procedure => wrong("RETURN cannot have a parameter in a procedure"),
            Returns::Set => wrong("RETURN cannot have a parameter in function returning set")
                .hint("Use RETURN NEXT or RETURN QUERY."),
        };
        if !token.is(";") {
            return Err(self.placed(refused, token.start));
        }
        self.at += 1;
        Ok(Kind::Return(None))
    }

    /// RETURN NEXT and RETURN QUERY
    fn return_rows(&mut self, first: &Token, what: &Token) -> Result<Kind> {
        if self.options.returns != Returns::Set {
            let text =
                format!("cannot use RETURN {} in a non-SETOF function", what.text.to_uppercase());
            return Err(self.error_at(SqlState::DATATYPE_MISMATCH, text, first.start));
        }
        if what.text == "next" {
            let none = self.accept(";")?;
            return Ok(Kind::ReturnNext(if none { None } else { Some(self.expression(";")?) }));
        }
        let query = if self.accept("execute")? {
            self.dynamic(";", "; or USING", ", or ;")?
        } else {
            Query::Site(self.statement_text()?)
        };
        Ok(Kind::ReturnQuery(query))
    }

    fn get_diagnostics(&mut self, first: &Token) -> Result<Kind> {
        let stacked = self.accept("stacked")?;
        if !stacked {
            self.accept("current")?;
        }
        self.expect("diagnostics")?;
        let start = first.start;
        let mut items = Vec::new();
        loop {
            let named = self.known()?;
            let next = self.peek()?;
            if self.is_whole_record(&named) || next.is("[") {
                let text = format!("\"{}\" is not a scalar variable", self.written(&named));
                return Err(self.error_at(SqlState::SYNTAX_ERROR, text, named.start));
            }
            self.check_assignable(&named)?;
            if !self.accept(":=")? {
                self.expect("=")?;
            }
            let item = self.take()?;
            let Some(diagnostic) = Diagnostic::named(&item.text).filter(|_| item.is_name()) else {
                return Err(self.near("unrecognized GET DIAGNOSTICS item", &item));
            };
            self.check_diagnostic(diagnostic, &item, stacked, start)?;
            let steps = named.field.iter().map(|f| Step::Field(Arc::clone(f))).collect();
            items.push((Target { variable: named.variable, steps }, diagnostic));
            let end = self.take()?;
            match () {
                () if is(&end, ",") => {}
                () if is(&end, ";") => return Ok(Kind::Get { stacked, items }),
                () => return Err(self.syntax(&end)),
            }
        }
    }

    fn check_diagnostic(
        &self,
        diagnostic: Diagnostic,
        item: &Token,
        stacked: bool,
        start: usize,
    ) -> Result<()> {
        let area = match diagnostic {
            Diagnostic::Context => return Ok(()),
            Diagnostic::RowCount | Diagnostic::RoutineOid if stacked => "STACKED",
            Diagnostic::RowCount | Diagnostic::RoutineOid => return Ok(()),
            _ if stacked => return Ok(()),
            _ => "CURRENT",
        };
        let name = item.text.to_uppercase();
        let text = format!("diagnostics item {name} is not allowed in GET {area} DIAGNOSTICS");
        Err(self.error_at(SqlState::SYNTAX_ERROR, text, start))
    }
}

impl Diagnostic {
    fn named(name: &str) -> Option<Diagnostic> {
        Some(match name {
            "row_count" => Diagnostic::RowCount,
            "pg_routine_oid" => Diagnostic::RoutineOid,
            "pg_context" => Diagnostic::Context,
            "pg_exception_context" => Diagnostic::ErrorContext,
            "pg_exception_detail" => Diagnostic::Detail,
            "pg_exception_hint" => Diagnostic::Hint,
            "returned_sqlstate" => Diagnostic::Returned,
            "column_name" => Diagnostic::Column,
            "constraint_name" => Diagnostic::Constraint,
            "pg_datatype_name" => Diagnostic::DataType,
            "message_text" => Diagnostic::Message,
            "table_name" => Diagnostic::Table,
            "schema_name" => Diagnostic::Schema,
            _ => return None,
        })
    }
}
