//! FROM: tables, functions, sub-selects, joins.

use super::ast::{
    Alias, ColumnDefinition, Expr, ExprKind, JoinCondition, Loc, ObjectName, TableRef,
};
use super::expr::boxed;
use super::lexer::Kind;
use super::parser::{OF_A_NODE, Parser};
use crate::query::JoinKind;
use base::{Result, err};

impl Parser<'_> {
    /// An element of FROM, joins included.
    pub fn table_ref(&mut self) -> Result<TableRef> {
        self.deeper(|p| p.within(Self::joined))
    }

    fn joined(&mut self) -> Result<TableRef> {
        let mut left = self.table_primary()?;
        let mut chain = 0;
        loop {
            let loc = self.loc();
            let natural = self.is("natural");
            let ahead = usize::from(natural);
            let (kind, words) = match self.peek_at(ahead) {
                t if t.kind != Kind::Word => return Ok(left),
                t if t.text == "join" => (JoinKind::Inner, 1),
                t if t.text == "inner" => (JoinKind::Inner, 2),
                t if t.text == "cross" => (JoinKind::Inner, 2),
                t if matches!(&*t.text, "left" | "right" | "full") => {
                    let kind = match &*t.text {
                        "left" => JoinKind::Left,
                        "right" => JoinKind::Right,
                        _ => JoinKind::Full,
                    };
                    (kind, if self.is_at(ahead + 1, "outer") { 3 } else { 2 })
                }
                _ if natural => {
                    self.skip(1);
                    return Err(self.unexpected());
                }
                _ => return Ok(left),
            };
            let cross = self.is("cross");
            self.skip(ahead + words - 1);
            self.expect("join")?;
            let right = if cross || natural {
                self.table_primary()?
            } else {
                // a JOIN b JOIN c ON … ON …
                self.join_operand()?
            };
            let condition = if cross {
                JoinCondition::Cross
            } else if natural {
                JoinCondition::Natural
            } else {
                self.join_condition()?
            };
            left = TableRef::Join {
                kind,
                left: Box::new(left),
                right: Box::new(right),
                condition,
                alias: None,
                loc,
            };
            self.grow_by(OF_A_NODE)?;
            chain += 1;
            if chain > 500 {
                return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
            }
        }
    }

    fn join_operand(&mut self) -> Result<TableRef> {
        let first = self.table_primary()?;
        if self.is_any(&["on", "using"]) {
            return Ok(first);
        }
        // Nested without parentheses: joins until a condition for the outer one stands there.
        self.deeper(|p| {
            let mut left = first;
            while !p.is_any(&["on", "using"]) {
                let loc = p.loc();
                let natural = p.accept("natural");
                let cross = p.is("cross");
                let kind = match &*p.peek().text {
                    "left" => JoinKind::Left,
                    "right" => JoinKind::Right,
                    "full" => JoinKind::Full,
                    _ => JoinKind::Inner,
                };
                if p.is_any(&["left", "right", "full"]) {
                    p.skip(1);
                    p.accept("outer");
                } else if p.is_any(&["inner", "cross"]) {
                    p.skip(1);
                }
                p.expect("join")?;
                let right = if cross || natural { p.table_primary()? } else { p.join_operand()? };
                let condition = if cross {
                    JoinCondition::Cross
                } else if natural {
                    JoinCondition::Natural
                } else {
                    p.join_condition()?
                };
                left = TableRef::Join {
                    kind,
                    left: Box::new(left),
                    right: Box::new(right),
                    condition,
                    alias: None,
                    loc,
                };
                p.grow_by(OF_A_NODE)?;
            }
            Ok(left)
        })
    }

    fn join_condition(&mut self) -> Result<JoinCondition> {
        if self.accept("on") {
            return Ok(JoinCondition::On(boxed(self.expr()?)));
        }
        self.expect("using")?;
        let columns = self.paren_list(|p| {
            let loc = p.loc();
            Ok((p.name()?, loc))
        })?;
        let alias = if self.accept("as") { Some(self.name()?) } else { None };
        Ok(JoinCondition::Using(columns, alias))
    }

    /// A table by name, with ONLY, `*` and an alias. `no_alias_word` cannot be its alias.
    pub fn relation(&mut self, no_alias_word: Option<&str>) -> Result<TableRef> {
        let mut table = self.unaliased_relation()?;
        if let TableRef::Table { alias, .. } = &mut table {
            *alias = self.alias(no_alias_word)?;
        }
        Ok(table)
    }

    /// `[ONLY] name [*]`
    pub fn unaliased_relation(&mut self) -> Result<TableRef> {
        let mut only = self.accept("only");
        let name = if only && self.accept_op("(") {
            let n = self.object_name()?;
            self.expect_op(")")?;
            n
        } else {
            self.object_name()?
        };
        if self.accept_op("*") {
            only = false;
        }
        Ok(TableRef::Table { name, only, alias: None, sample: None })
    }

    /// `[AS] name [(columns)]`
    pub fn alias(&mut self, no_alias_word: Option<&str>) -> Result<Option<Alias>> {
        if !self.accept("as") && (!self.is_name() || no_alias_word.is_some_and(|w| self.is(w))) {
            return Ok(None);
        }
        let name = self.name()?;
        let columns = if self.is_op("(") { self.paren_list(Self::name)? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }

    fn table_primary(&mut self) -> Result<TableRef> {
        let loc = self.loc();
        let lateral = self.accept("lateral");
        if self.is_op("(") {
            if self.subselect_ahead() {
                self.expect_op("(")?;
                let query = Box::new(self.select()?);
                self.expect_op(")")?;
                let alias = self.alias(None)?;
                return Ok(TableRef::Subquery { query, lateral, alias, loc });
            }
            if lateral {
                return Err(self.unexpected());
            }
            self.skip(1);
            let mut inner = self.table_ref()?;
            self.expect_op(")")?;
            if let TableRef::Join { alias, .. } = &mut inner {
                *alias = self.alias(None)?;
            } else {
                return Err(self.unexpected());
            }
            return Ok(inner);
        }
        if self.is("rows") && self.is_at(1, "from") && self.is_op_at(2, "(") {
            self.skip(2);
            let calls = self.paren_list(|p| {
                let call = p.function_in_from()?;
                let columns = if p.accept("as") { p.column_definitions()? } else { Vec::new() };
                Ok((call, columns))
            })?;
            return self.function_rest(calls, true, lateral, loc);
        }
        if self.is_function_ahead() {
            let call = self.function_in_from()?;
            return self.function_rest(vec![(call, Vec::new())], false, lateral, loc);
        }
        if lateral {
            return Err(self.unexpected());
        }
        let mut table = self.relation(None)?;
        if self.is("tablesample") {
            let asked = self.sample()?;
            if let TableRef::Table { sample, .. } = &mut table {
                *sample = Some(Box::new(asked));
            }
        }
        Ok(table)
    }

    fn sample(&mut self) -> Result<super::ast::Sample> {
        self.skip(1);
        let loc = self.loc();
        let method = self.dotted()?;
        let arguments = self.paren_list(Self::expr)?;
        let mut seed = None;
        if self.accept("repeatable") {
            self.expect_op("(")?;
            seed = Some(self.expr()?);
            self.expect_op(")")?;
        }
        Ok(super::ast::Sample { method, loc, arguments, seed })
    }

    fn is_function_ahead(&self) -> bool {
        let t = self.peek();
        if t.kind == Kind::Word
            && matches!(
                &*t.text,
                "current_date"
                    | "current_time"
                    | "current_timestamp"
                    | "localtime"
                    | "localtimestamp"
                    | "current_user"
                    | "session_user"
                    | "user"
                    | "current_role"
                    | "current_catalog"
                    | "current_schema"
            )
        {
            return true;
        }
        let mut n = 0;
        if !matches!(t.kind, Kind::Word | Kind::Quoted) || self.is("only") {
            return false;
        }
        while self.is_op_at(n + 1, ".") {
            n += 2;
        }
        self.is_op_at(n + 1, "(")
    }

    fn function_in_from(&mut self) -> Result<Expr> {
        let e = self.primary()?;
        match e.kind {
            ExprKind::Call(_)
            | ExprKind::Json(_)
            | ExprKind::SqlValue { .. }
            | ExprKind::Coalesce(_)
            | ExprKind::Cast { .. }
            | ExprKind::MinMax { .. } => Ok(e),
            _ => {
                let e = err!(SYNTAX_ERROR, "syntax error in FROM");
                Err(e)
            }
        }
    }

    fn column_definitions(&mut self) -> Result<Vec<ColumnDefinition>> {
        self.paren_list(|p| {
            let name = p.name()?;
            let ty = p.type_name()?;
            Ok(ColumnDefinition { name, ty })
        })
    }

    fn function_rest(
        &mut self,
        calls: Vec<(Expr, Vec<ColumnDefinition>)>,
        rows_from: bool,
        lateral: bool,
        loc: Loc,
    ) -> Result<TableRef> {
        let ordinality = self.accept_all(&["with", "ordinality"]);
        let mut alias = None;
        let mut columns = Vec::new();
        let has_as = self.accept("as");
        if has_as && self.is_op("(") {
            columns = self.column_definitions()?;
        } else if has_as || self.is_name() {
            let name = self.name()?;
            alias = Some(Alias { name, columns: Vec::new() });
            if self.is_op("(") {
                // names alone, or names with types
                let typed = self.is_name_at(1) && !self.is_op_at(2, ",") && !self.is_op_at(2, ")");
                if typed {
                    columns = self.column_definitions()?;
                } else if let Some(a) = &mut alias {
                    a.columns = self.paren_list(Self::name)?;
                }
            }
        }
        Ok(TableRef::Function { calls, rows_from, ordinality, lateral, alias, columns, loc })
    }

    /// `[ONLY] name [*]` in LOCK, TRUNCATE and the like.
    pub fn only_name(&mut self) -> Result<(ObjectName, bool)> {
        match self.relation_without_alias()? {
            TableRef::Table { name, only, .. } => Ok((name, only)),
            _ => Err(self.unexpected()),
        }
    }
    fn relation_without_alias(&mut self) -> Result<TableRef> {
        self.accept("table");
        let only = self.accept("only");
        let parens = only && self.accept_op("(");
        let name = self.object_name()?;
        if parens {
            self.expect_op(")")?;
        }
        self.accept_op("*");
        Ok(TableRef::Table { name, only, alias: None, sample: None })
    }
}
