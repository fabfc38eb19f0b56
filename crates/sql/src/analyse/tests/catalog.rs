//! Catalogs in memory: PostgreSQL's own tables and a few of ours.

use base::{Oid, Result};
use engine::catalog::defs;
use engine::catalog::model::{
    CatalogView, Column, ColumnStatistics, Generation, Identity, Index, IndexColumn, RelationKind,
    RelationPersistence, Table,
};
use engine::catalog::options::RelationOptions;
use expr::{Expr, TypeRef};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use types::{Datum, oids};

pub struct TestCatalog {
    by_name: HashMap<(String, String), Arc<Table>>,
    by_oid: HashMap<Oid, Arc<Table>>,
}

fn column(number: i32, name: &str, ty: TypeRef) -> Column {
    Column {
        number,
        name: name.to_owned(),
        ty,
        not_null: false,
        dropped: false,
        default: None,
        generated: None,
        identity: None,
        identity_sequence: None,
        missing: None,
        collation: Oid(0),
        storage: b'p',
        compression: 0,
        len: -1,
        align: 4,
        statistics_target: None,
        acl: None,
        declared: ty.oid,
        domain_default: None,
        rows: None,
        may_hold_null: false,
    }
}

fn table(oid: u32, schema: &str, name: &str, columns: Vec<Column>) -> Table {
    Table {
        oid: Oid(oid),
        name: name.to_owned(),
        namespace: Oid(if schema == "public" { 2200 } else { 11 }),
        namespace_name: schema.to_owned(),
        kind: RelationKind::Table,
        persistence: RelationPersistence::Permanent,
        owner: Oid(10),
        acl: None,
        system_acls: Vec::new(),
        storage: None,
        columns,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        view_query: None,
        options: RelationOptions::new(),
        reltuples: -1.0,
        relpages: 0,
        relallvisible: 0,
        relfrozenxid: base::Xid(3),
        toast: Oid(0),
        row_type: Oid(oid + 1),
        populated: true,
    }
}

/// `a int4, b text …` in our own short form.
fn columns(text: &str) -> Vec<Column> {
    text.split(", ")
        .enumerate()
        .map(|(i, c)| {
            let (name, ty) = c.split_once(' ').unwrap();
            let t = crate::parse::parse_type(ty).unwrap();
            let oid = types::type_by_name(t.names.last().unwrap()).unwrap();
            let oid = if t.array_dims > 0 { oid.array } else { oid.oid };
            let args: Vec<i32> = t
                .modifiers
                .iter()
                .map(|m| match &m.kind {
                    crate::parse::ast::ExprKind::Number(n) => n.parse().unwrap(),
                    _ => panic!("{ty}"),
                })
                .collect();
            let typmod = if args.is_empty() { -1 } else { types::typmod_in(oid, &args).unwrap() };
            column(i as i32 + 1, name, TypeRef { oid, typmod })
        })
        .collect()
}

fn primary_key(oid: u32, t: &Table, keys: &[i32]) -> Arc<Index> {
    Arc::new(Index {
        oid: Oid(oid),
        name: format!("{}_pkey", t.name),
        namespace: t.namespace,
        table: t.oid,
        storage: base::RelationId { database: Oid(5), file_number: oid },
        columns: keys
            .iter()
            .map(|k| IndexColumn {
                column: *k,
                expr: None,
                ty: t.columns[*k as usize - 1].ty,
                opclass: Oid(1978),
                collation: Oid::INVALID,
                descending: false,
                nulls_first: false,
                name: t.columns[*k as usize - 1].name.clone(),
            })
            .collect(),
        key_columns: keys.len(),
        unique: true,
        nulls_not_distinct: false,
        primary: true,
        immediate: true,
        valid: true,
        ready: true,
        live: true,
        predicate: None,
        options: RelationOptions::new(),
        reltuples: -1.0,
        relpages: 0,
        persistence: RelationPersistence::Permanent,
        constraint: Some(format!("{}_pkey", t.name)),
        constraint_oid: Oid::INVALID,
        deferred: false,
    })
}

impl TestCatalog {
    pub fn get() -> &'static TestCatalog {
        static ONE: OnceLock<TestCatalog> = OnceLock::new();
        ONE.get_or_init(TestCatalog::new)
    }

    fn new() -> TestCatalog {
        let mut c = TestCatalog { by_name: HashMap::new(), by_oid: HashMap::new() };
        for d in defs::all() {
            let cols = d
                .columns
                .iter()
                .enumerate()
                .map(|(i, c)| column(i as i32 + 1, c.name, TypeRef::of(c.ty)))
                .collect();
            c.add(table(d.oid.0, "pg_catalog", d.name, cols));
        }
        let views = [
            (
                "pg_roles",
                "rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool, rolconfig text[], oid oid",
            ),
            (
                "pg_settings",
                "name text, setting text, unit text, category text, short_desc text, extra_desc text, context text, vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text, sourcefile text, sourceline int4, pending_restart bool",
            ),
        ];
        for (i, (name, cols)) in views.iter().enumerate() {
            c.add(table(13000 + i as u32 * 2, "pg_catalog", name, columns(cols)));
        }
        let mut t = table(
            20000,
            "public",
            "t",
            columns(
                "a int4, b text, c numeric(10,2), v varchar(5), arr int4[], ts timestamptz, j jsonb, js json",
            ),
        );
        t.columns[1].default =
            Some(Arc::new(super::super::coerce::constant(oids::TEXT, Datum::text("none"))));
        t.indexes = vec![primary_key(20002, &t, &[1])];
        c.add(t);
        c.add(table(20010, "public", "u", columns("id int4, a int8, d date, f float8")));
        let mut g = table(20020, "public", "g", columns("id int4, x int4, twice int4, k int8"));
        g.columns[0].identity = Some(Identity::Always);
        g.columns[0].identity_sequence = Some(Oid(20030));
        g.columns[2].generated = Some(Generation::Stored);
        g.columns[2].default = Some(Arc::new(Expr::Var {
            levels_up: 0,
            rte: 0,
            column: 2,
            ty: TypeRef::of(oids::INT4),
        }));
        g.columns[3].identity = Some(Identity::ByDefault);
        g.columns[3].identity_sequence = Some(Oid(20031));
        c.add(g);
        for (i, name) in
            ["t1", "pgbench_accounts", "pgbench_branches", "pgbench_tellers", "pgbench_history"]
                .iter()
                .enumerate()
        {
            c.add(table(21000 + i as u32 * 2, "public", name, columns("aid int4, bid int4, tid int4, abalance int4, bbalance int4, tbalance int4, delta int4, mtime timestamp, filler char(84), id int4, a int4, b text, fk int4")));
        }
        c.add(table(21200, "public", "foo", columns("a int4, b text")));
        c.add(table(
            21300,
            "pg_catalog",
            "pg_seclabels",
            columns("label text, provider text, classoid oid, objoid oid, objsubid int4"),
        ));
        c.add(table(21400, "public", "t1_id_seq", columns("last_value int8, is_called bool")));
        c.add(table(
            21100,
            "public",
            "s1",
            columns("last_value int8, log_cnt int8, is_called bool"),
        ));
        c
    }

    fn add(&mut self, t: Table) {
        let t = Arc::new(t);
        self.by_name.insert((t.namespace_name.clone(), t.name.clone()), Arc::clone(&t));
        self.by_oid.insert(t.oid, t);
    }
}

impl CatalogView for TestCatalog {
    fn table_by_name(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let schemas = match schema {
            Some(s) => vec![s],
            None => vec!["pg_catalog", "public"],
        };
        Ok(schemas
            .into_iter()
            .find_map(|s| self.by_name.get(&(s.to_owned(), name.to_owned())).cloned()))
    }
    fn table_by_oid(&self, oid: Oid) -> Result<Option<Arc<Table>>> {
        Ok(self.by_oid.get(&oid).cloned())
    }
    fn schema_by_name(&self, name: &str) -> Result<Option<Oid>> {
        Ok(match name {
            "pg_catalog" => Some(Oid(11)),
            "public" => Some(Oid(2200)),
            _ => None,
        })
    }
    fn role_by_name(&self, _: &str) -> Result<Option<Oid>> {
        Ok(Some(Oid(10)))
    }
    fn role_name(&self, _: Oid) -> Result<Option<String>> {
        Ok(Some("postgres".into()))
    }
    fn database_name(&self) -> String {
        "postgres".into()
    }
    fn search_path(&self) -> Vec<String> {
        vec!["pg_catalog".into(), "public".into()]
    }
    fn column_statistics(&self, _: Oid, _: i32) -> Result<Option<Arc<ColumnStatistics>>> {
        Ok(None)
    }
    fn relation_pages(&self, _: &Table) -> Result<u32> {
        Ok(1)
    }
}

/// An environment in which every name of an object is object 1.
pub struct TestEnv;

impl types::Env for TestEnv {
    fn setting(&self, _: &str) -> Option<String> {
        None
    }
    fn transaction_timestamp(&self) -> i64 {
        0
    }
    fn statement_timestamp(&self) -> i64 {
        0
    }
    fn check_cancel(&self) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn object_oid(&self, _: Oid, name: &str) -> Result<Option<Oid>> {
        Ok(Some(Oid(name.parse().unwrap_or(1))))
    }
}
