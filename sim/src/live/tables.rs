//! The tables of the soak, and what must be true of them in every snapshot.

/// Rows of `account`.
pub const ACCOUNTS: u64 = 600;
/// Rows of `tag`, whose keys move.
pub const TAGS: u64 = 200;
/// Rows of `upsert`.
pub const UPSERTS: u64 = 40;
/// Rows of `toast`.
pub const TOASTS: u64 = 40;
/// Rows of `aged`, which snapshots of many ages read.
pub const AGED: u64 = 150;
/// Rows of `scratch`, always.
pub const SCRATCH: u64 = 300;

/// Tables that VACUUM, CLUSTER, REINDEX come to.
pub const TABLES: [&str; 14] = [
    "aged",
    "swing",
    "account",
    "queue",
    "total",
    "upsert",
    "toast",
    "parent",
    "child",
    "tag",
    "scratch",
    "shape",
    "ledger",
    "ledger_part",
];

/// Statements that make them; run once.
pub fn made() -> Vec<String> {
    let mut all: Vec<String> = [
        "CREATE TABLE ledger (client int, n int, parts int, PRIMARY KEY (client, n))",
        "CREATE TABLE ledger_part (client int, n int, i int, t text)",
        "CREATE INDEX ledger_part_n ON ledger_part (client, n)",
        "CREATE TABLE account (id int PRIMARY KEY, owner int NOT NULL, balance bigint NOT NULL, note text) WITH (fillfactor = 60)",
        "CREATE INDEX account_owner ON account (owner)",
        "CREATE TABLE queue (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int NOT NULL, body text)",
        "CREATE TABLE total (client int PRIMARY KEY, made bigint NOT NULL, done bigint NOT NULL, upserts bigint NOT NULL)",
        "CREATE TABLE upsert (k int PRIMARY KEY, n bigint NOT NULL, t text)",
        "CREATE TABLE toast (id int PRIMARY KEY, sum text NOT NULL, body text, more text)",
        "ALTER TABLE toast ALTER COLUMN more SET STORAGE EXTERNAL",
        "CREATE TABLE parent (id int PRIMARY KEY, t text)",
        "CREATE TABLE child (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p int NOT NULL REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE, t text)",
        "CREATE INDEX child_p ON child (p)",
        "CREATE TABLE tag (id int PRIMARY KEY, k int NOT NULL, t text, CONSTRAINT tag_k UNIQUE (k))",
        "CREATE TABLE scratch (id int PRIMARY KEY, v int)",
        "CREATE TABLE aged (id int PRIMARY KEY, g int NOT NULL, v bigint NOT NULL, pad text) WITH (fillfactor = 60)",
        "CREATE INDEX aged_g ON aged (g)",
        "CREATE TABLE swing (id int PRIMARY KEY, v int, t text)",
        "CREATE TABLE shape (id int PRIMARY KEY, a int, b text)",
    ]
    .map(String::from)
    .into();
    all.push(format!(
        "INSERT INTO account SELECT g, g % 17, 100, 'n' FROM generate_series(1, {ACCOUNTS}) g"
    ));
    all.push("INSERT INTO total SELECT g, 0, 0, 0 FROM generate_series(0, 63) g".into());
    all.push(format!(
        "INSERT INTO toast SELECT g, md5('x' || 'y'), 'x', 'y' FROM generate_series(1, {TOASTS}) g"
    ));
    all.push("INSERT INTO parent SELECT g, 'p' FROM generate_series(1, 50) g".into());
    all.push(format!("INSERT INTO tag SELECT g, g, 't' FROM generate_series(1, {TAGS}) g"));
    all.push(format!(
        "INSERT INTO aged SELECT g, g % 9, 100, 'p' FROM generate_series(1, {AGED}) g"
    ));
    all.push(format!(
        "INSERT INTO swing SELECT g, g, repeat('t', g * 20) FROM generate_series(1, {SCRATCH}) g"
    ));
    all.push(format!("INSERT INTO scratch SELECT g, g FROM generate_series(1, {SCRATCH}) g"));
    all.push("INSERT INTO shape SELECT g, g * 7, 'b' || g FROM generate_series(1, 400) g".into());
    all
}

/// Queries, and their answers in any snapshot.
pub fn always() -> Vec<(String, String)> {
    let pair = |sql: &str, wanted: String| (sql.to_owned(), wanted);
    vec![
        pair(
            "SELECT count(*), sum(balance) FROM account",
            format!("{ACCOUNTS}|{}", ACCOUNTS * 100),
        ),
        pair(
            "SELECT (SELECT coalesce(sum(v), 0) FROM queue) + (SELECT sum(done) FROM total) - (SELECT sum(made) FROM total)",
            "0".into(),
        ),
        pair(
            "SELECT (SELECT coalesce(sum(n), 0) FROM upsert) - (SELECT sum(upserts) FROM total)",
            "0".into(),
        ),
        pair("SELECT count(*) FROM toast WHERE md5(body || more) IS DISTINCT FROM sum", "0".into()),
        pair("SELECT count(*) FROM toast", format!("{TOASTS}")),
        pair(
            "SELECT count(*) FROM child WHERE NOT EXISTS (SELECT FROM parent WHERE parent.id = child.p)",
            "0".into(),
        ),
        pair(
            "SELECT count(*), count(DISTINCT k), sum(k) FROM tag",
            format!("{TAGS}|{TAGS}|{}", TAGS * (TAGS + 1) / 2),
        ),
        pair(
            "SELECT count(*), sum(v) FROM scratch",
            format!("{SCRATCH}|{}", SCRATCH * (SCRATCH + 1) / 2),
        ),
        pair(
            "SELECT count(*) FROM ledger l FULL JOIN (SELECT client, n, count(*) AS c FROM ledger_part GROUP BY client, n) p USING (client, n) WHERE parts IS DISTINCT FROM c",
            "0".into(),
        ),
        pair("SELECT count(*) FROM ledger_part WHERE i < 0", "0".into()),
        pair(
            "SELECT (SELECT coalesce(sum(parts), 0) FROM ledger) - (SELECT count(*) FROM ledger_part)",
            "0".into(),
        ),
        pair("SELECT count(*) FROM shape", "400".into()),
        pair("SELECT count(*), sum(v) FROM aged", format!("{AGED}|{}", AGED * 100)),
        pair(
            "SELECT count(*), sum(v), sum(length(t)) FROM swing",
            format!("{SCRATCH}|{0}|{1}", SCRATCH * (SCRATCH + 1) / 2, SCRATCH * (SCRATCH + 1) * 10),
        ),
    ]
}

/// Queries that a sequential scan and an index must answer alike.
pub const BOTH_WAYS: [&str; 8] = [
    "SELECT count(*), sum(id), sum(g), sum(g * id) FROM aged WHERE g >= 0",
    "SELECT count(*), sum(id), sum(owner) FROM account WHERE owner >= 0",
    "SELECT count(*), sum(id) FROM account WHERE id > 0",
    "SELECT count(*), sum(k), sum(id) FROM tag WHERE k > -1000000",
    "SELECT count(*), sum(p), sum(id) FROM child WHERE p > -1000000",
    "SELECT count(*), sum(id), sum(v) FROM queue WHERE id > 0",
    "SELECT count(*), sum(n), sum(i) FROM ledger_part WHERE client >= 0",
    "SELECT count(*), sum(n), sum(parts) FROM ledger WHERE client >= 0",
];
