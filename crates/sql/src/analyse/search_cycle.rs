//! SEARCH and CYCLE of a recursive WITH query: what they say is checked here; the planner makes columns of it
//! (`plan/search_cycle.rs`).
//!
//! # Invariants
//! The columns that they add stand behind the query's own: the sequence, the mark, the path. Within the query names find them, `*` does not.

use super::Analyser;
use crate::parse::ast::{self, CteDefinition, Loc, SelectBody};
use crate::query::{Cte, Cycle, Search};
use base::{Result, err};
use expr::{Expr, TypeRef};
use types::oids::{RECORD, RECORD_ARRAY};

impl Cte {
    /// How many columns SEARCH and CYCLE add.
    pub fn added_columns(&self) -> usize {
        usize::from(self.search.is_some()) + 2 * usize::from(self.cycle.is_some())
    }

    /// The columns that SEARCH and CYCLE add.
    fn added(&self) -> Vec<(String, TypeRef)> {
        let mut out = Vec::new();
        if let Some(search) = &self.search {
            let ty = if search.breadth_first { RECORD } else { RECORD_ARRAY };
            out.push((search.sequence.clone(), TypeRef::of(ty)));
        }
        if let Some(cycle) = &self.cycle {
            out.push((cycle.mark.clone(), cycle.value.ty()));
            out.push((cycle.path.clone(), TypeRef::of(RECORD_ARRAY)));
        }
        out
    }
}

/// Are there set operations at the top of it, which are part of the UNION that it is a side of?
fn is_set_operation(s: &ast::Select) -> bool {
    let bare = s.with.is_none() && s.order_by.is_empty() && s.limit.is_none() && s.offset.is_none();
    bare && matches!(s.body, SelectBody::SetOp { .. })
}

impl Analyser<'_> {
    /// SEARCH and CYCLE are for recursive queries.
    pub(super) fn refuse_search_and_cycle(&self, c: &CteDefinition) -> Result<()> {
        if c.search.is_none() && c.cycle.is_none() {
            return Ok(());
        }
        self.at(c.loc, err!(SYNTAX_ERROR, "WITH query is not recursive"))
    }

    /// Gives a recursive query its SEARCH and CYCLE, with their columns.
    pub(super) fn add_search_and_cycle(&mut self, c: &CteDefinition, cte: &mut Cte) -> Result<()> {
        cte.search = c.search.as_ref().map(|s| Search {
            breadth_first: s.breadth_first,
            columns: s.columns.clone(),
            sequence: s.sequence.clone(),
        });
        cte.cycle = c.cycle.as_ref().map(|c| self.cycle(c)).transpose()?;
        for (name, ty) in cte.added() {
            cte.columns.push(name);
            cte.types.push(ty);
        }
        Ok(())
    }

    fn cycle(&mut self, c: &ast::Cycle) -> Result<Cycle> {
        let (value, value_loc) = self.mark_value(c.value.as_ref(), true, c.loc)?;
        let (default, default_loc) = self.mark_value(c.default.as_ref(), false, c.loc)?;
        let types = [(value.ty().oid, value_loc), (default.ty().oid, default_loc)];
        let ty = self.common_type(&types, "CYCLE")?;
        let value = self.to_common(value, ty, "CYCLE/SET/TO", value_loc)?;
        let default = self.to_common(default, ty, "CYCLE/SET/DEFAULT", default_loc)?;
        self.must_be_equatable(ty, c.loc)?;
        let mark = Expr::CaseTestValue(value.ty());
        let differs = ast::OpName { schema: None, name: "<>".into() };
        let goes_on = self.binary(&differs, (mark, c.loc), (value.clone(), c.loc), c.loc)?;
        Ok(Cycle {
            columns: c.columns.clone(),
            mark: c.mark.clone(),
            value,
            default,
            goes_on,
            path: c.path.clone(),
        })
    }

    fn mark_value(
        &mut self,
        written: Option<&ast::Expr>,
        otherwise: bool,
        loc: Loc,
    ) -> Result<(Expr, Loc)> {
        match written {
            Some(e) => Ok((self.expr(e)?, e.loc)),
            None => Ok((super::coerce::bool_const(otherwise), loc)),
        }
    }

    /// What SEARCH and CYCLE say must fit the query and each other. `own`: the query's columns.
    pub(super) fn check_search_and_cycle(
        &self,
        c: &CteDefinition,
        sides: [&ast::Select; 2],
        own: &[String],
    ) -> Result<()> {
        if c.search.is_none() && c.cycle.is_none() {
            return Ok(());
        }
        let [left, right] = sides.map(is_set_operation);
        if left {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT"
            ));
        }
        if right {
            return Err(err!(
                SYNTAX_ERROR,
                "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT"
            ));
        }
        if let Some(s) = &c.search {
            self.check_listed(&s.columns, own, "search", s.loc)?;
            self.check_new(&s.sequence, own, "search sequence", s.loc)?;
        }
        let Some(cycle) = &c.cycle else { return Ok(()) };
        self.check_listed(&cycle.columns, own, "cycle", cycle.loc)?;
        self.check_new(&cycle.mark, own, "cycle mark", cycle.loc)?;
        self.check_new(&cycle.path, own, "cycle path", cycle.loc)?;
        self.check_apart(
            (cycle.mark.as_str(), "cycle mark"),
            (cycle.path.as_str(), "cycle path"),
            cycle.loc,
        )?;
        let Some(s) = &c.search else { return Ok(()) };
        for other in [(cycle.mark.as_str(), "cycle mark"), (cycle.path.as_str(), "cycle path")] {
            self.check_apart((s.sequence.as_str(), "search sequence"), other, s.loc)?;
        }
        Ok(())
    }

    fn check_listed(&self, list: &[String], own: &[String], what: &str, loc: Loc) -> Result<()> {
        for (i, name) in list.iter().enumerate() {
            if !own.contains(name) {
                let e =
                    err!(SYNTAX_ERROR, "{what} column \"{name}\" not in WITH query column list");
                return self.at(loc, e);
            }
            if list[..i].contains(name) {
                let e = err!(DUPLICATE_COLUMN, "{what} column \"{name}\" specified more than once");
                return self.at(loc, e);
            }
        }
        Ok(())
    }

    fn check_new(&self, name: &str, own: &[String], what: &str, loc: Loc) -> Result<()> {
        if !own.iter().any(|o| o == name) {
            return Ok(());
        }
        let e = err!(
            SYNTAX_ERROR,
            "{what} column name \"{name}\" already used in WITH query column list"
        );
        self.at(loc, e)
    }

    fn check_apart(
        &self,
        (a, what): (&str, &str),
        (b, other): (&str, &str),
        loc: Loc,
    ) -> Result<()> {
        if a != b {
            return Ok(());
        }
        let e = err!(SYNTAX_ERROR, "{what} column name and {other} column name are the same");
        self.at(loc, e)
    }
}
