//! The first rows of the catalogs.
//!
//! # Purpose
//! Makes the files of all catalogs of the template database and fills them with what describes the catalogs
//! themselves and the built-in types, functions, operators and casts. System views come later, as SQL.
//!
//! # Crash cases
//! A crash during `init` leaves a folder without a control file: it is refused as not initialised.

use super::defs::{self, CatalogDef, CatalogIndex};
use super::rows::{NewRow, int2_array, oid_array};
use super::store::{CatalogStore, Catalogs};
use base::{Oid, Result};
use txn::Transaction;
use types::{Datum, facts, oids};

/// The superuser made by `init`.
pub const BOOTSTRAP_SUPERUSER: Oid = Oid(10);
/// Schema `pg_catalog`.
pub const PG_CATALOG: Oid = Oid(11);
/// Schema `pg_toast`.
pub const PG_TOAST: Oid = Oid(99);
/// Schema `public`.
pub const PUBLIC: Oid = Oid(2200);
/// Schema `information_schema`.
pub const INFORMATION_SCHEMA: Oid = Oid(14_900);
/// Extension `plpgsql`.
const PLPGSQL_EXTENSION: Oid = Oid(14_880);
/// Language `plpgsql`.
const PLPGSQL: Oid = Oid(14_881);
/// Database `template1`.
pub const TEMPLATE1: Oid = Oid(1);
/// Database `template0`.
pub const TEMPLATE0: Oid = Oid(4);
/// Database `postgres`.
pub const POSTGRES: Oid = Oid(5);
/// Access method `heap`.
pub const HEAP_AM: Oid = Oid(2);
/// Access method `btree`.
pub const BTREE_AM: Oid = Oid(403);
/// Tablespace `pg_default`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// Tablespace `pg_global`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);
/// Collation `default`.
pub const DEFAULT_COLLATION: Oid = Oid(100);

/// Fills the catalogs of `store`'s database, which is the first.
///
/// # Errors
/// I/O.
pub fn bootstrap(store: &CatalogStore, txn: &Transaction) -> Result<()> {
    for def in defs::all() {
        store.create(def, txn)?;
    }
    let catalogs = store.session(txn);
    schemas_and_roles(&catalogs)?;
    for def in defs::all() {
        describe_catalog(&catalogs, def)?;
    }
    built_in_types(&catalogs)?;
    built_in_functions(&catalogs)?;
    operators_and_casts(&catalogs)?;
    access_methods(&catalogs)
}

fn schemas_and_roles(c: &Catalogs<'_>) -> Result<()> {
    let schemas = [
        (PG_CATALOG, "pg_catalog", 10),
        (PG_TOAST, "pg_toast", 10),
        (PUBLIC, "public", 6171),
        (INFORMATION_SCHEMA, "information_schema", 10),
    ];
    for (oid, name, owner) in schemas {
        let acl = match name {
            "pg_catalog" | "information_schema" => acl(&["postgres=UC/postgres", "=U/postgres"]),
            "public" => acl(&["pg_database_owner=UC/pg_database_owner", "=U/pg_database_owner"]),
            _ => Datum::Null,
        };
        initial_privileges(c, "pg_namespace", oid, &acl)?;
        let row = NewRow::of("pg_namespace").oid("oid", oid).text("nspname", name);
        c.insert(&row.oid("nspowner", Oid(owner)).set("nspacl", acl))?;
    }
    let comment = NewRow::of("pg_description")
        .oid("objoid", PUBLIC)
        .oid("classoid", defs::by_name("pg_namespace").oid)
        .text("description", "standard public schema");
    c.insert(&comment)?;
    let superuser = NewRow::of("pg_authid")
        .oid("oid", BOOTSTRAP_SUPERUSER)
        .text("rolname", "postgres")
        .bool("rolsuper", true)
        .bool("rolinherit", true)
        .bool("rolcreaterole", true)
        .bool("rolcreatedb", true)
        .bool("rolcanlogin", true)
        .bool("rolreplication", true)
        .bool("rolbypassrls", true)
        .int("rolconnlimit", -1);
    c.insert(&superuser)?;
    let predefined = [
        (6171, "pg_database_owner"),
        (6181, "pg_read_all_data"),
        (6182, "pg_write_all_data"),
        (3373, "pg_monitor"),
        (3374, "pg_read_all_settings"),
        (3375, "pg_read_all_stats"),
        (3377, "pg_stat_scan_tables"),
        (4200, "pg_signal_backend"),
        (4544, "pg_checkpoint"),
        (6337, "pg_maintain"),
        (4550, "pg_use_reserved_connections"),
        (4569, "pg_read_server_files"),
        (4570, "pg_write_server_files"),
        (4571, "pg_execute_server_program"),
        (6304, "pg_create_subscription"),
        (6392, "pg_signal_autovacuum_worker"),
    ];
    for (oid, name) in predefined {
        let row = NewRow::of("pg_authid").oid("oid", Oid(oid)).text("rolname", name);
        c.insert(&row.bool("rolinherit", true).int("rolconnlimit", -1))?;
    }
    for (i, member_of) in [3374u32, 3375, 3377].into_iter().enumerate() {
        let row = NewRow::of("pg_auth_members")
            .oid("oid", Oid(10_308 + u32::try_from(i).unwrap_or(0)))
            .oid("roleid", Oid(member_of))
            .oid("member", Oid(3373))
            .oid("grantor", BOOTSTRAP_SUPERUSER)
            .bool("inherit_option", true)
            .bool("set_option", true);
        c.insert(&row)?;
    }
    for (oid, name) in [(DEFAULT_TABLESPACE, "pg_default"), (GLOBAL_TABLESPACE, "pg_global")] {
        let row = NewRow::of("pg_tablespace").oid("oid", oid).text("spcname", name);
        c.insert(&row.oid("spcowner", BOOTSTRAP_SUPERUSER))?;
    }
    database_row(c, TEMPLATE1, "template1", true, true)
}

/// Adds a row to `pg_database`.
///
/// # Errors
/// `23505` when the name is taken; I/O.
pub fn database_row(
    c: &Catalogs<'_>,
    oid: Oid,
    name: &str,
    template: bool,
    connections: bool,
) -> Result<()> {
    let row = NewRow::of("pg_database")
        .oid("oid", oid)
        .text("datname", name)
        .oid("datdba", BOOTSTRAP_SUPERUSER)
        .int("encoding", 6)
        .char("datlocprovider", b'c')
        .bool("datistemplate", template)
        .bool("datallowconn", connections)
        .int("datconnlimit", -1)
        .oid("datfrozenxid", Oid(3))
        .oid("datminmxid", Oid(1))
        .oid("dattablespace", DEFAULT_TABLESPACE)
        .text("datcollate", "C.UTF-8")
        .text("datctype", "C.UTF-8")
        .set("datfrozenxid8", Datum::Xid8(3));
    let acl = if template { acl(&["=c/postgres", "postgres=CTc/postgres"]) } else { Datum::Null };
    c.insert(&row.set("datacl", acl))?;
    let comment = match oid {
        TEMPLATE1 => "default template for new databases",
        TEMPLATE0 => "unmodifiable empty database",
        POSTGRES => "default administrative connection database",
        _ => return Ok(()),
    };
    let row = NewRow::of("pg_shdescription")
        .oid("objoid", oid)
        .oid("classoid", defs::by_name("pg_database").oid)
        .text("description", comment);
    c.insert(&row).map(|_| ())
}

/// An aclitem[].
pub fn acl<S: AsRef<str>>(items: &[S]) -> Datum {
    let elements = items.iter().map(Datum::text).collect();
    Datum::Array(std::sync::Arc::new(types::ArrayValue::one_dimension(oids::ACLITEM, elements)))
}

/// Notes the privileges that an object has from the beginning, so that a dump leaves them out.
///
/// # Errors
/// I/O.
pub fn initial_privileges(c: &Catalogs<'_>, catalog: &str, object: Oid, acl: &Datum) -> Result<()> {
    if acl.is_null() {
        return Ok(());
    }
    let row = NewRow::of("pg_init_privs")
        .oid("objoid", object)
        .oid("classoid", defs::by_name(catalog).oid)
        .char("privtype", b'i')
        .set("initprivs", acl.clone());
    c.insert(&row).map(|_| ())
}

fn describe_catalog(c: &Catalogs<'_>, def: &'static CatalogDef) -> Result<()> {
    let columns = i64::try_from(def.columns.len()).unwrap_or(0);
    let tablespace = if def.shared { GLOBAL_TABLESPACE } else { Oid::INVALID };
    let row = NewRow::of("pg_class")
        .oid("oid", def.oid)
        .text("relname", def.name)
        .oid("relnamespace", PG_CATALOG)
        .oid("relowner", BOOTSTRAP_SUPERUSER)
        .oid("relam", HEAP_AM)
        .oid("relfilenode", def.oid)
        .oid("reltablespace", tablespace)
        .set("reltuples", Datum::Float4(-1.0))
        .bool("relhasindex", !def.indexes.is_empty())
        .bool("relisshared", def.shared)
        .char("relpersistence", b'p')
        .char("relkind", b'r')
        .int("relnatts", columns)
        .bool("relispopulated", true)
        .char("relreplident", b'n')
        .oid("relfrozenxid", Oid(3))
        .oid("relminmxid", Oid(1))
        .set("relacl", catalog_acl(def.name))
        .set("relfrozenxid8", Datum::Xid8(3));
    c.insert(&row)?;
    initial_privileges(c, "pg_class", def.oid, &catalog_acl(def.name))?;
    for (number, column) in (1i64..).zip(&def.columns) {
        let row = attribute(def.oid, number, column.name, column.ty, -1)
            .bool("attnotnull", column.not_null)
            .int("attlen", i64::from(column.len))
            .char("attalign", column.align_letter())
            .char("attstorage", column.storage)
            .oid("attcollation", column.collation);
        c.insert(&row)?;
    }
    for index in &def.indexes {
        describe_index(c, def, index)?;
    }
    Ok(())
}

/// Passwords and statistics are not for everyone.
fn catalog_acl(name: &str) -> Datum {
    match name {
        "pg_authid"
        | "pg_statistic"
        | "pg_user_mapping"
        | "pg_largeobject"
        | "pg_subscription"
        | "pg_statistic_ext_data" => acl(&["postgres=arwdDxtm/postgres"]),
        _ => acl(&["postgres=arwdDxtm/postgres", "=r/postgres"]),
    }
}

/// A `pg_attribute` row with what the type implies; length, alignment, storage and collation may be set over it.
pub fn attribute(relation: Oid, number: i64, name: &str, ty: Oid, typmod: i32) -> NewRow {
    let info = types::type_info(ty);
    NewRow::of("pg_attribute")
        .oid("attrelid", relation)
        .text("attname", name)
        .oid("atttypid", ty)
        .int("attlen", info.map_or(-1, |i| i64::from(i.len)))
        .int("attnum", number)
        .int("atttypmod", i64::from(typmod))
        .int("attndims", i64::from(info.is_some_and(types::TypeInfo::is_array)))
        .bool("attbyval", info.is_some_and(|i| i.by_value))
        .char("attalign", info.map_or(b'd', |i| i.align as u8))
        .char("attstorage", info.map_or(b'x', |i| i.storage as u8))
        .bool("attislocal", true)
        .oid("attcollation", info.map_or(Oid::INVALID, |i| i.collation))
}

fn describe_index(c: &Catalogs<'_>, def: &CatalogDef, index: &CatalogIndex) -> Result<()> {
    let keys = i64::try_from(index.columns.len()).unwrap_or(0);
    let tablespace = if def.shared { GLOBAL_TABLESPACE } else { Oid::INVALID };
    let row = NewRow::of("pg_class")
        .oid("oid", index.oid)
        .text("relname", index.name)
        .oid("relnamespace", PG_CATALOG)
        .oid("relowner", BOOTSTRAP_SUPERUSER)
        .oid("relam", BTREE_AM)
        .oid("relfilenode", index.oid)
        .oid("reltablespace", tablespace)
        .int("relpages", 1)
        .bool("relisshared", def.shared)
        .char("relpersistence", b'p')
        .char("relkind", b'i')
        .int("relnatts", keys)
        .bool("relispopulated", true)
        .char("relreplident", b'n');
    c.insert(&row)?;
    for (number, column) in (1i64..).zip(&index.columns) {
        let column = &def.columns[usize::try_from(*column - 1).unwrap_or(0)];
        c.insert(&attribute(index.oid, number, column.name, column.ty, -1))?;
    }
    let row = NewRow::of("pg_index")
        .oid("indexrelid", index.oid)
        .oid("indrelid", def.oid)
        .int("indnatts", keys)
        .int("indnkeyatts", keys)
        .bool("indisunique", index.unique)
        .bool("indisprimary", index.primary)
        .bool("indimmediate", true)
        .bool("indisvalid", true)
        .bool("indisready", true)
        .bool("indislive", true)
        .set("indkey", int2_array(&index.columns))
        .set("indcollation", oid_array(&vec![Oid::INVALID; index.columns.len()]))
        .set("indclass", oid_array(&index.opclasses))
        .set("indoption", int2_array(&vec![0; index.columns.len()]));
    c.insert(&row)?;
    if index.unique {
        constraint_of_catalog(c, def, index)?;
    }
    Ok(())
}

/// Catalogs' primary keys and unique indexes are constraints too.
fn constraint_of_catalog(c: &Catalogs<'_>, def: &CatalogDef, index: &CatalogIndex) -> Result<()> {
    let row = NewRow::of("pg_constraint")
        .oid("oid", Oid(index.oid.0 + 10_000))
        .text("conname", index.name)
        .oid("connamespace", PG_CATALOG)
        .char("contype", if index.primary { b'p' } else { b'u' })
        .bool("conenforced", true)
        .bool("convalidated", true)
        .oid("conrelid", def.oid)
        .oid("conindid", index.oid)
        .char("confupdtype", b' ')
        .char("confdeltype", b' ')
        .char("confmatchtype", b' ')
        .bool("conislocal", true)
        .bool("connoinherit", true)
        .set("conkey", int2_array(&index.columns));
    c.insert(&row).map(|_| ())
}

/// The OID of the function called `name` (type and estimator functions), or 0.
fn function_oid(name: &str) -> Oid {
    facts::procs_by_name(name).first().map_or(Oid::INVALID, |p| p.oid)
}

fn built_in_types(c: &Catalogs<'_>) -> Result<()> {
    for t in facts::types() {
        let row = NewRow::of("pg_type")
            .oid("oid", t.oid)
            .text("typname", t.name)
            .oid("typnamespace", PG_CATALOG)
            .oid("typowner", BOOTSTRAP_SUPERUSER)
            .int("typlen", i64::from(t.len))
            .bool("typbyval", t.by_value)
            .char("typtype", t.kind as u8)
            .char("typcategory", t.category as u8)
            .bool("typispreferred", t.preferred)
            .bool("typisdefined", true)
            .char("typdelim", t.delimiter as u8)
            .oid("typsubscript", function_oid(t.subscript))
            .oid("typelem", t.element)
            .oid("typarray", t.array)
            .oid("typinput", function_oid(t.input))
            .oid("typoutput", function_oid(t.output))
            .oid("typreceive", function_oid(t.receive))
            .oid("typsend", function_oid(t.send))
            .oid("typmodin", function_oid(t.typmod_in))
            .oid("typmodout", function_oid(t.typmod_out))
            .char("typalign", t.align as u8)
            .char("typstorage", t.storage as u8)
            .oid("typbasetype", t.base_type)
            .int("typtypmod", i64::from(t.base_typmod))
            .oid("typcollation", t.collation);
        c.insert(&row)?;
    }
    Ok(())
}

/// Only functions that can be called are listed.
fn built_in_functions(c: &Catalogs<'_>) -> Result<()> {
    for f in types::registry::functions() {
        let Some(p) = facts::proc(f.oid) else { continue };
        let language = match p.language {
            "c" => Oid(13),
            "sql" => Oid(14),
            _ => Oid(12),
        };
        let texts = |list: &[&str]| {
            if list.is_empty() { Datum::Null } else { super::rows::text_array(list) }
        };
        let chars = |list: &[&str]| {
            if list.is_empty() {
                return Datum::Null;
            }
            let elements =
                list.iter().map(|m| Datum::Char(m.as_bytes().first().copied().unwrap_or(0)));
            Datum::Array(std::sync::Arc::new(types::ArrayValue::one_dimension(
                oids::CHAR,
                elements.collect(),
            )))
        };
        let all_args = if p.all_args.is_empty() { Datum::Null } else { oid_array(p.all_args) };
        let row = NewRow::of("pg_proc")
            .oid("oid", p.oid)
            .text("proname", p.name)
            .oid("pronamespace", PG_CATALOG)
            .oid("proowner", BOOTSTRAP_SUPERUSER)
            .oid("prolang", language)
            .set("procost", Datum::Float4(p.cost))
            .set("prorows", Datum::Float4(p.rows))
            .oid("provariadic", p.variadic)
            .char("prokind", p.kind as u8)
            .bool("proleakproof", p.leakproof)
            .bool("proisstrict", p.strict)
            .bool("proretset", p.returns_set)
            .char("provolatile", p.volatility as u8)
            .char("proparallel", p.parallel as u8)
            .int("pronargs", i64::try_from(p.args.len()).unwrap_or(0))
            .int("pronargdefaults", i64::from(p.defaults))
            .oid("prorettype", p.result)
            .set("proargtypes", oid_array(p.args))
            .set("proallargtypes", all_args)
            .set("proargmodes", chars(p.modes))
            .set("proargnames", texts(p.arg_names))
            .text("prosrc", if p.symbol.is_empty() { p.name } else { p.symbol });
        c.insert(&row)?;
    }
    for a in facts::aggregates().iter().filter(|a| types::registry::function(a.function).is_some())
    {
        let row = NewRow::of("pg_aggregate")
            .oid("aggfnoid", a.function)
            .char("aggkind", a.kind as u8)
            .int("aggnumdirectargs", i64::from(a.direct_args))
            .oid("aggtransfn", a.transition)
            .oid("aggfinalfn", a.final_function)
            .oid("aggcombinefn", a.combine)
            .char("aggfinalmodify", a.final_modify as u8)
            .char("aggmfinalmodify", a.moving_final_modify as u8)
            .oid("aggsortop", a.sort_operator)
            .oid("aggtranstype", a.transition_type)
            .int("aggtransspace", i64::from(a.transition_space));
        c.insert(&row)?;
    }
    Ok(())
}

fn operators_and_casts(c: &Catalogs<'_>) -> Result<()> {
    for o in facts::operators() {
        let row = NewRow::of("pg_operator")
            .oid("oid", o.oid)
            .text("oprname", o.name)
            .oid("oprnamespace", PG_CATALOG)
            .oid("oprowner", BOOTSTRAP_SUPERUSER)
            .char("oprkind", o.kind as u8)
            .bool("oprcanmerge", o.can_merge)
            .bool("oprcanhash", o.can_hash)
            .oid("oprleft", o.left)
            .oid("oprright", o.right)
            .oid("oprresult", o.result)
            .oid("oprcom", o.commutator)
            .oid("oprnegate", o.negator)
            .oid("oprcode", o.function)
            .oid("oprrest", function_oid(o.restrict_estimator))
            .oid("oprjoin", function_oid(o.join_estimator));
        c.insert(&row)?;
    }
    for cast in facts::casts() {
        let (method, function) = match cast.method {
            types::CastMethod::Function(f) => (b'f', f),
            types::CastMethod::Binary => (b'b', Oid::INVALID),
            types::CastMethod::InOut => (b'i', Oid::INVALID),
        };
        let context = match cast.context {
            types::CastContext::Implicit => b'i',
            types::CastContext::Assignment => b'a',
            types::CastContext::Explicit => b'e',
        };
        let row = NewRow::of("pg_cast")
            .oid("oid", cast.oid)
            .oid("castsource", cast.source)
            .oid("casttarget", cast.target)
            .oid("castfunc", function)
            .char("castcontext", context)
            .char("castmethod", method);
        c.insert(&row)?;
    }
    for l in facts::collations() {
        let text = |s: &str| if s.is_empty() { Datum::Null } else { Datum::text(s) };
        let row = NewRow::of("pg_collation")
            .oid("oid", l.oid)
            .text("collname", l.name)
            .oid("collnamespace", PG_CATALOG)
            .oid("collowner", BOOTSTRAP_SUPERUSER)
            .char("collprovider", l.provider as u8)
            .bool("collisdeterministic", l.deterministic)
            .int("collencoding", i64::from(l.encoding))
            .set("collcollate", text(l.collate))
            .set("collctype", text(l.ctype));
        c.insert(&row)?;
    }
    for (oid, name) in [(12, "internal"), (13, "c"), (14, "sql")] {
        let row = NewRow::of("pg_language").oid("oid", Oid(oid)).text("lanname", name);
        let row = row.oid("lanowner", BOOTSTRAP_SUPERUSER).bool("lanpltrusted", name == "sql");
        c.insert(&row)?;
    }
    procedural_language(c)
}

/// PL/pgSQL, an extension that every database has from the beginning.
fn procedural_language(c: &Catalogs<'_>) -> Result<()> {
    let language = NewRow::of("pg_language")
        .oid("oid", PLPGSQL)
        .text("lanname", "plpgsql")
        .oid("lanowner", BOOTSTRAP_SUPERUSER)
        .bool("lanispl", true)
        .bool("lanpltrusted", true);
    c.insert(&language)?;
    let extension = NewRow::of("pg_extension")
        .oid("oid", PLPGSQL_EXTENSION)
        .text("extname", "plpgsql")
        .oid("extowner", BOOTSTRAP_SUPERUSER)
        .oid("extnamespace", PG_CATALOG)
        .bool("extrelocatable", false)
        .text("extversion", "1.0");
    c.insert(&extension)?;
    let comment = NewRow::of("pg_description")
        .oid("objoid", PLPGSQL_EXTENSION)
        .oid("classoid", defs::by_name("pg_extension").oid)
        .text("description", "PL/pgSQL procedural language");
    c.insert(&comment)?;
    Ok(())
}

fn access_methods(c: &Catalogs<'_>) -> Result<()> {
    for am in facts::access_methods().iter().filter(|am| matches!(am.name, "heap" | "btree")) {
        let row = NewRow::of("pg_am").oid("oid", am.oid).text("amname", am.name);
        c.insert(&row.oid("amhandler", function_oid(am.handler)).char("amtype", am.kind as u8))?;
    }
    let btree = |method: Oid| method == BTREE_AM;
    for f in facts::operator_families().iter().filter(|f| btree(f.method)) {
        let row = NewRow::of("pg_opfamily")
            .oid("oid", f.oid)
            .oid("opfmethod", f.method)
            .text("opfname", f.name)
            .oid("opfnamespace", PG_CATALOG)
            .oid("opfowner", BOOTSTRAP_SUPERUSER);
        c.insert(&row)?;
    }
    for o in facts::operator_classes().iter().filter(|o| btree(o.method)) {
        let row = NewRow::of("pg_opclass")
            .oid("oid", o.oid)
            .oid("opcmethod", o.method)
            .text("opcname", o.name)
            .oid("opcnamespace", PG_CATALOG)
            .oid("opcowner", BOOTSTRAP_SUPERUSER)
            .oid("opcfamily", o.family)
            .oid("opcintype", o.input_type)
            .bool("opcdefault", o.is_default)
            .oid("opckeytype", o.key_type);
        c.insert(&row)?;
    }
    for o in facts::family_operators().iter().filter(|o| btree(o.method)) {
        let row = NewRow::of("pg_amop")
            .oid("oid", o.oid)
            .oid("amopfamily", o.family)
            .oid("amoplefttype", o.left)
            .oid("amoprighttype", o.right)
            .int("amopstrategy", i64::from(o.strategy))
            .char("amoppurpose", o.purpose as u8)
            .oid("amopopr", o.operator)
            .oid("amopmethod", o.method)
            .oid("amopsortfamily", o.sort_family);
        c.insert(&row)?;
    }
    Ok(())
}
