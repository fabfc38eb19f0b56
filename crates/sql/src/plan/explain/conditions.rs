//! How a plan names tables, and columns in conditions and orders.

use super::super::explain_tree::Detail;
use super::super::print::{Given, Printer, Qualified};
use super::super::{IndexKey, Modify, NodeKind, Plan, PlanNode, PlanSortKey, TableScan};
use super::Explain;
use engine::catalog::model::Table;
use expr::Expr;

/// What the parameters of a plan's execution are given: columns of a nested loop's outer side, and what a sub-plan is run for.
pub(super) fn given(plan: &Plan) -> Vec<Given> {
    let mut out = Vec::new();
    let nodes = [&plan.root];
    let subs = plan.sub_plans.iter().map(|s| &s.node);
    for root in nodes.into_iter().chain(subs).chain(plan.ctes.iter().map(|c| &c.node)) {
        given_within(root, &mut out);
    }
    out
}

fn given_within(n: &PlanNode, out: &mut Vec<Given>) {
    let columns: Vec<&Expr> = match &n.children()[..] {
        [] => n.columns.iter().collect(),
        inputs => inputs.iter().flat_map(|i| &i.columns).collect(),
    };
    let over_no_row = |e: &Expr| {
        let mut e = e.clone();
        e.rewrite(&mut |e| {
            let Expr::Slot { index, .. } = e else { return false };
            if let Some(column) = columns.get(*index) {
                *e = (*column).clone();
            }
            true
        });
        e
    };
    if let NodeKind::NestLoop { params, .. } = &n.kind {
        out.extend(params.iter().map(|(index, e)| (*index, over_no_row(e))));
    }
    crate::exec::each_node_expr(n, &mut |e| {
        e.walk(&mut |e| {
            if let Expr::SubPlan { args, .. } = e {
                out.extend(args.iter().map(|(index, e)| (*index, over_no_row(e))));
            }
        });
    });
    for input in n.children() {
        given_within(input, out);
    }
}

impl Modify {
    /// The indexes by which ON CONFLICT knows a conflict.
    pub(super) fn arbiters(&self) -> Vec<String> {
        let oids = self.on_conflict.iter().flat_map(|c| &c.source.arbiters);
        let found = oids.filter_map(|o| self.table.indexes.iter().find(|i| i.oid.0 == *o));
        found.map(|i| Printer::quoted(&i.name)).collect()
    }
}

impl<'a> Explain<'a> {
    /// A table; VERBOSE says its schema.
    pub(super) fn table_name(&self, table: &Table) -> String {
        let name = Printer::quoted(&table.name);
        match self.options.verbose {
            true => format!("{}.{name}", Printer::quoted(&table.namespace_name)),
            false => name,
        }
    }

    /// A table and its name in the query, if that is another; VERBOSE says its schema.
    pub(super) fn scan_name(&self, scan: &TableScan) -> String {
        let table = &scan.table;
        let mut out = self.table_name(table);
        let alias = self.scan_alias(scan);
        if alias != table.name {
            out.push(' ');
            out.push_str(&Printer::quoted(alias));
        }
        out
    }

    /// Expressions over these columns. VERBOSE names the relation with each, as PostgreSQL does.
    pub(super) fn printer<'c>(&'c self, columns: &'c [Expr]) -> Printer<'c>
    where
        'a: 'c,
    {
        let p = Printer::new(self.plan, columns, self.env).with(&self.params).named(&self.names);
        if self.options.verbose { p.qualified(Qualified::Always) } else { p }
    }

    pub(super) fn print(&self, e: &Expr, columns: &'a [Expr]) -> String {
        let mut p = self.printer(columns);
        p.expr(e);
        p.finish_top()
    }

    /// A condition over a node's rows: a scan need not say whose its own columns are.
    pub(super) fn condition(&self, e: &Expr, n: &'a PlanNode) -> String {
        let mut p = self.printer(&n.columns);
        if let Some(own) = self.scanned(n).filter(|_| !self.options.verbose) {
            p = p.qualified(Qualified::Others(own));
        }
        p.expr(e);
        p.finish_top()
    }

    /// What an index is asked.
    pub(super) fn index_condition(&self, keys: &[IndexKey], n: &'a PlanNode) -> Option<String> {
        let mut list: Vec<Expr> = Vec::new();
        for k in keys {
            if !list.contains(&k.printed) {
                list.push(k.printed.clone());
            }
        }
        let e = super::super::create::and_all(list)?;
        Some(self.condition(&e, n))
    }

    /// An order, each element with its direction where that is not the usual.
    pub(super) fn sort_keys(&self, keys: &[PlanSortKey], columns: &'a [Expr]) -> Detail {
        let directed = |(k, mut s): (&PlanSortKey, String)| {
            s.push_str(match (k.descending, k.nulls_first) {
                (true, true) => " DESC",
                (true, false) => " DESC NULLS LAST",
                (false, true) => " NULLS FIRST",
                (false, false) => "",
            });
            s
        };
        Detail::List(keys.iter().zip(self.elements(keys, columns)).map(directed).collect())
    }

    /// The elements of an order alone.
    pub(super) fn elements(&self, keys: &[PlanSortKey], columns: &'a [Expr]) -> Vec<String> {
        keys.iter().map(|k| self.element(&k.expr, columns)).collect()
    }

    /// A key of an order or a partition; what was computed below stands in parentheses.
    pub(super) fn element(&self, key: &Expr, columns: &'a [Expr]) -> String {
        let below = match key {
            Expr::Slot { index, .. } => columns.get(*index),
            _ => None,
        };
        let mut p = self.printer(columns);
        p.expr(key);
        match below {
            Some(Expr::Var { .. }) | None => p.finish_column(),
            Some(_) => format!("({})", p.finish_top()),
        }
    }
}
