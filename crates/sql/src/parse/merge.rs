//! MERGE.

use super::ast::{Insert, Merge, MergeAction, MergeWhen, Returning, SelectBody, TableRef, With};
use super::parser::Parser;
use super::select::plain;
use crate::query::MergeWhen as When;
use base::Result;

impl Parser<'_> {
    pub fn merge(&mut self, with: Option<With>) -> Result<Merge> {
        self.expect_all(&["merge", "into"])?;
        let TableRef::Table { name: table, only, alias, .. } = self.relation(None)? else {
            return Err(self.unexpected());
        };
        self.expect("using")?;
        let source = self.table_ref()?;
        self.expect("on")?;
        let on = self.expr()?;
        let mut whens = vec![self.merge_when(&table)?];
        while self.is("when") {
            whens.push(self.merge_when(&table)?);
        }
        let returning = self.returning()?;
        Ok(Merge { with, table, only, alias, source, on, whens, returning })
    }

    fn merge_when(&mut self, table: &super::ast::ObjectName) -> Result<MergeWhen> {
        self.expect("when")?;
        let when = if self.accept("not") {
            self.expect("matched")?;
            if self.accept_all(&["by", "source"]) {
                When::NotMatchedBySource
            } else {
                if self.accept("by") {
                    self.expect("target")?;
                }
                When::NotMatchedByTarget
            }
        } else {
            self.expect("matched")?;
            When::Matched
        };
        let condition = if self.accept("and") { Some(self.expr()?) } else { None };
        self.expect("then")?;
        let inserts = when == When::NotMatchedByTarget;
        let action = if !inserts && self.accept("update") {
            self.expect("set")?;
            MergeAction::Update(self.set_list()?)
        } else if !inserts && self.accept("delete") {
            MergeAction::Delete
        } else if inserts && self.accept("insert") {
            MergeAction::Insert(Box::new(self.merge_insert(table)?))
        } else {
            self.expect_all(&["do", "nothing"])?;
            MergeAction::Nothing
        };
        Ok(MergeWhen { when, condition, action })
    }

    /// `[(columns)] [OVERRIDING …] VALUES (…)`, or `DEFAULT VALUES`
    fn merge_insert(&mut self, table: &super::ast::ObjectName) -> Result<Insert> {
        let columns =
            if self.is_op("(") { self.paren_list(Self::assign_target)? } else { Vec::new() };
        let overriding_system = self.overriding()?;
        let source = if columns.is_empty() && overriding_system.is_none() && self.accept("default")
        {
            self.expect("values")?;
            None
        } else {
            let loc = self.loc();
            self.expect("values")?;
            Some(plain(SelectBody::Values(vec![self.paren_list(Self::expr)?]), loc))
        };
        Ok(Insert {
            with: None,
            table: table.clone(),
            alias: None,
            columns,
            overriding_system,
            source,
            on_conflict: None,
            returning: Returning::default(),
        })
    }
}
