//! Bitmap scans: what is told of their indexes.

use super::super::explain_tree::{Detail, Shown};
use super::super::print::Printer;
use super::super::{IndexKey, PlanNode, TableScan};
use super::Explain;
use engine::catalog::model::Index;
use expr::Expr;
use std::sync::Arc;

type Arm = (Arc<Index>, Vec<IndexKey>);

impl<'a> Explain<'a> {
    /// The conditions of a bitmap scan: what the indexes were asked, of pages of which not every row was noted; and what is asked of each row.
    pub(super) fn bitmap_conditions(
        &self,
        scan: &TableScan,
        arms: &[Arm],
        n: &'a PlanNode,
    ) -> Vec<(String, Detail)> {
        let mut out: Vec<(String, Detail)> = Vec::new();
        let asked: Vec<String> =
            arms.iter().filter_map(|(_, keys)| self.index_condition(keys, n)).collect();
        if asked.len() == arms.len() {
            let any = asked.join(" OR ");
            let any = if asked.len() > 1 { format!("({any})") } else { any };
            out.push(("Recheck Cond".to_owned(), any.into()));
        }
        if let Some(f) = scan.filter.as_ref().and_then(|f| self.beside(f, &out, n)) {
            out.push(("Filter".to_owned(), f.into()));
        }
        out
    }

    /// What is asked of each row beside what is told already: of an OR it is asked again.
    fn beside(&self, filter: &Expr, told: &[(String, Detail)], n: &'a PlanNode) -> Option<String> {
        let told: Vec<String> = told.iter().map(|(_, detail)| detail.line()).collect();
        let list = match filter {
            Expr::And(list) => list.clone(),
            e => vec![e.clone()],
        };
        let rest = list.into_iter().filter(|e| !told.contains(&self.condition(e, n)));
        Some(self.condition(&super::super::create::and_all(rest.collect())?, n))
    }

    /// The scans of the indexes.
    pub(super) fn bitmap_indexes(&self, arms: &[Arm], n: &'a PlanNode) -> Option<Shown> {
        let one = |(index, keys): &Arm| self.bitmap_index(index, keys, n);
        match arms {
            [] => None,
            [arm] => Some(one(arm)),
            _ => Some(Shown {
                title: "BitmapOr".to_owned(),
                name: "BitmapOr",
                children: arms.iter().map(|arm| (None, one(arm))).collect(),
                ..Shown::default()
            }),
        }
    }

    fn bitmap_index(&self, index: &Index, keys: &[IndexKey], n: &'a PlanNode) -> Shown {
        let condition = self.index_condition(keys, n);
        Shown {
            title: format!("Bitmap Index Scan on {}", Printer::quoted(&index.name)),
            name: "Bitmap Index Scan",
            details: condition.map(|c| ("Index Cond".to_owned(), c.into())).into_iter().collect(),
            members: vec![("Index Name", index.name.as_str().into())],
            ..Shown::default()
        }
    }
}
