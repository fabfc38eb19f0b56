//! EXPLAIN: a plan as text, in PostgreSQL's form, and as a tree ([`explain_tree`](super::explain_tree)).

mod bitmap;
mod conditions;
mod hash;
mod names;
mod sub_plans;

use super::explain_tree::{Detail, Figure, Members, Shown, Tree, is_disabled, members};
use super::print::{Given, Printer};
use super::window_line::{window_line, with_window_name};
use super::{AggregateStrategy, NodeKind, Plan, PlanNode};
use crate::exec::NodeStats;
use crate::query::{Command, JoinKind, SetOp};
use engine::catalog::model::Table;
use expr::Expr;
use std::fmt::Write as _;
use types::Env;

/// What to show.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after the options")]
pub struct ExplainOptions {
    pub analyze: bool,
    pub costs: bool,
    pub timing: bool,
    pub verbose: bool,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        ExplainOptions { analyze: false, costs: true, timing: true, verbose: false }
    }
}

struct Explain<'a> {
    plan: &'a Plan,
    options: ExplainOptions,
    stats: &'a [NodeStats],
    env: &'a dyn Env,
    next_id: usize,
    /// First number of each sub-plan and CTE.
    sub_ids: Vec<usize>,
    cte_ids: Vec<usize>,
    shown_sub_plans: Vec<bool>,
    params: Vec<Given>,
    /// As the plan's, each relation under a name of its own.
    names: Vec<(String, Vec<String>)>,
}

/// The lines of EXPLAIN's text form.
pub fn explain_text(
    plan: &Plan,
    options: ExplainOptions,
    stats: &[NodeStats],
    env: &dyn Env,
) -> Vec<String> {
    let mut lines = Vec::new();
    let shown = explain(plan, options, stats, env);
    text(&shown, 0, true, &mut lines);
    lines
}

/// The plan as a tree; its topmost node says `top` of the whole.
pub(crate) fn explain_tree(
    plan: &Plan,
    options: ExplainOptions,
    stats: &[NodeStats],
    env: &dyn Env,
    top: Members,
) -> Tree {
    Tree::Group(members(&explain(plan, options, stats, env), None, top))
}

/// A word, a number.
fn shown_plainly(value: &Tree) -> &str {
    match value {
        Tree::Text(text) | Tree::Number(text) => text,
        _ => "",
    }
}

/// What a MERGE did with its rows, in one line.
fn merged_tuples(s: &Shown) -> String {
    let mut line = "Tuples:".to_owned();
    for (name, value) in &s.told {
        if let Some(what) = name.strip_prefix("Tuples ")
            && shown_plainly(value) != "0"
        {
            line.push_str(&format!(" {}={}", what.to_lowercase(), shown_plainly(value)));
        }
    }
    line
}

fn text(s: &Shown, indent: usize, top: bool, out: &mut Vec<String>) {
    let pad = " ".repeat(indent);
    if top {
        out.push(format!("{pad}{}{}", s.title, s.numbers));
    } else {
        out.push(format!("{pad}->  {}{}", s.title, s.numbers));
    }
    let inner = if top { indent + 2 } else { indent + 6 };
    for (k, v) in &s.details {
        let k = match (k.as_str(), v) {
            ("Grouping Set", Detail::List(list)) if list.is_empty() => "Group Key",
            ("Grouping Set", _) => "Hash Key",
            (k, _) => k,
        };
        out.push(format!("{}{k}: {}", " ".repeat(inner), v.line()));
    }
    let figure = |name: &str| s.told.iter().find(|t| t.0 == name).map(|t| shown_plainly(&t.1));
    for (name, value) in &s.told {
        let line = match (*name, figure("Sort Space Used"), figure("Sort Space Type")) {
            ("Sort Method", Some(kb), Some(place)) => {
                format!("Sort Method: {}  {place}: {kb}kB", shown_plainly(value))
            }
            ("Sort Space Used" | "Sort Space Type", ..) => continue,
            ("Hash Buckets" | "HashAgg Batches", ..) => hash::line(s),
            (
                "Hash Batches"
                | "Original Hash Buckets"
                | "Original Hash Batches"
                | "Peak Memory Usage"
                | "Disk Usage",
                ..,
            ) => continue,
            // Its line of the text says it all, and no partitions are planned.
            (
                "Sampling Method"
                | "Sampling Parameters"
                | "Repeatable Seed"
                | "Planned Partitions",
                ..,
            ) => continue,
            ("Rows Removed by Filter", ..) if shown_plainly(value) == "0" => continue,
            ("Tuples Inserted", ..) => merged_tuples(s),
            ("Tuples Updated" | "Tuples Deleted" | "Tuples Skipped", ..) => continue,
            _ => format!("{name}: {}", shown_plainly(value)),
        };
        out.push(format!("{}{line}", " ".repeat(inner)));
    }
    for (label, c) in &s.children {
        match label {
            Some(l) => {
                out.push(format!("{}{l}", " ".repeat(inner)));
                text(c, inner + 2, false, out);
            }
            None => text(c, inner, false, out),
        }
    }
}

/// Does it make anything of rows that come from a sort?
fn computes_over_sort(input: &PlanNode, exprs: &[Expr]) -> bool {
    matches!(input.kind, NodeKind::Sort { .. })
        && exprs.iter().any(|e| !matches!(e, Expr::Slot { .. }))
}

fn explain(plan: &Plan, options: ExplainOptions, stats: &[NodeStats], env: &dyn Env) -> Shown {
    fn size(n: &PlanNode) -> usize {
        1 + n.children().into_iter().map(size).sum::<usize>()
    }
    let mut at = size(&plan.root);
    let mut sub_ids = Vec::new();
    for s in &plan.sub_plans {
        sub_ids.push(at);
        at += size(&s.node);
    }
    let mut cte_ids = Vec::new();
    for c in &plan.ctes {
        cte_ids.push(at);
        at += size(&c.node);
    }
    let mut e = Explain {
        plan,
        options,
        stats,
        env,
        next_id: 0,
        sub_ids,
        cte_ids,
        shown_sub_plans: vec![false; plan.sub_plans.len()],
        params: conditions::given(plan),
        names: names::unique(plan),
    };
    e.node(&plan.root, Vec::new())
}

impl<'a> Explain<'a> {
    fn numbers(&self, n: &PlanNode, id: usize) -> String {
        let mut s = String::new();
        if self.options.costs {
            let _ = write!(
                s,
                "  (cost={:.2}..{:.2} rows={:.0} width={})",
                n.startup_cost, n.total_cost, n.rows, n.width
            );
        }
        if self.options.analyze {
            let none = NodeStats::default();
            let st = self.stats.get(id).unwrap_or(&none);
            if st.loops == 0 {
                s.push_str(" (never executed)");
            } else {
                let loops = st.loops as f64;
                let ms = |ns: u64| ns as f64 / 1e6 / loops;
                let rows = st.rows as f64 / loops;
                if self.options.timing {
                    let _ = write!(
                        s,
                        " (actual time={:.3}..{:.3} rows={rows:.2} loops={})",
                        ms(st.startup_ns),
                        ms(st.total_ns),
                        st.loops
                    );
                } else {
                    let _ = write!(s, " (actual rows={rows:.2} loops={})", st.loops);
                }
            }
        }
        s
    }

    /// The same as members of a tree.
    fn figures(&self, n: &PlanNode, startup_cost: f64, id: usize) -> Vec<Figure> {
        let mut out: Vec<Figure> = Vec::new();
        if self.options.costs {
            out.push(("Startup Cost", Tree::number(startup_cost, 2)));
            out.push(("Total Cost", Tree::number(n.total_cost, 2)));
            out.push(("Plan Rows", Tree::number(n.rows, 0)));
            out.push(("Plan Width", Tree::Number(n.width.to_string())));
        }
        if self.options.analyze
            && let Some(st) = self.stats.get(id)
        {
            let loops = st.loops.max(1) as f64;
            if self.options.timing {
                let startup = st.startup_ns as f64 / 1e6 / loops;
                out.push(("Actual Startup Time", Tree::number(startup, 3)));
                let total = st.total_ns as f64 / 1e6 / loops;
                out.push(("Actual Total Time", Tree::number(total, 3)));
            }
            out.push(("Actual Rows", Tree::number(st.rows as f64 / loops, 2)));
            out.push(("Actual Loops", st.loops.into()));
        }
        out
    }

    /// What a scan or a change is of.
    fn target(&self, table: &Table, alias: &str) -> Vec<Figure> {
        let mut out: Vec<Figure> = vec![("Relation Name", table.name.as_str().into())];
        if self.options.verbose {
            out.push(("Schema", table.namespace_name.as_str().into()));
        }
        out.push(("Alias", if alias.is_empty() { &table.name } else { alias }.into()));
        out
    }

    /// What a node told of its work, as PostgreSQL names it: rows refused are a loop's, the rest is all loops'.
    fn told(&self, id: usize, filtered: bool, index_only: bool) -> Vec<Figure> {
        let mut out: Vec<Figure> = Vec::new();
        let Some(st) = self.stats.get(id).filter(|s| self.options.analyze && s.loops > 0) else {
            return out;
        };
        let told = st.told;
        if filtered {
            let each = (told.removed as f64 / st.loops as f64).round() as u64;
            out.push(("Rows Removed by Filter", each.into()));
        }
        if index_only {
            out.push(("Heap Fetches", told.heap_fetches.into()));
        }
        if told.searches > 0 {
            out.push(("Index Searches", told.searches.into()));
        }
        if let Some(m) = told.merged.filter(|m| m.inserted + m.updated + m.deleted + m.skipped > 0)
        {
            out.push(("Tuples Inserted", m.inserted.into()));
            out.push(("Tuples Updated", m.updated.into()));
            out.push(("Tuples Deleted", m.deleted.into()));
            out.push(("Tuples Skipped", m.skipped.into()));
        }
        if let Some(sort) = told.sort {
            out.push(("Sort Method", sort.method.into()));
            out.push(("Sort Space Used", sort.bytes.div_ceil(1024).into()));
            out.push(("Sort Space Type", if sort.on_disk { "Disk" } else { "Memory" }.into()));
        }
        out
    }

    /// A node and what hangs on it; conditions of filters above it are given down.
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    fn node(&mut self, n: &'a PlanNode, mut above: Vec<String>) -> Shown {
        let id = self.next_id;
        self.next_id += 1;
        let mut details: Vec<(String, Detail)> = Vec::new();
        let mut json: Vec<Figure> = Vec::new();
        let mut also: Vec<Figure> = Vec::new();
        let mut add = |k: &str, v: Detail| details.push((k.to_owned(), v));
        let cols = |n: &'a PlanNode| -> &'a [Expr] { &n.columns };
        let (title, name): (String, &'static str) = match &n.kind {
            // As in PostgreSQL, whose sorts compute nothing.
            NodeKind::Project { input, exprs } if computes_over_sort(input, exprs) => {
                ("Result".to_owned(), "Result")
            }
            NodeKind::Project { input, .. } => {
                let links = self.links(n);
                let mut s = self.node(input, above);
                s.children.extend(links);
                if self.options.costs || self.options.analyze {
                    s.numbers = self.numbers(n, id);
                    s.figures = self.figures(n, n.startup_cost, id);
                }
                return s;
            }
            NodeKind::CteScope { input, ctes } => {
                let mut s = self.node(input, above);
                let mut list = Vec::new();
                for c in ctes {
                    let keep = std::mem::replace(&mut self.next_id, self.cte_ids[*c]);
                    let cte = &self.plan.ctes[*c];
                    let shown = self.node(&cte.node, Vec::new());
                    self.next_id = keep;
                    list.push((Some(format!("CTE {}", cte.name)), shown));
                }
                list.append(&mut s.children);
                s.children = list;
                return s;
            }
            NodeKind::Filter { input, filter } => {
                let links = self.links(n);
                above.push(self.condition(filter, input));
                let mut s = self.node(input, above);
                s.children.extend(links);
                s.numbers = self.numbers(n, id);
                s.figures = self.figures(n, n.startup_cost, id);
                s.told.extend(self.told(id, true, false));
                return s;
            }
            NodeKind::Result { filter, .. } => {
                if let Some(f) = filter {
                    add("One-Time Filter", self.print(f, &[]).into());
                }
                ("Result".to_owned(), "Result")
            }
            NodeKind::SeqScan(s) => {
                if let Some(f) = &s.filter {
                    add("Filter", self.condition(f, n).into());
                }
                json.extend(self.target(&s.table, self.scan_alias(s)));
                (format!("Seq Scan on {}", self.scan_name(s)), "Seq Scan")
            }
            NodeKind::SampleScan { scan, told, .. } => {
                let percent = self.print(&told.percent, &[]);
                let seed = told.seed.as_ref().map(|e| self.print(e, &[]));
                let mut asked = format!("{} ({percent})", told.method.name());
                if let Some(seed) = &seed {
                    asked.push_str(&format!(" REPEATABLE ({seed})"));
                }
                add("Sampling", asked.into());
                if let Some(f) = &scan.filter {
                    add("Filter", self.condition(f, n).into());
                }
                json.extend(self.target(&scan.table, self.scan_alias(scan)));
                also.push(("Sampling Method", told.method.name().into()));
                also.push(("Sampling Parameters", Tree::List(vec![percent])));
                also.extend(seed.map(|seed| ("Repeatable Seed", seed.into())));
                (format!("Sample Scan on {}", self.scan_name(scan)), "Sample Scan")
            }
            NodeKind::IndexScan { scan, index, keys, backward, index_only } => {
                if let Some(c) = self.index_condition(keys, n) {
                    add("Index Cond", c.into());
                }
                if let Some(f) = &scan.filter {
                    add("Filter", self.condition(f, n).into());
                }
                let direction = if *backward { "Backward" } else { "Forward" };
                json.push(("Scan Direction", direction.into()));
                json.push(("Index Name", index.name.clone().into()));
                json.extend(self.target(&scan.table, self.scan_alias(scan)));
                let kind = if *index_only { "Index Only Scan" } else { "Index Scan" };
                let way = if *backward { " Backward" } else { "" };
                let title = format!(
                    "{kind}{way} using {} on {}",
                    Printer::quoted(&index.name),
                    self.scan_name(scan)
                );
                (title, kind)
            }
            NodeKind::BitmapScan { scan, arms } => {
                details.extend(self.bitmap_conditions(scan, arms, n));
                json.extend(self.target(&scan.table, self.scan_alias(scan)));
                (format!("Bitmap Heap Scan on {}", self.scan_name(scan)), "Bitmap Heap Scan")
            }
            NodeKind::TidScan { scan, printed, .. } => {
                add("TID Cond", self.condition(printed, n).into());
                if let Some(f) = &scan.filter {
                    add("Filter", self.condition(f, n).into());
                }
                json.extend(self.target(&scan.table, self.scan_alias(scan)));
                (format!("Tid Scan on {}", self.scan_name(scan)), "Tid Scan")
            }
            NodeKind::TidRangeScan { scan, printed, .. } => {
                if let Some(c) = printed {
                    add("TID Cond", self.condition(c, n).into());
                }
                if let Some(f) = &scan.filter {
                    add("Filter", self.condition(f, n).into());
                }
                json.extend(self.target(&scan.table, self.scan_alias(scan)));
                (format!("Tid Range Scan on {}", self.scan_name(scan)), "Tid Range Scan")
            }
            NodeKind::FunctionScan { calls, alias, .. } => {
                let alias = self.leaf_alias(n, alias);
                let name = calls.first().map_or_else(String::new, |c| match &c.call {
                    Expr::Call { function, .. } => types::facts::proc(base::Oid(*function))
                        .map_or_else(String::new, |f| f.name.to_owned()),
                    _ => String::new(),
                });
                json.push(("Function Name", name.clone().into()));
                json.push(("Alias", if alias.is_empty() { &*name } else { alias }.into()));
                let title = if name == alias || alias.is_empty() {
                    format!("Function Scan on {}", Printer::quoted(&name))
                } else {
                    format!(
                        "Function Scan on {} {}",
                        Printer::quoted(&name),
                        Printer::quoted(alias)
                    )
                };
                (title, "Function Scan")
            }
            NodeKind::ValuesScan { alias, .. } => {
                let alias = self.leaf_alias(n, alias);
                json.push(("Alias", alias.into()));
                (format!("Values Scan on {}", Printer::quoted(alias)), "Values Scan")
            }
            NodeKind::CteScan { alias, name, .. } => {
                let alias = self.leaf_alias(n, alias);
                json.push(("CTE Name", name.as_str().into()));
                json.push(("Alias", if alias.is_empty() { name.as_str() } else { alias }.into()));
                let title = if alias == name || alias.is_empty() {
                    format!("CTE Scan on {}", Printer::quoted(name))
                } else {
                    format!("CTE Scan on {} {}", Printer::quoted(name), Printer::quoted(alias))
                };
                (title, "CTE Scan")
            }
            NodeKind::WorkTableScan { alias, name, .. } => {
                let alias = self.leaf_alias(n, alias);
                json.push(("CTE Name", name.as_str().into()));
                json.push(("Alias", if alias.is_empty() { name.as_str() } else { alias }.into()));
                let title = if alias == name || alias.is_empty() {
                    format!("WorkTable Scan on {}", Printer::quoted(name))
                } else {
                    format!(
                        "WorkTable Scan on {} {}",
                        Printer::quoted(name),
                        Printer::quoted(alias)
                    )
                };
                (title, "WorkTable Scan")
            }
            NodeKind::SubqueryScan { input, alias } => {
                if above.is_empty() {
                    // Shown only where it does something.
                    return self.node(input, above);
                }
                json.push(("Alias", alias.as_str().into()));
                (format!("Subquery Scan on {}", Printer::quoted(alias)), "Subquery Scan")
            }
            NodeKind::ProjectSet { .. } => ("ProjectSet".to_owned(), "ProjectSet"),
            NodeKind::NestLoop { kind, left, right, on, filter, .. }
            | NodeKind::HashJoin { kind, left, right, on, filter, .. }
            | NodeKind::MergeJoin { kind, left, right, on, filter, .. } => {
                let both: Vec<Expr> = left.columns.iter().chain(&right.columns).cloned().collect();
                let shown = |e: &Expr| {
                    let mut p = self.printer(&both);
                    p.expr(e);
                    p.finish_top()
                };
                let (method, name) = match &n.kind {
                    NodeKind::HashJoin { keys, .. } => {
                        add(
                            "Hash Cond",
                            self.join_keys(keys, &left.columns, &right.columns).into(),
                        );
                        ("Hash", "Hash Join")
                    }
                    NodeKind::MergeJoin { keys, .. } => {
                        add(
                            "Merge Cond",
                            self.join_keys(keys, &left.columns, &right.columns).into(),
                        );
                        ("Merge", "Merge Join")
                    }
                    _ => ("Nested Loop", "Nested Loop"),
                };
                if let Some(e) = on {
                    add("Join Filter", shown(e).into());
                }
                if let Some(e) = filter {
                    add("Filter", shown(e).into());
                }
                let word = match kind {
                    JoinKind::Inner => "",
                    JoinKind::Left => " Left",
                    JoinKind::Right => " Right",
                    JoinKind::Full => " Full",
                    JoinKind::Semi => " Semi",
                    JoinKind::Anti => " Anti",
                    JoinKind::RightAnti => " Right Anti",
                    JoinKind::RightSemi => " Right Semi",
                };
                json.push(("Join Type", if word.is_empty() { "Inner" } else { &word[1..] }.into()));
                let title = match (method, word) {
                    ("Nested Loop", "") => "Nested Loop".to_owned(),
                    (m, w) => format!("{m}{w} Join"),
                };
                (title, name)
            }
            NodeKind::Sort { input, keys, presorted } => {
                add("Sort Key", self.sort_keys(keys, cols(input)));
                if *presorted > 0 {
                    add("Presorted Key", self.elements(&keys[..*presorted], cols(input)).into());
                    ("Incremental Sort".to_owned(), "Incremental Sort")
                } else {
                    ("Sort".to_owned(), "Sort")
                }
            }
            NodeKind::Aggregate { input, strategy, groups, sets, filter, .. } => {
                if !groups.is_empty() && sets.len() <= 1 {
                    let list = groups.iter().map(|g| {
                        let mut p = self.printer(cols(input));
                        p.expr(g);
                        p.finish_column()
                    });
                    add("Group Key", Detail::List(list.collect()));
                }
                if sets.len() > 1 {
                    for s in sets {
                        let list = s.iter().map(|i| {
                            let mut p = self.printer(cols(input));
                            p.expr(&groups[*i]);
                            p.finish_column()
                        });
                        add("Grouping Set", Detail::List(list.collect()));
                    }
                }
                if let Some(f) = filter {
                    add("Filter", self.print(f, cols(n)).into());
                }
                let (title, strategy) = match strategy {
                    _ if sets.len() > 1 => ("MixedAggregate", "Mixed"),
                    AggregateStrategy::Plain => ("Aggregate", "Plain"),
                    AggregateStrategy::Sorted => ("GroupAggregate", "Sorted"),
                    AggregateStrategy::Hashed => ("HashAggregate", "Hashed"),
                };
                json.push(("Strategy", strategy.into()));
                json.push(("Partial Mode", "Simple".into()));
                (title.to_owned(), "Aggregate")
            }
            NodeKind::Window { input, partition, order, frame, calls, name, run } => {
                let columns = cols(input);
                let print = |e: &Expr| {
                    let mut p = self.printer(columns);
                    p.expr(e);
                    p.finish_column()
                };
                let by: Vec<String> = partition.iter().map(|e| self.element(e, columns)).collect();
                let order = self.elements(order, columns);
                add("Window", window_line(name, &by, &order, frame, calls, &print).into());
                if let Some(run) = run {
                    let text = self.print(run, cols(n));
                    add("Run Condition", with_window_name(&text, name, calls).into());
                }
                ("WindowAgg".to_owned(), "WindowAgg")
            }
            NodeKind::Unique { .. } => ("Unique".to_owned(), "Unique"),
            NodeKind::SetOp { op, all, order, .. } => {
                let word = match op {
                    SetOp::Intersect => "Intersect",
                    _ => "Except",
                };
                let all = if *all { " All" } else { "" };
                let (strategy, hash) =
                    if order.is_empty() { ("Hashed", "Hash") } else { ("Sorted", "") };
                json.push(("Strategy", strategy.into()));
                json.push(("Command", format!("{word}{all}").into()));
                (format!("{hash}SetOp {word}{all}"), "SetOp")
            }
            NodeKind::Append { .. } => ("Append".to_owned(), "Append"),
            NodeKind::MergeAppend { inputs, keys } => {
                add("Sort Key", self.sort_keys(keys, inputs.first().map_or(&[], |i| cols(i))));
                ("Merge Append".to_owned(), "Merge Append")
            }
            NodeKind::RecursiveUnion { .. } => ("Recursive Union".to_owned(), "Recursive Union"),
            NodeKind::Limit { .. } => ("Limit".to_owned(), "Limit"),
            NodeKind::LockRows { .. } => ("LockRows".to_owned(), "LockRows"),
            NodeKind::Materialize { .. } => ("Materialize".to_owned(), "Materialize"),
            NodeKind::Modify(m) => {
                let word = match m.command {
                    Command::Insert => "Insert",
                    Command::Update => "Update",
                    Command::Merge => "Merge",
                    _ => "Delete",
                };
                let table = self.table_name(&m.table);
                json.push(("Operation", word.into()));
                json.extend(self.target(&m.table, &m.alias));
                if let Some(c) = &m.on_conflict {
                    let what = if c.update.is_some() { "UPDATE" } else { "NOTHING" };
                    add("Conflict Resolution", what.to_owned().into());
                    let arbiters = m.arbiters();
                    if !arbiters.is_empty() {
                        add("Conflict Arbiter Indexes", arbiters.into());
                    }
                }
                let alias = if m.alias == m.table.name || m.alias.is_empty() {
                    String::new()
                } else {
                    format!(" {}", Printer::quoted(&m.alias))
                };
                (format!("{word} on {table}{alias}"), "ModifyTable")
            }
        };
        let filtered = details.iter().any(|d| d.0 == "Filter");
        let index_only = matches!(n.kind, NodeKind::IndexScan { index_only: true, .. });
        let told = self.told(id, filtered, index_only);
        for f in above {
            details.push(("Filter".to_owned(), f.into()));
        }
        if self.options.verbose && !n.columns.is_empty() {
            let list: Vec<String> = n
                .columns
                .iter()
                .map(|c| {
                    let mut p = Printer::new(self.plan, &[], self.env).named(&self.names);
                    p.expr(c);
                    p.finish_column()
                })
                .collect();
            details.insert(0, ("Output".to_owned(), list.into()));
        }
        let figures = self.figures(n, n.startup_cost, id);
        let disabled = is_disabled(n);
        if matches!(n.kind, NodeKind::Aggregate { strategy: AggregateStrategy::Hashed, .. })
            && self.options.costs
        {
            also.push(("Planned Partitions", 0.into()));
        }
        let mut told: Vec<Figure> = also.into_iter().chain(told).collect();
        if matches!(n.kind, NodeKind::Aggregate { .. }) {
            told.extend(self.told_of_groups(id));
        }
        let numbers = self.numbers(n, id);
        let mut children: Vec<(Option<String>, Shown)> = Vec::new();
        if let NodeKind::HashJoin { left, right, .. } = &n.kind {
            let l = self.node(left, Vec::new());
            let inner_id = self.next_id;
            let r = self.node(right, Vec::new());
            let hash = Shown {
                title: "Hash".to_owned(),
                name: "Hash",
                numbers: {
                    let mut s = self.numbers(right, inner_id);
                    if self.options.costs
                        && let Some(end) = s.find(" rows=")
                    {
                        let rest = s.split_off(end);
                        s = format!(
                            "  (cost={:.2}..{:.2}{rest}",
                            right.total_cost, right.total_cost
                        );
                    }
                    s
                },
                figures: self.figures(right, right.total_cost, inner_id),
                details: r.output().into_iter().collect(),
                told: self.told_of_join(id),
                children: vec![(None, r)],
                ..Shown::default()
            };
            children.push((None, l));
            children.push((None, hash));
        } else {
            for c in n.children() {
                let s = self.node(c, Vec::new());
                children.push((None, s));
            }
        }
        if let NodeKind::BitmapScan { arms, .. } = &n.kind {
            children.extend(self.bitmap_indexes(arms, n).map(|shown| (None, shown)));
        }
        if matches!(&n.kind, NodeKind::Modify(m) if m.input.is_none()) {
            let numbers = if self.options.costs {
                "  (cost=0.00..0.01 rows=1 width=0)".to_owned()
            } else {
                String::new()
            };
            let mut figures = Vec::new();
            if self.options.costs {
                figures.push(("Startup Cost", Tree::number(0.0, 2)));
                figures.push(("Total Cost", Tree::number(0.01, 2)));
                figures.push(("Plan Rows", 1.into()));
                figures.push(("Plan Width", 0.into()));
            }
            children.push((
                None,
                Shown {
                    title: "Result".to_owned(),
                    name: "Result",
                    numbers,
                    figures,
                    ..Shown::default()
                },
            ));
        }
        // What is run once stands before what the node reads, what is run for its rows behind.
        let (mut links, mut for_rows): (Vec<_>, Vec<_>) = self
            .links(n)
            .into_iter()
            .partition(|(label, _)| label.as_ref().is_some_and(|l| l.starts_with("InitPlan")));
        links.append(&mut children);
        links.append(&mut for_rows);
        Shown {
            title,
            name,
            numbers,
            details,
            told,
            children: links,
            members: json,
            figures,
            disabled,
        }
    }

    fn join_keys(&self, keys: &[super::JoinKey], left: &[Expr], right: &[Expr]) -> String {
        let list: Vec<String> = keys
            .iter()
            .map(|k| {
                let mut l = self.printer(left);
                l.expr(&k.left);
                let mut r = self.printer(right);
                r.expr(&k.right);
                format!("({} = {})", l.finish_column(), r.finish_column())
            })
            .collect();
        if list.len() == 1 { list.concat() } else { format!("({})", list.join(" AND ")) }
    }
}
