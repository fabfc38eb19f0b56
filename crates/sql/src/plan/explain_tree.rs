//! What EXPLAIN says as a tree: a node's members under PostgreSQL's names, in its order.
//!
//! # Differs from PostgreSQL
//! What is not counted is left out: a hash's buckets, rows that a join's filter removed, blocks node by node, local and temporary ones.

use super::PlanNode;

/// A value of EXPLAIN's JSON, YAML and XML.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Tree {
    Text(String),
    /// As it is written.
    Number(String),
    Bool(bool),
    /// Of texts.
    List(Vec<String>),
    /// Of lists of texts.
    Lists(Vec<Vec<String>>),
    Group(Members),
    Groups(Vec<Members>),
}

/// Names and values, in order.
pub(crate) type Members = Vec<(String, Tree)>;

impl Tree {
    /// With so many digits behind the point.
    pub(crate) fn number(value: f64, digits: usize) -> Tree {
        Tree::Number(format!("{value:.digits$}"))
    }
}

impl From<&str> for Tree {
    fn from(text: &str) -> Tree {
        Tree::Text(text.to_owned())
    }
}

impl From<String> for Tree {
    fn from(text: String) -> Tree {
        Tree::Text(text)
    }
}

impl From<u64> for Tree {
    fn from(n: u64) -> Tree {
        Tree::Number(n.to_string())
    }
}

/// A name and a number, or a word.
pub(super) type Figure = (&'static str, Tree);

/// What a node is told to do.
#[derive(Clone)]
pub(super) enum Detail {
    One(String),
    List(Vec<String>),
}

impl From<String> for Detail {
    fn from(text: String) -> Detail {
        Detail::One(text)
    }
}

impl From<Vec<String>> for Detail {
    fn from(list: Vec<String>) -> Detail {
        Detail::List(list)
    }
}

/// One node as shown.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) title: String,
    pub(super) name: &'static str,
    pub(super) numbers: String,
    pub(super) details: Vec<(String, Detail)>,
    /// What it told of its work: names and numbers.
    pub(super) told: Vec<Figure>,
    /// (label before the child, child)
    pub(super) children: Vec<(Option<String>, Shown)>,
    /// What it is and works on; costs, times and rows.
    pub(super) members: Vec<Figure>,
    pub(super) figures: Vec<Figure>,
    /// A setting forbids what it does, but there was no other way.
    pub(super) disabled: bool,
}

impl Shown {
    /// Its output, which is that of what hands its rows on.
    pub(super) fn output(&self) -> Option<(String, Detail)> {
        let (name, detail) = self.details.first().filter(|(name, _)| name == "Output")?;
        Some((name.clone(), detail.clone()))
    }
}

/// PostgreSQL's `Disabled`: it costs as much as what a setting forbids, and none of what it reads does.
pub(super) fn is_disabled(n: &PlanNode) -> bool {
    let costly = |n: &PlanNode| n.total_cost >= super::path::DISABLED;
    costly(n) && !n.children().into_iter().any(costly)
}

/// A plan's members. `top`: what the whole statement used, which the topmost node says.
pub(super) fn members(s: &Shown, place: Option<(&str, Option<&str>)>, top: Members) -> Members {
    let mut out: Members = Vec::new();
    let mut add = |name: &str, value: Tree| out.push((name.to_owned(), value));
    add("Node Type", s.name.into());
    let (first, rest): (Vec<_>, Vec<_>) = s
        .members
        .iter()
        .partition(|(name, _)| matches!(*name, "Strategy" | "Partial Mode" | "Operation"));
    first.into_iter().for_each(|(name, value)| add(name, value.clone()));
    if let Some((relationship, name)) = place {
        add("Parent Relationship", relationship.into());
        name.into_iter().for_each(|name| add("Subplan Name", name.into()));
    }
    add("Parallel Aware", Tree::Bool(false));
    add("Async Capable", Tree::Bool(false));
    rest.into_iter().for_each(|(name, value)| add(name, value.clone()));
    s.figures.iter().for_each(|(name, value)| add(name, value.clone()));
    add("Disabled", Tree::Bool(s.disabled));
    let mut told = summed(&s.told);
    let mut filters = filter(&s.details);
    let mut sets = grouping_sets(&s.details);
    let mut unique = s.members.iter().any(|(name, _)| *name == "Join Type");
    for (name, detail) in &s.details {
        // The output comes before what a join knows of its inner side; what was asked of a sample is there in its parts.
        if unique && name != "Output" {
            add("Inner Unique", Tree::Bool(false));
            unique = false;
        }
        match name.as_str() {
            "Sampling" => {
                let of_sample = |name: &str| {
                    matches!(name, "Sampling Method" | "Sampling Parameters" | "Repeatable Seed")
                };
                told.extract_if(.., |(name, _)| of_sample(name))
                    .for_each(|(name, value)| add(name, value));
            }
            "Filter" => filters.take().into_iter().for_each(|whole| add(name, whole)),
            "Grouping Set" if sets.is_empty() => {}
            "Grouping Set" => add("Grouping Sets", Tree::Groups(std::mem::take(&mut sets))),
            _ => add(name, detail.tree()),
        }
    }
    if unique {
        add("Inner Unique", Tree::Bool(false));
    }
    told.drain(..).for_each(|(name, value)| add(name, value));
    out.extend(top);
    if !s.children.is_empty() {
        let mut at = 0;
        let plans = s.children.iter().map(|(label, child)| {
            let relationship = match label {
                Some(label) if label.starts_with("SubPlan") => "SubPlan",
                Some(_) => "InitPlan",
                None => {
                    at += 1;
                    match s.name {
                        "Append" | "Merge Append" => "Member",
                        "Subquery Scan" => "Subquery",
                        _ if at == 1 => "Outer",
                        _ => "Inner",
                    }
                }
            };
            members(child, Some((relationship, label.as_deref())), Vec::new())
        });
        let plans = plans.collect();
        out.push(("Plans".to_owned(), Tree::Groups(plans)));
    }
    out
}

/// Conditions that the text has in lines of their own are one.
fn filter(details: &[(String, Detail)]) -> Option<Tree> {
    let all = details.iter().filter(|(name, _)| name == "Filter");
    let all: Vec<String> = all.map(|(_, detail)| detail.line()).collect();
    Some(match all.as_slice() {
        [] => return None,
        [one] => one.clone().into(),
        several => format!("({})", several.join(" AND ")).into(),
    })
}

/// The sets that rows are grouped by; those of no columns need no hashing.
fn grouping_sets(details: &[(String, Detail)]) -> Vec<Members> {
    let sets = details.iter().filter_map(|(name, detail)| match detail {
        Detail::List(set) if name == "Grouping Set" => Some(set),
        _ => None,
    });
    let name = |set: &[String]| if set.is_empty() { "Group Keys" } else { "Hash Keys" };
    sets.map(|set| vec![(name(set).to_owned(), Tree::Lists(vec![set.clone()]))]).collect()
}

/// What was told more than once, since the tree has one node where several work, is told once.
fn summed(told: &[(&'static str, Tree)]) -> Vec<(&'static str, Tree)> {
    let mut out: Vec<(&'static str, Tree)> = Vec::new();
    for (name, value) in told {
        match (out.iter_mut().find(|(n, _)| n == name), value) {
            (Some((_, Tree::Number(sum))), Tree::Number(more)) => {
                let number = |text: &str| text.parse::<u64>().unwrap_or(0);
                *sum = (number(sum) + number(more)).to_string();
            }
            _ => out.push((*name, value.clone())),
        }
    }
    out
}

impl Detail {
    /// As text has it, in one line.
    pub(super) fn line(&self) -> String {
        match self {
            Detail::One(text) => text.clone(),
            Detail::List(list) if list.is_empty() => "()".to_owned(),
            Detail::List(list) => list.join(", "),
        }
    }

    fn tree(&self) -> Tree {
        match self {
            Detail::One(text) => Tree::Text(text.clone()),
            Detail::List(list) => Tree::List(list.clone()),
        }
    }
}
