//! What letters are, by database and by COLLATE.

use crate::support::Database;

/// A new data folder's databases know Unicode's letters: whoever looks for a name without regard to case finds it.
#[test]
fn letters_are_unicodes() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (
            "SELECT datlocprovider, datcollate, datctype, datlocale FROM pg_database WHERE datname = 'postgres'",
            "c|C.UTF-8|C.UTF-8|~",
        ),
        ("SELECT lower('ÉLAN Ω İ'), upper('élan ß ω'), initcap('éCOLE d''été')", "élan ω i|ÉLAN ß Ω|École D'Été"),
        ("SELECT casefold('ΣΑΣ ς'), casefold('ſ')", "σασ σ|s"),
        ("SELECT 'ÉCOLE' ILIKE 'é%', 'École' NOT ILIKE '%LÉ', 'ÉCOLE' LIKE 'é%'", "t|t|f"),
        ("SELECT 'ÉCOLE' ~* '^éc', 'ÉCOLE' ~ '^éc', 'é' ~ '^\\w$', 'É' ~ '[[:upper:]]', 'é' ~ '[[:upper:]]'", "t|f|t|t|f"),
        ("SELECT 'é' ~ '^[[:alpha:]]$', '٣' ~ '\\d', 'é' ~ '\\W', '—' ~ '[[:punct:]]', E'\\u2003' ~ '\\s'", "t|f|f|t|t"),
        ("SELECT regexp_replace('À côté', '\\w+', 'x', 'g'), regexp_count('ÀàA', 'à', 1, 'i')", "x x|2"),
        // Order is that of code points as ever.
        ("SELECT string_agg(x, '' ORDER BY x) FROM unnest('{é,Z,a,É}'::text[]) x", "ZaÉé"),
        ("SELECT 'É'::name ~* 'é', 'É'::name ILIKE 'é'", "f|f"),
    ]);
}

#[test]
fn a_collate_of_the_call_counts_more() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        (r#"SELECT lower('ÉA' COLLATE "C"), upper('éa' COLLATE "POSIX"), initcap('éa' COLLATE ucs_basic)"#, "Éa|éA|éA"),
        (r#"SELECT 'ÉA' ILIKE 'éa' COLLATE "C", 'ÉA' COLLATE "C" ~* 'éa', 'é' ~ '\w' COLLATE "C""#, "f|f|f"),
        (r#"SELECT 'ÉA' ILIKE 'éa' COLLATE pg_c_utf8, lower('ÉA' COLLATE "default")"#, "t|éa"),
    ]);
}

/// What an index or a thread beside the session makes of letters is what the session makes of them.
#[test]
fn letters_are_the_same_everywhere() {
    let db = Database::new();
    let mut s = db.session();
    s.run_each(&[
        "CREATE TABLE names (id int, name text, small text GENERATED ALWAYS AS (lower(name)) STORED)",
        "CREATE UNIQUE INDEX ON names (lower(name))",
        "INSERT INTO names SELECT i, 'É' || i FROM generate_series(1, 3000) i",
        "CREATE INDEX ON names (upper(small))",
        "ANALYZE names",
        "SET enable_seqscan = off",
    ]);
    s.check(&[
        ("SELECT id, small FROM names WHERE lower(name) = 'é77'", "77|é77"),
        ("SELECT id FROM names WHERE upper(small) = 'É77'", "77"),
        ("SELECT count(*) FROM names WHERE lower(name) >= 'é' AND upper(small) = name", "3000"),
        (
            "INSERT INTO names VALUES (0, 'é77')",
            "23505 duplicate key value violates unique constraint \"names_lower_idx\"\nKey (lower(name))=(é77) already exists.",
        ),
        ("DELETE FROM names WHERE id % 2 = 0", ""),
        ("VACUUM names", ""),
        ("REINDEX TABLE names", ""),
        ("SELECT count(*), max(lower(name)) FROM names WHERE name ILIKE 'é%'", "1500|é999"),
    ]);
    assert_eq!(db.faults(), Vec::<String>::new());
}

#[test]
fn a_database_has_its_own() {
    let db = Database::new();
    let mut s = db.session();
    s.check(&[
        ("CREATE DATABASE plain LOCALE 'C' TEMPLATE template0", ""),
        ("CREATE DATABASE same LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'", ""),
        ("CREATE DATABASE ours LOCALE_PROVIDER builtin LOCALE 'C.UTF-8' TEMPLATE template0", ""),
        (
            "SELECT datname, datlocprovider, datcollate, datctype, datlocale FROM pg_database WHERE datname IN ('plain', 'ours') ORDER BY 1",
            "ours|b|C.UTF-8|C.UTF-8|C.UTF-8\nplain|c|C|C|~",
        ),
        (
            "CREATE DATABASE d LOCALE 'C'",
            "22023 new collation (C) is incompatible with the collation of the template database (C.UTF-8)",
        ),
        (
            "CREATE DATABASE d LC_CTYPE 'C'",
            "22023 new LC_CTYPE (C) is incompatible with the LC_CTYPE of the template database (C.UTF-8)",
        ),
        (
            "CREATE DATABASE d LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C'",
            "22023 new locale provider (builtin) does not match locale provider of the template database (libc)",
        ),
        ("CREATE DATABASE d LOCALE 'en_US.UTF-8' TEMPLATE template0", "0A000 locale \"en_US.UTF-8\" is not supported"),
        ("CREATE DATABASE d LOCALE_PROVIDER icu ICU_LOCALE 'und' TEMPLATE template0", "0A000 locale provider \"icu\" is not supported"),
        ("CREATE DATABASE d ICU_LOCALE 'und'", "42P17 ICU locale cannot be specified unless locale provider is ICU"),
        (
            "CREATE DATABASE d BUILTIN_LOCALE 'C'",
            "42P17 BUILTIN_LOCALE cannot be specified unless locale provider is builtin",
        ),
        (
            "CREATE DATABASE d LOCALE_PROVIDER builtin TEMPLATE template0",
            "22023 LOCALE or BUILTIN_LOCALE must be specified",
        ),
        (
            "CREATE DATABASE d LOCALE_PROVIDER builtin BUILTIN_LOCALE 'x' TEMPLATE template0",
            "42809 invalid locale name \"x\" for builtin provider",
        ),
        ("CREATE DATABASE d LOCALE_PROVIDER glibc", "42P17 unrecognized locale provider: glibc"),
    ]);
    let mut plain = db.session_of("plain");
    plain.check(&[(
        r#"SELECT lower('ÉA'), 'É' ILIKE 'é', 'é' ~ '\w', lower('É' COLLATE pg_c_utf8)"#,
        "Éa|f|f|é",
    )]);
    db.session_of("ours").check(&[("SELECT lower('ÉA'), 'É' ILIKE 'é'", "éa|t")]);
}
