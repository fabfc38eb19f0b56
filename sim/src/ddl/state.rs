//! What catalogs and tables say, as text that does not depend on OIDs.

use base::Result;
use sql::session::Session;
use types::Datum;

/// Whatever has a name, with what is known of it. Indexes that are not valid are what an interrupted statement may leave.
const CATALOGS: [&str; 8] = [
    "SELECT 'relation ' || n.nspname || '.' || c.relname || ' ' || c.relkind::text || c.relpersistence::text || ' ' || c.relispopulated::text \
        || ' toast ' || (c.reltoastrelid <> 0)::text || ' ' || coalesce(c.reloptions::text, '') \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.oid >= 16384 AND n.nspname IN ('public', 'x') \
        AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indexrelid = c.oid AND NOT i.indisvalid)",
    "SELECT 'column ' || c.relname || '.' || a.attname || ' ' || a.attnum::text || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' \
        || a.attnotnull::text || a.attisdropped::text || a.atthasdef::text || a.attgenerated::text || a.attidentity::text \
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.oid >= 16384 AND n.nspname IN ('public', 'x') AND a.attnum > 0 AND c.relkind IN ('r', 'm', 'v')",
    "SELECT 'index ' || pg_get_indexdef(i.indexrelid) || ' ' || i.indisunique::text || i.indisprimary::text || i.indisclustered::text \
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.oid >= 16384 AND n.nspname IN ('public', 'x') AND i.indisvalid",
    "SELECT 'constraint ' || conname || ' ' || contype::text || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE oid >= 16384",
    "SELECT 'type ' || typname || ' ' || typtype::text FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
     WHERE t.oid >= 16384 AND typtype IN ('e', 'c') AND n.nspname IN ('public', 'x')",
    "SELECT 'schema ' || nspname FROM pg_namespace WHERE oid >= 16384 AND nspname NOT LIKE 'pg\\_%'",
    "SELECT 'view ' || viewname || ' ' || definition FROM pg_views WHERE schemaname IN ('public', 'x')",
    "SELECT 'sequence ' || sequencename || ' ' || coalesce(last_value::text, '-') || ' ' || increment_by::text FROM pg_sequences",
];

/// Rows of catalogs that belong to nothing.
const LOST: [&str; 9] = [
    "SELECT 'pg_attribute of ' || attrelid::text FROM pg_attribute a WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = a.attrelid)",
    "SELECT 'pg_index of ' || indrelid::text FROM pg_index i WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = i.indrelid) \
        OR NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = i.indexrelid)",
    "SELECT 'pg_constraint ' || conname FROM pg_constraint k WHERE conrelid <> 0 AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = k.conrelid)",
    "SELECT 'pg_attrdef of ' || adrelid::text FROM pg_attrdef d WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = d.adrelid)",
    "SELECT 'pg_type ' || typname FROM pg_type t WHERE typrelid <> 0 AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = t.typrelid)",
    "SELECT 'pg_sequence ' || seqrelid::text FROM pg_sequence s WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = s.seqrelid)",
    "SELECT 'pg_statistic of ' || starelid::text FROM pg_statistic s WHERE NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = s.starelid)",
    "SELECT 'pg_depend of relation ' || objid::text FROM pg_depend d \
     WHERE classid = 'pg_class'::regclass AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.oid = d.objid)",
    "SELECT 'TOAST table ' || relname FROM pg_class t WHERE relkind = 't' AND NOT EXISTS (SELECT 1 FROM pg_class c WHERE c.reltoastrelid = t.oid)",
];

/// What there is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct State {
    pub(super) catalogs: Vec<String>,
    /// Tables and what they hold.
    pub(super) rows: Vec<(String, String)>,
    /// The same of what a crash empties.
    pub(super) unlogged: Vec<(String, String)>,
}

fn texts(session: &mut Session, sql: &str) -> Result<Vec<String>> {
    let rows = session.in_transaction(|s| s.internal_query(sql, &[]))?;
    Ok(rows
        .iter()
        .map(|row| match row.first() {
            Some(Datum::Text(text)) => text.to_string(),
            other => format!("{other:?}"),
        })
        .collect())
}

impl State {
    pub(super) fn read(session: &mut Session) -> Result<State> {
        let mut state = State::default();
        for sql in CATALOGS {
            let mut found = texts(session, sql)?;
            found.sort_unstable();
            state.catalogs.append(&mut found);
        }
        let tables = "SELECT c.relpersistence::text || n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                      WHERE c.oid >= 16384 AND c.relkind IN ('r', 'm') AND c.relispopulated AND n.nspname IN ('public', 'x') ORDER BY 1";
        for table in texts(session, tables)? {
            let (persistence, name) = table.split_at(1);
            let digest = format!(
                "SELECT count(*)::text || ' ' || coalesce(md5(string_agg(r::text, '|' ORDER BY r::text)), '') FROM {name} r"
            );
            let found = texts(session, &digest)?.concat();
            let list = if persistence == "u" { &mut state.unlogged } else { &mut state.rows };
            list.push((name.to_owned(), found));
        }
        Ok(state)
    }

    /// After a crash.
    pub(super) fn without_unlogged(mut self) -> State {
        self.unlogged.clear();
        self
    }

    /// What the two differ in, for a message.
    pub(super) fn differences(&self, other: &State) -> String {
        let lines = |s: &State| -> Vec<String> {
            let rows = s.rows.iter().chain(&s.unlogged).map(|(t, r)| format!("{t}: {r}"));
            s.catalogs.iter().cloned().chain(rows).collect()
        };
        let (a, b) = (lines(self), lines(other));
        let only = |a: &[String], b: &[String], sign: char| -> String {
            a.iter().filter(|l| !b.contains(l)).map(|l| format!("\n{sign} {l}")).collect()
        };
        only(&a, &b, '+') + &only(&b, &a, '-')
    }
}

/// Rows of catalogs that belong to nothing.
pub(super) fn lost(session: &mut Session) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for sql in LOST {
        all.append(&mut texts(session, sql)?);
    }
    Ok(all)
}
