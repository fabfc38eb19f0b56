//! INSERT, UPDATE, DELETE.

use super::ast::{
    Alias, AssignTarget, Conflict, ConflictTarget, Delete, ExprKind, IndexElement, Indirection,
    Insert, Returning, ReturningName, Select, SelectBody, SetClause, TableRef, Update, With,
};
use super::keywords::Category;
use super::lexer::Kind;
use super::parser::Parser;
use base::Result;

impl Parser<'_> {
    pub fn insert(&mut self, with: Option<With>) -> Result<Insert> {
        self.expect_all(&["insert", "into"])?;
        let table = self.object_name()?;
        let alias = if self.accept("as") { Some(self.name()?) } else { None };
        let mut columns = Vec::new();
        if self.is_op("(") && !self.subselect_ahead() {
            columns = self.paren_list(Self::assign_target)?;
        }
        let overriding_system = self.overriding()?;
        let source: Option<Select> =
            if columns.is_empty() && overriding_system.is_none() && self.accept("default") {
                self.expect("values")?;
                None
            } else {
                Some(self.select()?)
            };
        let on_conflict = if self.is("on") { Some(self.on_conflict()?) } else { None };
        let returning = self.returning()?;
        Ok(Insert {
            with,
            table,
            alias,
            columns,
            overriding_system,
            source,
            on_conflict,
            returning,
        })
    }

    /// OVERRIDING SYSTEM VALUE: Some(true); OVERRIDING USER VALUE: Some(false).
    pub(super) fn overriding(&mut self) -> Result<Option<bool>> {
        if !self.accept("overriding") {
            return Ok(None);
        }
        let system = self.accept("system");
        if !system {
            self.expect("user")?;
        }
        self.expect("value")?;
        Ok(Some(system))
    }

    pub(super) fn returning(&mut self) -> Result<Returning> {
        if !self.accept("returning") {
            return Ok(Returning::default());
        }
        let mut names = Vec::new();
        if self.is("with") && self.is_op_at(1, "(") {
            self.skip(1);
            names = self.paren_list(Self::returning_name)?;
        }
        Ok(Returning { names, targets: self.targets()? })
    }

    fn returning_name(&mut self) -> Result<ReturningName> {
        let loc = self.loc();
        let new = self.is("new");
        if !new && !self.is("old") {
            return Err(self.unexpected());
        }
        self.skip(1);
        self.expect("as")?;
        Ok(ReturningName { new, name: self.name()?, loc })
    }

    pub(super) fn assign_target(&mut self) -> Result<AssignTarget> {
        let loc = self.loc();
        let column = self.name()?;
        let mut indirection = Vec::new();
        loop {
            if self.is_op("[") {
                indirection.push(Indirection::Index(self.subscript()?));
            } else if self.accept_op(".") {
                indirection.push(match self.accept_op("*") {
                    true => Indirection::Star,
                    false => Indirection::Field(self.label()?),
                });
            } else {
                let before = indirection.split_last().map_or(&[][..], |(_, before)| before);
                if before.iter().any(|step| matches!(step, Indirection::Star)) {
                    return Err(self.improper("improper use of \"*\""));
                }
                return Ok(AssignTarget { column, indirection, loc });
            }
        }
    }

    fn on_conflict(&mut self) -> Result<Conflict> {
        let loc = self.loc();
        self.expect_all(&["on", "conflict"])?;
        let target = if self.is_op("(") {
            let loc = self.loc();
            let elements = self.paren_list(Self::index_element)?;
            let filter = if self.accept("where") { Some(self.expr()?) } else { None };
            ConflictTarget::Columns { elements, filter, loc }
        } else if self.accept("on") {
            self.expect("constraint")?;
            let at = self.loc();
            ConflictTarget::Constraint(self.name()?, at)
        } else {
            ConflictTarget::None
        };
        self.expect("do")?;
        if self.accept("nothing") {
            return Ok(Conflict { target, update: None, filter: None, loc });
        }
        self.expect_all(&["update", "set"])?;
        let update = Some(self.set_list()?);
        let filter = if self.accept("where") { Some(self.expr()?) } else { None };
        Ok(Conflict { target, update, filter, loc })
    }

    /// A key of CREATE INDEX or of ON CONFLICT.
    pub fn index_element(&mut self) -> Result<IndexElement> {
        let loc = self.loc();
        let mut column = None;
        let mut expr = None;
        let t = self.peek();
        let plain = matches!(t.kind, Kind::Word | Kind::Quoted)
            && matches!(t.category, Category::None | Category::ColumnName)
            && !self.is_op_at(1, "(")
            && !self.is_op_at(1, ".");
        if plain {
            column = Some(self.name()?);
        } else if self.is_op("(") {
            self.skip(1);
            expr = Some(self.expr()?);
            self.expect_op(")")?;
        } else {
            let e = self.primary()?;
            if !matches!(
                e.kind,
                ExprKind::Call(_)
                    | ExprKind::Json(_)
                    | ExprKind::Coalesce(_)
                    | ExprKind::NullIf(..)
                    | ExprKind::MinMax { .. }
                    | ExprKind::SqlValue { .. }
                    | ExprKind::Cast { .. }
            ) {
                return Err(self.unexpected());
            }
            expr = Some(e);
        }
        let collation = if self.accept("collate") { Some(self.collation_name()?) } else { None };
        let mut opclass = None;
        if self.is_name() && !self.is("nulls") {
            opclass = Some(self.dotted()?);
            if self.is_op("(") {
                return Err(base::Error::unsupported("operator class options"));
            }
        }
        let descending = self.accept("desc");
        let ordered = descending || self.accept("asc");
        let nulls_first = self.nulls_order()?;
        Ok(IndexElement { column, expr, collation, opclass, descending, ordered, nulls_first, loc })
    }

    pub(super) fn set_list(&mut self) -> Result<Vec<SetClause>> {
        self.list(|p| {
            if p.is_op("(") {
                let targets = p.paren_list(Self::assign_target)?;
                p.expect_op("=")?;
                return Ok(SetClause::Multi { targets, value: p.expr()? });
            }
            let target = p.assign_target()?;
            p.expect_op("=")?;
            Ok(SetClause::Single { target, value: p.expr()? })
        })
    }

    fn dml_target(&mut self) -> Result<(super::ast::ObjectName, bool, Option<Alias>)> {
        match self.relation(Some("set"))? {
            TableRef::Table { name, only, alias, .. } => Ok((name, only, alias)),
            _ => Err(self.unexpected()),
        }
    }

    pub fn update(&mut self, with: Option<With>) -> Result<Update> {
        self.expect("update")?;
        let (table, only, alias) = self.dml_target()?;
        self.expect("set")?;
        let set = self.set_list()?;
        let from = if self.accept("from") { self.list(Self::table_ref)? } else { Vec::new() };
        let filter = self.where_or_current()?;
        let returning = self.returning()?;
        Ok(Update { with, table, only, alias, set, from, filter, returning })
    }

    pub fn delete(&mut self, with: Option<With>) -> Result<Delete> {
        self.expect_all(&["delete", "from"])?;
        let (table, only, alias) = self.dml_target()?;
        let using = if self.accept("using") { self.list(Self::table_ref)? } else { Vec::new() };
        let filter = self.where_or_current()?;
        let returning = self.returning()?;
        Ok(Delete { with, table, only, alias, using, filter, returning })
    }

    fn where_or_current(&mut self) -> Result<Option<super::ast::Expr>> {
        if !self.accept("where") {
            return Ok(None);
        }
        let loc = self.loc();
        if self.accept_all(&["current", "of"]) {
            let name = self.name()?;
            return Ok(Some(super::expr::node(ExprKind::CurrentOf(name), loc)));
        }
        Ok(Some(self.expr()?))
    }
}

/// Is this select a bare VALUES list?
pub fn as_values(s: &Select) -> Option<&Vec<Vec<super::ast::Expr>>> {
    match &s.body {
        SelectBody::Values(rows)
            if s.with.is_none()
                && s.order_by.is_empty()
                && s.limit.is_none()
                && s.offset.is_none()
                && s.locking.is_empty() =>
        {
            Some(rows)
        }
        _ => None,
    }
}
