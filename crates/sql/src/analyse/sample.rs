//! TABLESAMPLE.
//!
//! # Differs from PostgreSQL
//! Its arguments have no sub-selects (0A000).

use super::Analyser;
use crate::parse::ast::{self, Loc};
use crate::query::{RteKind, SampleMethod, TableSample};
use base::{Oid, Result, err};
use engine::catalog::model::RelationKind;
use expr::Expr;
use types::oids::{FLOAT4, FLOAT8};

impl Analyser<'_> {
    /// Has entry `rte`, just made for a table named at `loc`, sampled.
    pub(super) fn sampled(&mut self, rte: usize, s: &ast::Sample, loc: Loc) -> Result<()> {
        let table = match self.level().rtes[rte].kind {
            RteKind::Relation { oid, .. } => self.catalog.table_by_oid(Oid(oid))?,
            _ => None,
        };
        let kinds =
            [RelationKind::Table, RelationKind::PartitionedTable, RelationKind::MaterializedView];
        if !table.is_some_and(|t| kinds.contains(&t.kind)) {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "TABLESAMPLE clause can only be applied to tables and materialized views"
            );
            return self.at(loc, e);
        }
        let method = match &s.method[..] {
            [name] => Some(name),
            [schema, name] if schema == "pg_catalog" => Some(name),
            _ => None,
        };
        let method = match method.map(String::as_str) {
            Some("system") => SampleMethod::System,
            Some("bernoulli") => SampleMethod::Bernoulli,
            _ => {
                let e = err!(
                    UNDEFINED_OBJECT,
                    "tablesample method {} does not exist",
                    s.method.join(".")
                );
                return self.at(s.loc, e);
            }
        };
        let [percent] = &s.arguments[..] else {
            let e = err!(
                INVALID_TABLESAMPLE_ARGUMENT,
                "tablesample method {} requires 1 argument, not {}",
                method.name(),
                s.arguments.len()
            );
            return self.at(s.loc, e);
        };
        let percent = self.sample_argument(percent, FLOAT4, "TABLESAMPLE", "type real")?;
        let seed = match &s.seed {
            Some(e) => {
                Some(self.sample_argument(e, FLOAT8, "REPEATABLE", "type double precision")?)
            }
            None => None,
        };
        let asked = Box::new(TableSample { method, percent, seed });
        if let RteKind::Relation { sample, .. } = &mut self.level().rtes[rte].kind {
            *sample = Some(asked);
        }
        Ok(())
    }

    fn sample_argument(
        &mut self,
        e: &ast::Expr,
        ty: Oid,
        what: &str,
        wanted: &str,
    ) -> Result<Expr> {
        let loc = e.loc;
        // What stands beside it in FROM it may not refer to.
        let lateral = std::mem::replace(&mut self.level().lateral, false);
        let seen = |i: &mut super::scope::Item| std::mem::replace(&mut i.lateral_only, true);
        let flags: Vec<bool> = self.level().items.iter_mut().map(seen).collect();
        let made = self.expr(e);
        self.level().lateral = lateral;
        for (item, flag) in self.level().items.iter_mut().zip(flags) {
            item.lateral_only = flag;
        }
        let made = self.expect_type(made?, ty, what, wanted, e.loc)?;
        if made.any(&mut |e| matches!(e, Expr::SubLink { .. })) {
            let e = base::Error::unsupported("a sub-select as TABLESAMPLE's argument");
            return self.at(loc, e);
        }
        Ok(made)
    }
}
