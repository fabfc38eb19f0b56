//! What EXPLAIN says as a tree, written as JSON, YAML or XML, laid out as PostgreSQL does.

use crate::plan::explain_tree::{Members, Tree};
use std::fmt::Write as _;

/// EXPLAIN's FORMAT, where that is not text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TreeFormat {
    Json,
    Yaml,
    Xml,
}

impl TreeFormat {
    /// The text of what is said of each query.
    pub(crate) fn write(self, queries: &[Members]) -> String {
        let mut out = String::new();
        match self {
            TreeFormat::Json => {
                out.push('[');
                json_items(&mut out, queries, 1);
                out.push(']');
            }
            TreeFormat::Yaml => {
                queries.iter().for_each(|query| yaml_item(&mut out, query, 0));
                out.truncate(out.trim_end_matches('\n').len());
            }
            TreeFormat::Xml => {
                out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
                queries.iter().for_each(|query| xml_group(&mut out, "Query", query, 1));
                out.push_str("</explain>");
            }
        }
        out
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value of one line, as JSON and YAML have it: strings are quoted, numbers and truth values are not.
fn scalar(value: &Tree) -> String {
    match value {
        Tree::Text(text) => quoted(text),
        Tree::Number(text) => text.clone(),
        Tree::Bool(b) => b.to_string(),
        Tree::List(items) => {
            format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
        }
        Tree::Lists(_) | Tree::Group(_) | Tree::Groups(_) => String::new(),
    }
}

/// Behind an opening bracket: the objects, and the line of the closing one begun.
fn json_items(out: &mut String, groups: &[Members], depth: usize) {
    for (i, group) in groups.iter().enumerate() {
        let _ = write!(out, "{}\n{:2$}", if i == 0 { "" } else { "," }, "", depth * 2);
        json_group(out, group, depth);
    }
    let _ = write!(out, "\n{:1$}", "", (depth - 1) * 2);
}

fn json_group(out: &mut String, group: &Members, depth: usize) {
    out.push('{');
    for (i, (name, value)) in group.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(out, "{comma}\n{:2$}{}: ", "", quoted(name), (depth + 1) * 2);
        match value {
            Tree::Group(group) => json_group(out, group, depth + 1),
            Tree::Groups(groups) => {
                out.push('[');
                json_items(out, groups, depth + 2);
                out.push(']');
            }
            Tree::Lists(lists) => {
                out.push('[');
                for (i, list) in lists.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    let _ = write!(out, "{comma}\n{:1$}", "", (depth + 2) * 2);
                    out.push_str(&scalar(&Tree::List(list.clone())));
                }
                let _ = write!(out, "\n{:1$}]", "", (depth + 1) * 2);
            }
            plain => out.push_str(&scalar(plain)),
        }
    }
    let _ = write!(out, "\n{:1$}}}", "", depth * 2);
}

/// A group as a list's item: `- ` stands before its first member.
fn yaml_item(out: &mut String, group: &Members, depth: usize) {
    for (i, (name, value)) in group.iter().enumerate() {
        let lead = if i == 0 { "- " } else { "  " };
        let _ = write!(out, "{:1$}{lead}", "", depth * 2);
        yaml_member(out, name, value, depth + 1);
    }
}

/// A member, behind what stands before it.
fn yaml_member(out: &mut String, name: &str, value: &Tree, depth: usize) {
    let items = |out: &mut String, items: &mut dyn Iterator<Item = String>| {
        let _ = writeln!(out, "{name}: ");
        for item in items {
            let _ = writeln!(out, "{:1$}- {item}", "", (depth + 1) * 2);
        }
    };
    match value {
        Tree::Group(group) => {
            let _ = writeln!(out, "{name}: ");
            for (name, value) in group {
                let _ = write!(out, "{:1$}", "", (depth + 1) * 2);
                yaml_member(out, name, value, depth + 1);
            }
        }
        Tree::Groups(groups) => {
            let _ = writeln!(out, "{name}: ");
            groups.iter().for_each(|group| yaml_item(out, group, depth + 1));
        }
        Tree::List(list) => items(out, &mut list.iter().map(|item| quoted(item))),
        Tree::Lists(lists) => {
            items(out, &mut lists.iter().map(|list| scalar(&Tree::List(list.clone()))));
        }
        plain => {
            let _ = writeln!(out, "{name}: {}", scalar(plain));
        }
    }
}

/// A name as a tag: what may not stand there is a hyphen.
fn tag(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

fn xml_group(out: &mut String, name: &str, group: &Members, depth: usize) {
    let (tag, indent) = (tag(name), depth * 2);
    let _ = writeln!(out, "{:indent$}<{tag}>", "");
    group.iter().for_each(|(name, value)| xml_member(out, name, value, depth + 1));
    let _ = writeln!(out, "{:indent$}</{tag}>", "");
}

/// What one of several is called: Plans holds each a Plan.
fn singular(name: &str) -> String {
    match name.strip_suffix("xes") {
        Some(stem) => format!("{stem}x"),
        None => name.strip_suffix('s').unwrap_or(name).to_owned(),
    }
}

fn xml_member(out: &mut String, name: &str, value: &Tree, depth: usize) {
    let (tag, indent) = (tag(name), depth * 2);
    let mut line = |tag: &str, text: &str, indent: usize| {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let text = text.replace('"', "&quot;").replace('\r', "&#x0d;");
        let _ = writeln!(out, "{:indent$}<{tag}>{text}</{tag}>", "");
    };
    match value {
        Tree::Text(text) | Tree::Number(text) => return line(&tag, text, indent),
        Tree::Bool(b) => return line(&tag, &b.to_string(), indent),
        Tree::Group(group) => return xml_group(out, name, group, depth),
        _ => {}
    }
    let _ = writeln!(out, "{:indent$}<{tag}>", "");
    match value {
        Tree::List(items) => {
            items.iter().for_each(|item| xml_member(out, "Item", &item.as_str().into(), depth + 1));
        }
        Tree::Lists(lists) => {
            let one = singular(name);
            for list in lists {
                xml_member(out, &one, &Tree::List(list.clone()), depth + 1);
            }
        }
        Tree::Groups(groups) => {
            let one = singular(name);
            groups.iter().for_each(|group| xml_group(out, &one, group, depth + 1));
        }
        _ => {}
    }
    let _ = writeln!(out, "{:indent$}</{tag}>", "");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<const N: usize>(members: [(&str, Tree); N]) -> Members {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn plan() -> Vec<Members> {
        let scan =
            group([("Node Type", "Seq Scan".into()), ("Filter", "(a < 'x&y'::text)".into())]);
        let sets = Tree::Lists(vec![vec!["a".to_owned(), "b".to_owned()], Vec::new()]);
        let top = group([
            ("Node Type", "Sort".into()),
            ("Parallel Aware", Tree::Bool(false)),
            ("Plan Rows", 7.into()),
            ("Sort Key", Tree::List(vec!["a".to_owned(), "b \"c\"".to_owned()])),
            ("Hash Keys", sets),
            ("Plans", Tree::Groups(vec![scan])),
        ]);
        let none = Tree::Groups(Vec::new());
        let time = Tree::number(0.5, 3);
        vec![group([("Plan", Tree::Group(top)), ("Planning Time", time), ("Triggers", none)])]
    }

    #[test]
    fn json_is_laid_out_as_postgresql_does() {
        let expected = [
            "[",
            "  {",
            "    \"Plan\": {",
            "      \"Node Type\": \"Sort\",",
            "      \"Parallel Aware\": false,",
            "      \"Plan Rows\": 7,",
            "      \"Sort Key\": [\"a\", \"b \\\"c\\\"\"],",
            "      \"Hash Keys\": [",
            "        [\"a\", \"b\"],",
            "        []",
            "      ],",
            "      \"Plans\": [",
            "        {",
            "          \"Node Type\": \"Seq Scan\",",
            "          \"Filter\": \"(a < 'x&y'::text)\"",
            "        }",
            "      ]",
            "    },",
            "    \"Planning Time\": 0.500,",
            "    \"Triggers\": [",
            "    ]",
            "  }",
            "]",
        ];
        assert_eq!(TreeFormat::Json.write(&plan()), expected.join("\n"));
    }

    #[test]
    fn yaml_is_laid_out_as_postgresql_does() {
        let expected = [
            "- Plan: ",
            "    Node Type: \"Sort\"",
            "    Parallel Aware: false",
            "    Plan Rows: 7",
            "    Sort Key: ",
            "      - \"a\"",
            "      - \"b \\\"c\\\"\"",
            "    Hash Keys: ",
            "      - [\"a\", \"b\"]",
            "      - []",
            "    Plans: ",
            "      - Node Type: \"Seq Scan\"",
            "        Filter: \"(a < 'x&y'::text)\"",
            "  Planning Time: 0.500",
            "  Triggers: ",
        ];
        assert_eq!(TreeFormat::Yaml.write(&plan()), expected.join("\n").trim_end_matches('\n'));
    }

    #[test]
    fn xml_is_laid_out_as_postgresql_does() {
        let expected = [
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">",
            "  <Query>",
            "    <Plan>",
            "      <Node-Type>Sort</Node-Type>",
            "      <Parallel-Aware>false</Parallel-Aware>",
            "      <Plan-Rows>7</Plan-Rows>",
            "      <Sort-Key>",
            "        <Item>a</Item>",
            "        <Item>b &quot;c&quot;</Item>",
            "      </Sort-Key>",
            "      <Hash-Keys>",
            "        <Hash-Key>",
            "          <Item>a</Item>",
            "          <Item>b</Item>",
            "        </Hash-Key>",
            "        <Hash-Key>",
            "        </Hash-Key>",
            "      </Hash-Keys>",
            "      <Plans>",
            "        <Plan>",
            "          <Node-Type>Seq Scan</Node-Type>",
            "          <Filter>(a &lt; 'x&amp;y'::text)</Filter>",
            "        </Plan>",
            "      </Plans>",
            "    </Plan>",
            "    <Planning-Time>0.500</Planning-Time>",
            "    <Triggers>",
            "    </Triggers>",
            "  </Query>",
            "</explain>",
        ];
        assert_eq!(TreeFormat::Xml.write(&plan()), expected.join("\n"));
    }
}
