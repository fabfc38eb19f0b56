//! Bitmap scans: what is told of their indexes.

use super::super::explain_tree::{Detail, Shown};
use super::super::print::Printer;
use super::super::{IndexKey, TableScan};
use super::Explain;
use engine::catalog::model::Index;
use expr::Expr;
use std::sync::Arc;

type Arm = (Arc<Index>, Vec<IndexKey>);

impl<'a> Explain<'a> {
    /// The conditions of a bitmap scan. Of several indexes these stand in one line; one has a node of its own ([`Self::bitmap_index`]).
    pub(super) fn bitmap_conditions(
        &self,
        scan: &TableScan,
        arms: &[Arm],
        columns: &'a [Expr],
    ) -> Vec<(String, Detail)> {
        let mut out: Vec<(String, Detail)> = Vec::new();
        let condition = |keys: &[IndexKey]| self.index_condition(keys, columns);
        if let [(_, keys)] = arms {
            out.extend(condition(keys).map(|c| ("Recheck Cond".to_owned(), c.into())));
        }
        if let Some(f) = &scan.filter {
            out.push(("Filter".to_owned(), self.print(f, columns).into()));
        }
        if arms.len() > 1 {
            let one = |(i, k): &Arm| {
                format!("{} {}", Printer::quoted(&i.name), condition(k).unwrap_or_default())
            };
            let list: Vec<String> = arms.iter().map(one).collect();
            out.push(("Recheck".to_owned(), list.join(" OR ").into()));
        }
        out
    }

    /// The scan of the only index.
    pub(super) fn bitmap_index(
        &self,
        index: &Index,
        keys: &[IndexKey],
        columns: &'a [Expr],
    ) -> Shown {
        let condition = self.index_condition(keys, columns);
        Shown {
            title: format!("Bitmap Index Scan on {}", Printer::quoted(&index.name)),
            name: "Bitmap Index Scan",
            details: condition.map(|c| ("Index Cond".to_owned(), c.into())).into_iter().collect(),
            members: vec![("Index Name", index.name.as_str().into())],
            ..Shown::default()
        }
    }
}
