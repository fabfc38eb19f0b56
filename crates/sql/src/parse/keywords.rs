//! Keyword categories: where a word may stand as a name.

/// PostgreSQL's four kinds of keywords.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Category {
    /// Not a keyword, or an unreserved one: a name anywhere.
    None,
    /// A column's or table's name, not a function's or type's.
    ColumnName,
    /// A function's or type's name, not a column's or table's.
    TypeOrFunction,
    /// No name without quotes.
    Reserved,
}

const COLUMN_NAME: &[&str] = &[
    "between",
    "bigint",
    "bit",
    "boolean",
    "char",
    "character",
    "coalesce",
    "dec",
    "decimal",
    "exists",
    "extract",
    "float",
    "greatest",
    "grouping",
    "inout",
    "int",
    "integer",
    "interval",
    "json",
    "json_array",
    "json_arrayagg",
    "json_exists",
    "json_object",
    "json_objectagg",
    "json_query",
    "json_scalar",
    "json_serialize",
    "json_table",
    "json_value",
    "least",
    "merge_action",
    "national",
    "nchar",
    "none",
    "normalize",
    "nullif",
    "numeric",
    "out",
    "overlay",
    "position",
    "precision",
    "real",
    "row",
    "setof",
    "smallint",
    "substring",
    "time",
    "timestamp",
    "treat",
    "trim",
    "values",
    "varchar",
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlexists",
    "xmlforest",
    "xmlnamespaces",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
    "xmltable",
];

const TYPE_OR_FUNCTION: &[&str] = &[
    "authorization",
    "binary",
    "collation",
    "concurrently",
    "cross",
    "current_schema",
    "freeze",
    "full",
    "ilike",
    "inner",
    "is",
    "isnull",
    "join",
    "left",
    "like",
    "natural",
    "notnull",
    "outer",
    "overlaps",
    "right",
    "similar",
    "tablesample",
    "verbose",
];

const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "column",
    "constraint",
    "create",
    "current_catalog",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "from",
    "grant",
    "group",
    "having",
    "in",
    "initially",
    "intersect",
    "into",
    "lateral",
    "leading",
    "limit",
    "localtime",
    "localtimestamp",
    "not",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "placing",
    "primary",
    "references",
    "returning",
    "select",
    "session_user",
    "some",
    "symmetric",
    "system_user",
    "table",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "when",
    "where",
    "window",
    "with",
];

/// Words that cannot be a column's label without AS.
const NOT_BARE_LABEL: &[&str] = &[
    "array",
    "as",
    "char",
    "character",
    "create",
    "day",
    "except",
    "fetch",
    "filter",
    "for",
    "from",
    "grant",
    "group",
    "having",
    "hour",
    "intersect",
    "into",
    "isnull",
    "limit",
    "minute",
    "month",
    "notnull",
    "offset",
    "on",
    "order",
    "over",
    "overlaps",
    "precision",
    "returning",
    "second",
    "to",
    "union",
    "varying",
    "where",
    "window",
    "with",
    "within",
    "without",
    "year",
];

/// The category of a word in lower case.
pub fn category(word: &str) -> Category {
    let first = word.as_bytes().first().copied().unwrap_or(0);
    if !first.is_ascii_lowercase() || word.len() > 20 {
        return Category::None;
    }
    if RESERVED.binary_search(&word).is_ok() {
        Category::Reserved
    } else if COLUMN_NAME.binary_search(&word).is_ok() {
        Category::ColumnName
    } else if TYPE_OR_FUNCTION.binary_search(&word).is_ok() {
        Category::TypeOrFunction
    } else {
        Category::None
    }
}

/// May `word` be a label without AS?
pub fn bare_label(word: &str) -> bool {
    NOT_BARE_LABEL.binary_search(&word).is_err()
}

/// Must `word` be quoted when printed as an identifier?
pub fn needs_quotes(name: &str) -> bool {
    let plain = name
        .bytes()
        .enumerate()
        .all(|(i, b)| b.is_ascii_lowercase() || b == b'_' || (i > 0 && (b.is_ascii_digit())))
        && !name.is_empty();
    !plain || category(name) != Category::None
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn lists_are_sorted() {
        for list in [COLUMN_NAME, TYPE_OR_FUNCTION, RESERVED, NOT_BARE_LABEL] {
            assert!(list.is_sorted(), "{list:?}");
        }
    }
}
