//! What reading the types beside PostgreSQL found, where a session is needed.

use crate::support::Database;

/// Without a length, bit is bit(1) in casts and columns; a constant is as long as it is written.
#[test]
fn bit_without_a_length() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&["CREATE TABLE b (x bit, y bit varying)"]);
    s.check(&[
        ("SELECT '101'::bit, bit '101', B'101', char 'abc', 'abc'::char", "1|101|101|abc|a"),
        ("SELECT CAST(NULL AS bit) IS NULL, '101'::bit varying", "t|101"),
        (
            "INSERT INTO b VALUES (B'10', B'10')",
            "22026 bit string length 2 does not match type bit(1)",
        ),
        (
            "SELECT format_type(atttypid, atttypmod) FROM pg_attribute \
             WHERE attrelid = 'b'::regclass AND attname = 'x'",
            "bit(1)",
        ),
        ("SELECT pg_typeof(ARRAY['a'::bpchar]), 2147483647::regtype", "character[]|2147483647"),
    ]);
}

/// Arrays that are NULL or empty stack up to an empty one; six dimensions are the most.
#[test]
fn arrays_of_arrays() {
    let db = Database::new();
    let mut s = db.session();
    let many = "54000 number of array dimensions (7) exceeds the maximum allowed (6)";
    s.check(&[
        ("SELECT ARRAY[NULL::int[], NULL], ARRAY['{}'::int[], NULL]", "{}|{}"),
        ("SELECT ARRAY['{1}'::int[], '{2}']", "{{1},{2}}"),
        (
            "SELECT ARRAY['{1}'::int[], NULL]",
            "2202E multidimensional arrays must have array expressions with matching dimensions",
        ),
        ("SELECT ARRAY['{{{{{{1}}}}}}'::int[]]", many),
        ("SELECT array_agg('{{{{{{1}}}}}}'::int[])", many),
    ]);
}

/// Values that are put into values over and over end at an error, not at the end of the stack.
#[test]
fn nesting_has_an_end() {
    let db = Database::new();
    let mut s = db.session();
    // Nested as deep as text may be, nearly.
    let array = "(repeat('[', 995) || repeat(']', 995))";
    let object = "(repeat('{\"a\":', 995) || '1' || repeat('}', 995))";
    let grown = |first: &str, next: &str, shown: &str, times: u32| {
        format!(
            "WITH RECURSIVE t (v, n) AS \
             (SELECT {first}, 0 UNION ALL SELECT {next}, n + 1 FROM t WHERE n < {times}) \
             SELECT max(length(({shown})::text)) FROM t"
        )
    };
    let deep = "54001 stack depth limit exceeded";
    let (arrays, objects) = (format!("{array}::jsonb"), format!("{object}::jsonb"));
    for sql in [
        grown(&arrays, "jsonb_build_array(v)", "v", 10),
        grown(&objects, "jsonb_build_object('a', v)", "v", 10),
        grown(&objects, "jsonb_set('{\"a\": 1}', '{a}', v)", "v", 10),
        grown(&arrays, "'[]' || jsonb_build_object('k', v)", "v", 10),
        grown(&format!("{array}::json"), "json_build_array(v)", "json_strip_nulls(v)", 10),
    ] {
        s.check(&[(&sql, deep)]);
    }
    s.check(&[(&grown(&arrays, "jsonb_build_array(v)", "v", 5), "2000")]);
}

/// A name that looks like a number is a name still when text is cast.
#[test]
fn text_is_a_relations_name() {
    let db = Database::new();
    db.session().check(&[
        ("SELECT '1259'::text::regclass", "42P01 relation \"1259\" does not exist"),
        ("SELECT 'pg_class'::text::regclass, '1259'::regclass", "pg_class|pg_class"),
    ]);
}
