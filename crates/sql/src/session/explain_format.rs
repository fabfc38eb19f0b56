//! What EXPLAIN says as a tree, written as JSON, YAML or XML, laid out as PostgreSQL does.

use serde_json::{Map, Value};
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
    pub(crate) fn write(self, queries: &[Map<String, Value>]) -> String {
        let mut out = String::new();
        match self {
            TreeFormat::Json => return serde_json::to_string_pretty(queries).unwrap_or_default(),
            TreeFormat::Yaml => {
                queries.iter().for_each(|query| yaml_item(&mut out, query, 0));
                out.truncate(out.trim_end_matches('\n').len());
            }
            TreeFormat::Xml => {
                out.push_str("<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n");
                queries.iter().for_each(|query| xml_object(&mut out, "Query", query, 1));
                out.push_str("</explain>");
            }
        }
        out
    }
}

/// Strings are quoted as in JSON; numbers and truth values are not.
fn yaml_scalar(value: &Value) -> String {
    value.to_string()
}

/// An object as a list's item: `- ` stands before its first member.
fn yaml_item(out: &mut String, object: &Map<String, Value>, depth: usize) {
    for (i, (name, value)) in object.iter().enumerate() {
        let lead = if i == 0 { "- " } else { "  " };
        let _ = write!(out, "{:1$}{lead}", "", depth * 2);
        yaml_member(out, name, value, depth + 1);
    }
}

/// A member, behind what stands before it.
fn yaml_member(out: &mut String, name: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(object) => {
            let _ = writeln!(out, "{name}: ");
            for (name, value) in object {
                let _ = write!(out, "{:1$}", "", (depth + 1) * 2);
                yaml_member(out, name, value, depth + 1);
            }
        }
        Value::Array(items) => {
            let _ = writeln!(out, "{name}: ");
            for item in items {
                match item {
                    Value::Object(object) => yaml_item(out, object, depth + 1),
                    plain => {
                        let _ =
                            writeln!(out, "{:1$}- {2}", "", (depth + 1) * 2, yaml_scalar(plain));
                    }
                }
            }
        }
        plain => {
            let _ = writeln!(out, "{name}: {}", yaml_scalar(plain));
        }
    }
}

/// A name as a tag: what may not stand there is a hyphen.
fn tag(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().map(|c| if fits(c) { c } else { '-' }).collect()
}

fn xml_object(out: &mut String, name: &str, object: &Map<String, Value>, depth: usize) {
    let (tag, indent) = (tag(name), depth * 2);
    let _ = writeln!(out, "{:indent$}<{tag}>", "");
    object.iter().for_each(|(name, value)| xml_member(out, name, value, depth + 1));
    let _ = writeln!(out, "{:indent$}</{tag}>", "");
}

fn xml_member(out: &mut String, name: &str, value: &Value, depth: usize) {
    let (tag, indent) = (tag(name), depth * 2);
    match value {
        Value::Object(object) => xml_object(out, name, object, depth),
        Value::Array(items) => {
            let _ = writeln!(out, "{:indent$}<{tag}>", "");
            for item in items {
                match item {
                    // Plans holds each a Plan.
                    Value::Object(object) => {
                        let one = match name.strip_suffix("xes") {
                            Some(stem) => format!("{stem}x"),
                            None => name.strip_suffix('s').unwrap_or(name).to_owned(),
                        };
                        xml_object(out, &one, object, depth + 1);
                    }
                    plain => xml_member(out, "Item", plain, depth + 1),
                }
            }
            let _ = writeln!(out, "{:indent$}</{tag}>", "");
        }
        plain => {
            let text = plain.as_str().map_or_else(|| plain.to_string(), str::to_owned);
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let text = text.replace('"', "&quot;").replace('\r', "&#x0d;");
            let _ = writeln!(out, "{:indent$}<{tag}>{text}</{tag}>", "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan() -> Vec<Map<String, Value>> {
        let scan = json!({ "Node Type": "Seq Scan", "Filter": "(a < 'x&y'::text)" });
        let top = json!({ "Node Type": "Sort", "Sort Key": ["a", "b \"c\""], "Plan Rows": 7,
            "Parallel Aware": false, "Plans": [scan] });
        let one = json!({ "Plan": top, "Planning Time": 0.5 });
        one.as_object().cloned().into_iter().collect()
    }

    #[test]
    fn yaml_is_laid_out_as_postgresql_does() {
        let expected = [
            "- Plan: ",
            "    Node Type: \"Sort\"",
            "    Parallel Aware: false",
            "    Plan Rows: 7",
            "    Plans: ",
            "      - Filter: \"(a < 'x&y'::text)\"",
            "        Node Type: \"Seq Scan\"",
            "    Sort Key: ",
            "      - \"a\"",
            "      - \"b \\\"c\\\"\"",
            "  Planning Time: 0.5",
        ];
        assert_eq!(TreeFormat::Yaml.write(&plan()), expected.join("\n"));
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
            "      <Plans>",
            "        <Plan>",
            "          <Filter>(a &lt; 'x&amp;y'::text)</Filter>",
            "          <Node-Type>Seq Scan</Node-Type>",
            "        </Plan>",
            "      </Plans>",
            "      <Sort-Key>",
            "        <Item>a</Item>",
            "        <Item>b &quot;c&quot;</Item>",
            "      </Sort-Key>",
            "    </Plan>",
            "    <Planning-Time>0.5</Planning-Time>",
            "  </Query>",
            "</explain>",
        ];
        assert_eq!(TreeFormat::Xml.write(&plan()), expected.join("\n"));
    }
}
