//! COPY TO STDOUT, message by message.

use crate::support::Database;

/// Drivers take each message for a row: PostgreSQL sends the header together with the first one.
#[test]
fn each_message_is_a_row() {
    let db = Database::new();
    let header = "PGCOPY\\n\\xff\\r\\n\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00";
    db.session().check(&[
        ("COPY (VALUES (1, 'a'), (2, NULL)) TO STDOUT", "1\\ta\\n\n2\\t\\\\N\\n"),
        ("COPY (SELECT 1 AS n) TO STDOUT (FORMAT csv, HEADER)", "n\\n\n1\\n"),
        (
            "COPY (VALUES ('a'), (NULL)) TO STDOUT (FORMAT binary)",
            &format!(
                "{header}{}\n{}\n{}",
                r"\x00\x01\x00\x00\x00\x01a", r"\x00\x01\xff\xff\xff\xff", r"\xff\xff"
            ),
        ),
        ("COPY (SELECT 1 WHERE false) TO STDOUT (FORMAT binary)", &format!(r"{header}\xff\xff")),
        // What is binary is in no encoding.
        (
            "COPY (SELECT 200) TO STDOUT (FORMAT binary, ENCODING 'latin1')",
            &format!("{header}{}\n{}", r"\x00\x01\x00\x00\x00\x04\x00\x00\x00\xc8", r"\xff\xff"),
        ),
    ]);
}
