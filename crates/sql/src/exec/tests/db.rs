//! A database of hand-made tables over a real engine, for tests of planner and executor.

use crate::analyse::{ParamTypes, analyse};
use crate::exec::foreign_key::AfterCheck;
use crate::exec::{CheckList, ExecContext, Executor, RelationAccess};
use crate::plan::{Plan, PlannerSettings, plan_query};
use crate::query::UsedColumns;
use base::sync::CancelFlag;
use base::{Oid, Result, SqlError};
use btree::Btree;
use engine::catalog::model::*;
use engine::catalog::options::RelationOptions;
use engine::relation::Storage;
use engine::{Engine, EngineOptions};
use heap::{Heap, HeapOptions};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use txn::{BackendKind, Transaction};
use types::{Datum, Env};

pub struct Db {
    _folder: Option<tempfile::TempDir>,
    pub engine: Arc<Engine>,
    storage: Storage,
    pub tables: RefCell<HashMap<String, Arc<Table>>>,
    virtual_rows: RefCell<HashMap<Oid, Vec<Vec<Datum>>>>,
    stats: RefCell<HashMap<(Oid, i32), Arc<ColumnStatistics>>>,
    next_oid: Cell<u32>,
    pub settings: RefCell<PlannerSettings>,
    pub cancel: CancelFlag,
    deferred: RefCell<CheckList>,
    pub work_mem: Cell<usize>,
}

pub struct TestEnv;

impl Env for TestEnv {
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
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl Db {
    pub fn new() -> Db {
        let folder = tempfile::tempdir().unwrap();
        let disk = disk::os(folder.path().to_path_buf()).unwrap();
        let settings = base::settings::ServerSettings::new();
        settings.set_internal(
            "shared_buffers",
            base::settings::Value::Int(if cfg!(debug_assertions) { 2048 } else { 16384 }),
        );
        let options = EngineOptions { background: false, ..EngineOptions::new(Arc::new(settings)) };
        let engine = Engine::init(disk, options).unwrap();
        Db::assemble(Some(folder), engine)
    }

    /// A second session's view of one table.
    pub fn over(engine: Arc<Engine>, table: Arc<Table>) -> Db {
        let db = Db::assemble(None, engine);
        db.tables.borrow_mut().insert(table.name.clone(), table);
        db
    }

    fn assemble(folder: Option<tempfile::TempDir>, engine: Arc<Engine>) -> Db {
        let storage = Storage::of(&engine);
        Db {
            _folder: folder,
            engine,
            storage,
            tables: RefCell::default(),
            virtual_rows: RefCell::default(),
            stats: RefCell::default(),
            next_oid: Cell::new(20_000),
            settings: RefCell::new(PlannerSettings::default()),
            cancel: CancelFlag::default(),
            deferred: RefCell::default(),
            work_mem: Cell::new(4 << 20),
        }
    }

    fn oid(&self) -> Oid {
        self.next_oid.set(self.next_oid.get() + 1);
        Oid(self.next_oid.get())
    }

    pub fn begin(&self) -> Transaction {
        self.engine.txns.begin(&self.engine.txns.register_backend(BackendKind::Client))
    }

    /// `create("t", "a int4, b text", &["unique a", "b"])`
    pub fn create(&self, name: &str, columns: &str, indexes: &[&str]) -> Arc<Table> {
        let oid = self.oid();
        let txn = self.begin();
        let rel = self.engine.files.create(&txn, Oid(5), buffer::Persistence::Permanent).unwrap();
        let mut list = Vec::new();
        for (i, c) in columns.split(',').enumerate() {
            let words: Vec<&str> = c.split_whitespace().collect();
            let info = types::type_by_name(words[1]).unwrap();
            list.push(Column {
                number: i as i32 + 1,
                name: words[0].to_owned(),
                ty: expr::TypeRef::of(info.oid),
                not_null: words.contains(&"notnull"),
                dropped: false,
                default: None,
                generated: None,
                identity: None,
                identity_sequence: None,
                missing: None,
                collation: info.collation,
                storage: b'p',
                compression: 0,
                len: info.len,
                align: info.align_bytes() as u8,
                statistics_target: None,
                acl: None,
                declared: info.oid,
                domain_default: None,
                rows: None,
                may_hold_null: false,
            });
        }
        let mut all = Vec::new();
        for spec in indexes {
            let mut unique = false;
            let mut keys = Vec::new();
            for word in spec.split_whitespace() {
                if word == "unique" {
                    unique = true;
                    continue;
                }
                let (n, descending) = match word.strip_suffix("-") {
                    Some(n) => (n, true),
                    None => (word, false),
                };
                let c = list.iter().find(|c| c.name == n).unwrap();
                keys.push(IndexColumn {
                    column: c.number,
                    expr: None,
                    ty: c.ty,
                    opclass: types::registry::default_btree_class(c.ty.oid).unwrap().oid,
                    collation: Oid::INVALID,
                    descending,
                    nulls_first: descending,
                    name: n.to_owned(),
                });
            }
            let irel =
                self.engine.files.create(&txn, Oid(5), buffer::Persistence::Permanent).unwrap();
            let index = Arc::new(Index {
                oid: self.oid(),
                name: format!("{name}_{}_idx", keys[0].name),
                namespace: Oid(2200),
                table: oid,
                storage: irel.id(),
                key_columns: keys.len(),
                columns: keys,
                unique,
                nulls_not_distinct: false,
                primary: unique,
                immediate: true,
                valid: true,
                ready: true,
                live: true,
                predicate: None,
                options: RelationOptions::new(),
                reltuples: -1.0,
                relpages: 0,
                persistence: RelationPersistence::Permanent,
                constraint: None,
                constraint_oid: Oid::INVALID,
                deferred: false,
            });
            self.storage.btree(name, &index).unwrap().create().unwrap();
            all.push(index);
        }
        txn.commit(txn::CommitExtras::default()).unwrap();
        let table = Arc::new(Table {
            oid,
            name: name.to_owned(),
            namespace: Oid(2200),
            namespace_name: "public".to_owned(),
            kind: RelationKind::Table,
            persistence: RelationPersistence::Permanent,
            owner: Oid(10),
            acl: None,
            system_acls: Vec::new(),
            storage: Some(rel.id()),
            columns: list,
            indexes: all,
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
            row_type: Oid(0),
            populated: true,
        });
        self.tables.borrow_mut().insert(name.to_owned(), table.clone());
        table
    }

    /// Replaces a table's description.
    pub fn alter(&self, name: &str, f: impl FnOnce(&mut Table)) {
        let mut t = (*self.tables.borrow()[name]).clone();
        f(&mut t);
        self.tables.borrow_mut().insert(name.to_owned(), Arc::new(t));
    }

    pub fn plan(&self, sql: &str) -> Result<Arc<Plan>> {
        let parsed = crate::parse::parse(sql)?;
        let mut params = ParamTypes::variable(Vec::new());
        let q = analyse(&parsed[0], self, &mut params, &TestEnv)?;
        Ok(Arc::new(plan_query(q, self, &self.settings.borrow(), &TestEnv, &[])?))
    }

    pub fn execute(
        &self,
        txn: &Transaction,
        sql: &str,
        params: &[Datum],
    ) -> Result<(Vec<Vec<Datum>>, u64)> {
        let plan = self.plan(sql)?;
        let mut e = Executor::new(plan)?;
        let x = ExecContext {
            txn,
            snapshot: txn.take_snapshot(),
            env: &TestEnv,
            catalog: self,
            relations: self,
            cancel: &self.cancel,
            work_mem_bytes: self.work_mem.get(),
            hash_mem_bytes: self.work_mem.get() * 2,
            params,
        };
        e.start(&x)?;
        let mut rows = Vec::new();
        loop {
            let b = e.next_batch(&x, 50)?;
            if b.is_empty() {
                break;
            }
            rows.extend(b.rows().map(<[Datum]>::to_vec));
        }
        txn.advance_command()?;
        Ok((rows, e.affected()))
    }

    /// Runs in a transaction of its own; rows as text, `|` between columns, one line each.
    pub fn run(&self, sql: &str) -> String {
        let txn = self.begin();
        let plan = match self.plan(sql) {
            Ok(p) => p,
            Err(e) => return format!("{} {e}", e.state()),
        };
        match self.execute(&txn, sql, &[]) {
            Ok((rows, affected)) => {
                txn.commit(txn::CommitExtras::default()).unwrap();
                if plan.output.is_empty() {
                    return affected.to_string();
                }
                let types: Vec<Oid> = plan.output.iter().map(|o| o.ty.oid).collect();
                let lines: Vec<String> = rows
                    .iter()
                    .map(|r| {
                        let cells: Vec<String> = r
                            .iter()
                            .zip(&types)
                            .map(|(d, t)| {
                                if d.is_null() {
                                    "~".to_owned()
                                } else {
                                    types::io::to_text(*t, d, &TestEnv).unwrap()
                                }
                            })
                            .collect();
                        cells.join("|")
                    })
                    .collect();
                lines.join("\n")
            }
            Err(e) => {
                txn.abort().unwrap();
                let e = e.to_sql_error();
                match e.detail {
                    Some(d) => format!("{} {} / {d}", e.state, e.message),
                    None => format!("{} {}", e.state, e.message),
                }
            }
        }
    }
}

impl CatalogView for Db {
    fn table_by_name(&self, _: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        Ok(self.tables.borrow().get(name).cloned())
    }
    fn table_by_oid(&self, oid: Oid) -> Result<Option<Arc<Table>>> {
        Ok(self.tables.borrow().values().find(|t| t.oid == oid).cloned())
    }
    fn schema_by_name(&self, name: &str) -> Result<Option<Oid>> {
        Ok((name == "public").then_some(Oid(2200)))
    }
    fn role_by_name(&self, _: &str) -> Result<Option<Oid>> {
        Ok(Some(Oid(10)))
    }
    fn role_name(&self, _: Oid) -> Result<Option<String>> {
        Ok(Some("postgres".to_owned()))
    }
    fn database_name(&self) -> String {
        "postgres".to_owned()
    }
    fn search_path(&self) -> Vec<String> {
        vec!["pg_catalog".to_owned(), "public".to_owned()]
    }
    fn column_statistics(&self, table: Oid, column: i32) -> Result<Option<Arc<ColumnStatistics>>> {
        Ok(self.stats.borrow().get(&(table, column)).cloned())
    }
    fn relation_pages(&self, table: &Table) -> Result<u32> {
        match table.storage {
            Some(id) => {
                let h = self.storage.open(id, table.persistence);
                Ok(h.len_blocks(base::Fork::Main)?.0)
            }
            None => Ok(0),
        }
    }
}

impl RelationAccess for Db {
    fn heap(&self, table: &Arc<Table>) -> Result<Arc<Heap>> {
        let rel = self.storage.open(table.storage.unwrap(), table.persistence);
        Ok(Arc::new(Heap::new(rel, self.storage.heap.clone(), HeapOptions::default())))
    }
    fn btree(&self, table: &Arc<Table>, index: &Arc<Index>) -> Result<Arc<Btree>> {
        self.storage.btree(&table.name, index)
    }
    fn virtual_rows(&self, table: &Arc<Table>) -> Result<Vec<Vec<Datum>>> {
        Ok(self.virtual_rows.borrow().get(&table.oid).cloned().unwrap_or_default())
    }
    fn next_value(&self, _: Oid) -> Result<i64> {
        Ok(1)
    }
    fn check_privileges(&self, _: &Table, _: u32, _: Option<&UsedColumns>, _: u32) -> Result<()> {
        Ok(())
    }
    fn defer(&self, check: AfterCheck) -> Result<()> {
        self.deferred.borrow_mut().push(check)
    }
    fn lock_table(&self, _: Oid, _: bool) -> Result<()> {
        Ok(())
    }
    fn notice(&self, _: SqlError) {}
}

impl Db {
    /// The plan's lines without costs.
    pub fn explain(&self, sql: &str) -> String {
        let options = crate::plan::explain::ExplainOptions { costs: false, ..Default::default() };
        let plan = self.plan(sql).unwrap();
        crate::plan::explain::explain_text(&plan, options, &[], &TestEnv).join("\n")
    }
}
