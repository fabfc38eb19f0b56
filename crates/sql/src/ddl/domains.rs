//! CREATE DOMAIN and ALTER DOMAIN. What is done to domains as to other types is in `enums.rs`.
//!
//! # Invariants
//! Whoever makes a column, or anything else, of a domain holds a share lock on it ([`super::depend::record_type`]), and whoever alters it
//! holds one that excludes that: rows are looked at when nobody makes more columns.
//!
//! # Differs from PostgreSQL
//! Domains over composite types, and arrays of domains over arrays, are refused, and so are temporary domains.

use super::default_acl::{self, Made};
use super::depend::{self, Kind, Object};
use super::drop::drop_objects;
use super::enums::{array_name, array_row, function_oid, type_row};
use super::row_types::free_type_name;
use super::{Ddl, new_oid};
use crate::analyse;
use crate::parse::ast::{Expr as AstExpr, ObjectName};
use crate::parse::utility::{
    AlterDomain, AlterDomainAction, ColumnConstraint, ColumnConstraintKind as C, CreateDomain,
};
use crate::session::SessionState;
use base::{Error, Oid, Result, SqlError, SqlState, bail};
use engine::catalog::defs;
use engine::catalog::load::{RowSource, store_expr, stored_expr};
use engine::catalog::model::{Column, RelationKind, Table};
use engine::catalog::rows::{NewRow, Row};
use expr::{Expr, TypeRef};
use std::sync::Arc;
use txn::LockMode;
use types::domains::{is_domain, is_domain_array};
use types::{Datum, facts, format_type};

/// Notes a domain, as its row says.
pub(super) fn learn(row: &Row, array_name: &str) {
    let (below, typmod) = (row.oid("typbasetype"), row.i32("typtypmod"));
    types::domains::learn(row.oid("oid"), row.text("typname"), array_name, below, typmod);
}

/// A type's constraints are in the schema that it is in.
pub(super) fn move_constraints(state: &SessionState, domain: Oid, namespace: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_constraint", &[("contypid", Datum::Oid(domain))])? {
        row.set("connamespace", Datum::Oid(namespace));
        rows.update(&row)?;
    }
    Ok(())
}

/// A constraint of a domain went: NULL may be allowed now.
pub(super) fn constraint_gone(state: &SessionState, constraint: &Row) -> Result<()> {
    let txn = state.txn()?;
    let domain = constraint.oid("contypid");
    if constraint.char("contype") == b'n'
        && let Some(mut row) = type_row(state, domain)?
    {
        row.set("typnotnull", Datum::Bool(false));
        state.catalog.rows(&txn).update(&row)?;
    }
    state.catalog.changed(Oid::INVALID);
    Ok(())
}

/// `CHECK (…) [NOT VALID]`, `NOT NULL`: what `pg_get_constraintdef` says of a domain's constraint.
///
/// # Errors
/// Corruption, I/O.
pub fn definition(row: &Row, pretty: bool, env: &dyn types::Env) -> Result<String> {
    if row.char("contype") == b'n' {
        return Ok("NOT NULL".to_owned());
    }
    let text = crate::deparse::expression(&*stored_expr(row.text("conbin"))?, &[], pretty, env)?;
    let text = format!("CHECK ({text})");
    Ok(if row.bool("convalidated") { text } else { text + " NOT VALID" })
}

/// The next OID pair that no type has.
fn new_oids(state: &SessionState) -> Result<(Oid, Oid)> {
    loop {
        let (oid, array) = types::domains::type_oids(state.cluster.engine().files.new_oid());
        if type_row(state, oid)?.is_none() && type_row(state, array)?.is_none() {
            return Ok((oid, array));
        }
    }
}

/// What a domain may be over.
fn check_base(name: &str, ty: TypeRef) -> Result<()> {
    match types::type_info(ty.oid) {
        None => Err(Error::unsupported("a domain over a composite type")),
        Some(t) if t.kind == 'c' => Err(Error::unsupported("a domain over a composite type")),
        Some(t) if t.kind == 'p' => {
            bail!(DATATYPE_MISMATCH, "\"{name}\" is not a valid base type for a domain")
        }
        Some(_) if is_domain_array(ty.oid) => {
            Err(Error::unsupported("a domain over an array of a domain"))
        }
        Some(_) => Ok(()),
    }
}

/// A column of a domain, of one over it, or of an array of either.
struct Use {
    table: Arc<Table>,
    column: Column,
}

/// What CREATE DOMAIN says besides the type.
#[derive(Default)]
struct Said<'a> {
    default: Option<&'a AstExpr>,
    not_null: Option<(bool, Option<&'a str>)>,
    checks: Vec<(Option<&'a str>, &'a AstExpr)>,
}

fn said<'s>(statement: &'s CreateDomain, source: &str) -> Result<Said<'s>> {
    let mut said = Said::default();
    for c in &statement.column.constraints {
        said.add(c).map_err(|e| crate::parse::error_at(source, e, c.loc))?;
    }
    Ok(said)
}

impl<'s> Said<'s> {
    fn add(&mut self, c: &'s ColumnConstraint) -> Result<()> {
        let said = self;

        let name = c.name.as_deref();
        match &c.kind {
            C::Default(_) if said.default.is_some() => {
                bail!(SYNTAX_ERROR, "multiple default expressions")
            }
            C::Default(e) => said.default = Some(e),
            C::NotNull if c.timing.no_inherit => bail!(
                INVALID_OBJECT_DEFINITION,
                "not-null constraints for domains cannot be marked NO INHERIT"
            ),
            C::NotNull | C::Null => {
                let wanted = matches!(c.kind, C::NotNull);
                match said.not_null {
                    Some((before, _)) if before != wanted => {
                        bail!(SYNTAX_ERROR, "conflicting NULL/NOT NULL constraints")
                    }
                    Some((true, _)) => {
                        bail!(SYNTAX_ERROR, "redundant NOT NULL constraint definition")
                    }
                    _ => said.not_null = Some((wanted, name)),
                }
            }
            C::Check(_) if c.timing.no_inherit => bail!(
                INVALID_OBJECT_DEFINITION,
                "check constraints for domains cannot be marked NO INHERIT"
            ),
            C::Check(_) if c.timing.not_enforced => bail!(
                INVALID_OBJECT_DEFINITION,
                "specifying constraint enforceability not supported for domains"
            ),
            C::Check(e) => said.checks.push((name, e)),
            C::Unique(_) => bail!(SYNTAX_ERROR, "unique constraints not possible for domains"),
            C::PrimaryKey(_) => {
                bail!(SYNTAX_ERROR, "primary key constraints not possible for domains")
            }
            C::References(_) => {
                bail!(SYNTAX_ERROR, "foreign key constraints not possible for domains")
            }
            C::Generated { .. } | C::Identity { .. } => {
                bail!(SYNTAX_ERROR, "specifying GENERATED not supported for domains")
            }
        }
        Ok(())
    }
}

/// `pg_type`'s columns that a domain has from its base.
fn domain_row(oid: Oid, of: &facts::TypeInfo, base: &Row) -> NewRow {
    NewRow::of("pg_type")
        .oid("oid", oid)
        .int("typlen", i64::from(of.len))
        .bool("typbyval", of.by_value)
        .char("typtype", b'd')
        .char("typcategory", of.category as u8)
        .bool("typisdefined", true)
        .char("typdelim", of.delimiter as u8)
        .oid("typinput", function_oid("domain_in"))
        .oid("typoutput", base.oid("typoutput"))
        .oid("typreceive", function_oid("domain_recv"))
        .oid("typsend", base.oid("typsend"))
        .oid("typanalyze", base.oid("typanalyze"))
        .char("typalign", of.align as u8)
        .char("typstorage", of.storage as u8)
}

/// Is the type a domain over `below`, or the array type of it? A type whose default only mentions it is not.
fn is_directly_over(ty: Oid, below: Oid) -> bool {
    let is_domain_over = || types::type_info(ty).is_some_and(|i| i.base_type == below);
    if is_domain_array(ty) { ty.0 - 1 == below.0 } else { is_domain(ty) && is_domain_over() }
}

impl Ddl<'_> {
    /// CREATE DOMAIN
    ///
    /// # Errors
    /// `42710`, `42804`, `42601`, `3F000`, `42501`; what its default and conditions raise; I/O.
    pub fn create_domain(&mut self, statement: &CreateDomain) -> Result<()> {
        let name = &statement.name;
        let namespace = self.creation_namespace(name, false)?;
        let state = self.state();
        // A temporary schema is emptied of relations when its session ends.
        if namespace == state.temp_schema.get() {
            return Err(Error::unsupported("a temporary domain"));
        }
        free_type_name(state, namespace, &name.name)?;
        let env = std::rc::Rc::clone(self.session.env());
        let ty = &statement.column.ty;
        let below = analyse::resolve_type_name(ty, &self.source, state, env.as_ref())?;
        if types::left_out::is_left_out(below.oid) {
            return Err(Error::unsupported(format!("type {}", format_type(below.oid, -1))));
        }
        check_base(ty.names.last().map_or("", String::as_str), below)
            .map_err(|e| crate::parse::error_at(&self.source, e, statement.column.loc))?;
        let said = said(statement, &self.source)?;
        let (Some(of), Some(base)) = (types::type_info(below.oid), type_row(state, below.oid)?)
        else {
            bail!(UNDEFINED_OBJECT, "type \"{}\" does not exist", format_type(below.oid, -1));
        };
        let collation = match &statement.column.collation {
            Some(names) => super::table::column_collation(names, below.oid)
                .map_err(|e| crate::parse::error_at(&self.source, e, statement.column.loc))?,
            None => base.oid("typcollation"),
        };
        let owner = state.current_user.borrow().oid;
        let (oid, array) = new_oids(state)?;
        let array_name = array_name(state, namespace, &name.name)?;
        let has_array = of.array.is_valid() && !of.is_array();
        types::domains::learn(oid, &name.name, &array_name, below.oid, below.typmod);
        let row = domain_row(oid, of, &base)
            .text("typname", &name.name)
            .oid("typnamespace", namespace)
            .oid("typowner", owner)
            .set("typacl", default_acl::of_new(state, Made::Type, owner, namespace)?)
            .oid("typarray", if has_array { array } else { Oid::INVALID })
            .oid("typbasetype", below.oid)
            .int("typtypmod", i64::from(below.typmod))
            .int("typndims", i64::try_from(ty.array_dims).unwrap_or(0))
            .oid("typcollation", collation);
        // The default of the domain below is this one's too.
        let row = match base.text_opt("typdefaultbin") {
            Some(default) if is_domain(below.oid) && said.default.is_none() => row
                .text("typdefaultbin", default)
                .text("typdefault", base.text_opt("typdefault").unwrap_or_default()),
            _ => row,
        };
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        rows.insert(&row)?;
        let object = Object::of("pg_type", oid);
        if has_array {
            let row = array_row(array, &array_name, namespace, owner, oid)
                .char("typalign", if of.align == 'd' { b'd' } else { b'i' })
                .char("typdelim", of.delimiter as u8)
                .oid("typcollation", collation);
            rows.insert(&row)?;
            depend::record(state, Object::of("pg_type", array), object, Kind::Internal)?;
        }
        depend::record(state, object, Object::of("pg_namespace", namespace), Kind::Normal)?;
        depend::record_type(state, object, below.oid)?;
        drop(txn);
        state.catalog.changed(oid);
        if let Some(default) = said.default {
            self.set_domain_default(oid, Some(default))?;
        }
        if let Some((true, constraint)) = said.not_null {
            self.add_domain_not_null(oid, constraint)?;
        }
        for (constraint, condition) in said.checks {
            self.add_domain_check(oid, constraint, condition, false)?;
        }
        Ok(())
    }

    /// Fails if a type of that name is there and is no domain.
    ///
    /// # Errors
    /// `42809`; I/O.
    pub(super) fn check_is_domain(&self, name: &ObjectName) -> Result<()> {
        match self.find_type(name)? {
            Some(row) if row.char("typtype") != b'd' => {
                bail!(WRONG_OBJECT_TYPE, "{} is not a domain", self.type_text(&row))
            }
            _ => Ok(()),
        }
    }

    fn domain_row(&self, domain: Oid) -> Result<Row> {
        match type_row(self.state(), domain)? {
            Some(row) => Ok(row),
            None => bail!(UNDEFINED_OBJECT, "type \"{}\" does not exist", format_type(domain, -1)),
        }
    }

    fn update_domain(&self, row: &Row) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(row)?;
        // Descriptions of tables hold its default, and what may be NULL is cached by its OID.
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// DEFAULT of a domain, or none.
    fn set_domain_default(&mut self, domain: Oid, default: Option<&AstExpr>) -> Result<()> {
        let mut row = self.domain_row(domain)?;
        let (below, typmod) = (row.oid("typbasetype"), row.i32("typtypmod"));
        let object = Object::of("pg_type", domain);
        let analysed = match default {
            None => None,
            Some(e) => {
                let env = self.session.env().as_ref();
                // A domain below is asked when a value of this one is made.
                let ty = TypeRef { oid: below, typmod }.base();
                let name = row.text("typname");
                Some(analyse::analyse_default(e, name, ty, &self.source, self.state(), env)?)
            }
        };
        // DEFAULT NULL is none, but hides that of the domain below.
        let analysed = analysed.filter(|e| !super::relation::is_no_default(e));
        match &analysed {
            Some(e) => {
                let text = crate::deparse::expression(e, &[], false, self.session.env().as_ref())?;
                row.set("typdefaultbin", Datum::text(store_expr(e)?));
                row.set("typdefault", Datum::text(text));
            }
            None => {
                row.set("typdefaultbin", Datum::Null);
                row.set("typdefault", Datum::Null);
            }
        }
        self.update_domain(&row)?;
        let state = self.state();
        self.forget_sequences(object)?;
        match &analysed {
            Some(e) => depend::record_expr(state, object, Oid::INVALID, e, Kind::Normal),
            None => Ok(()),
        }
    }

    /// The default that used sequences goes.
    fn forget_sequences(&self, object: Object) -> Result<()> {
        let state = self.state();
        let class = defs::by_name("pg_class").oid;
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let key = [("classid", Datum::Oid(object.class)), ("objid", Datum::Oid(object.oid))];
        for row in rows.find("pg_depend", &key)? {
            if row.oid("refclassid") == class {
                rows.delete(&row)?;
            }
        }
        Ok(())
    }

    /// A name for a constraint of the domain: the one given, unless it has that already.
    fn constraint_name(&self, row: &Row, given: Option<&str>, label: &str) -> Result<String> {
        let state = self.state();
        let Some(given) = given else {
            let (domain, namespace) = (row.text("typname"), row.oid("typnamespace"));
            return super::table::choose_name(state, domain, "", label, namespace);
        };
        let txn = state.txn()?;
        let key = [("contypid", Datum::Oid(row.oid("oid"))), ("conname", Datum::text(given))];
        if !state.catalog.rows(&txn).find("pg_constraint", &key)?.is_empty() {
            bail!(
                DUPLICATE_OBJECT,
                "constraint \"{given}\" for domain \"{}\" already exists",
                row.text("typname")
            );
        }
        Ok(given.to_owned())
    }

    fn insert_constraint(
        &self,
        row: &Row,
        name: &str,
        kind: u8,
        check: Option<&Expr>,
        not_valid: bool,
    ) -> Result<()> {
        let state = self.state();
        let oid = new_oid(state, "pg_constraint")?;
        let domain = row.oid("oid");
        let mut constraint = NewRow::of("pg_constraint")
            .oid("oid", oid)
            .text("conname", name)
            .oid("connamespace", row.oid("typnamespace"))
            .char("contype", kind)
            .bool("conenforced", true)
            .bool("convalidated", !not_valid)
            .oid("contypid", domain)
            .char("confupdtype", b' ')
            .char("confdeltype", b' ')
            .char("confmatchtype", b' ')
            .bool("conislocal", true);
        if let Some(check) = check {
            constraint = constraint.text("conbin", &store_expr(check)?);
        }
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&constraint)?;
        state.catalog.changed(Oid::INVALID);
        let object = Object::of("pg_constraint", oid);
        depend::record(state, object, Object::of("pg_type", domain), Kind::Auto)?;
        match check {
            Some(e) => depend::record_expr(state, object, Oid::INVALID, e, Kind::Normal),
            None => Ok(()),
        }
    }

    /// NOT NULL of a domain whose values nobody has, or which were looked at.
    fn add_domain_not_null(&mut self, domain: Oid, name: Option<&str>) -> Result<()> {
        let mut row = self.domain_row(domain)?;
        if row.bool("typnotnull") {
            return Ok(());
        }
        let name = self.constraint_name(&row, name, "not_null")?;
        row.set("typnotnull", Datum::Bool(true));
        self.update_domain(&row)?;
        self.insert_constraint(&row, &name, b'n', None, false)
    }

    /// CHECK of a domain; returns the condition.
    fn add_domain_check(
        &mut self,
        domain: Oid,
        name: Option<&str>,
        condition: &AstExpr,
        not_valid: bool,
    ) -> Result<Expr> {
        let row = self.domain_row(domain)?;
        let name = self.constraint_name(&row, name, "check")?;
        let ty = TypeRef { oid: row.oid("typbasetype"), typmod: row.i32("typtypmod") }.base();
        let env = self.session.env().as_ref();
        let (state, source) = (self.state(), &self.source);
        let check = analyse::analyse_domain_check(condition, ty, source, state, env)?;
        self.insert_constraint(&row, &name, b'c', Some(&check), not_valid)?;
        Ok(check)
    }

    fn find_constraint(&self, domain: Oid, name: &str) -> Result<Option<Row>> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("contypid", Datum::Oid(domain)), ("conname", Datum::text(name))];
        Ok(state.catalog.rows(&txn).find("pg_constraint", &key)?.into_iter().next())
    }

    /// The constraint of a domain with that name.
    ///
    /// # Errors
    /// `42704`; I/O.
    pub(super) fn domain_constraint(
        &self,
        domain: Oid,
        of: &ObjectName,
        name: &str,
    ) -> Result<Row> {
        match self.find_constraint(domain, name)? {
            Some(row) => Ok(row),
            None => {
                bail!(UNDEFINED_OBJECT, "constraint \"{name}\" for domain {of} does not exist")
            }
        }
    }

    /// ALTER DOMAIN … RENAME CONSTRAINT
    pub(super) fn rename_domain_constraint(
        &mut self,
        name: &ObjectName,
        old: &str,
        new: &str,
    ) -> Result<()> {
        let domain = self.type_to_alter(name, LockMode::AccessExclusive)?;
        let mut row = self.domain_constraint(domain.oid("oid"), name, old)?;
        let new = self.constraint_name(&domain, Some(new), "")?;
        row.set("conname", Datum::text(new));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// ALTER DOMAIN
    ///
    /// # Errors
    /// `42704`, `42809`, `42710`, `42501`; `23514`, `23502` when rows violate what is new; I/O.
    pub fn alter_domain(&mut self, statement: &AlterDomain) -> Result<()> {
        let name = &statement.name;
        self.check_is_domain(name)?;
        let row = self.type_to_alter(name, LockMode::AccessExclusive)?;
        let domain = row.oid("oid");
        match &statement.action {
            AlterDomainAction::Default(default) => {
                self.set_domain_default(domain, default.as_ref())
            }
            AlterDomainAction::NotNull(true) => self.set_not_null(&row, None),
            AlterDomainAction::NotNull(false) => {
                let state = self.state();
                let txn = state.txn()?;
                let key = [("contypid", Datum::Oid(domain))];
                let found = state.catalog.rows(&txn).find("pg_constraint", &key)?;
                match found.iter().find(|c| c.char("contype") == b'n') {
                    Some(c) => self.drop_domain_constraint(c, false),
                    None => Ok(()),
                }
            }
            AlterDomainAction::Add { name, kind: C::Check(condition), not_valid } => {
                let check =
                    self.add_domain_check(domain, name.as_deref(), condition, *not_valid)?;
                if *not_valid { Ok(()) } else { self.verify_domain_check(&row, &check) }
            }
            AlterDomainAction::Add { name, .. } => self.set_not_null(&row, name.as_deref()),
            AlterDomainAction::Drop { if_exists, name: constraint, cascade } => {
                let of = row.text("typname");
                match self.find_constraint(domain, constraint)? {
                    Some(c) => self.drop_domain_constraint(&c, *cascade),
                    None if *if_exists => self.notice(
                        SqlState::SUCCESSFUL_COMPLETION,
                        format!(
                            "constraint \"{constraint}\" of domain \"{of}\" does not exist, skipping"
                        ),
                    ),
                    None => bail!(
                        UNDEFINED_OBJECT,
                        "constraint \"{constraint}\" of domain \"{of}\" does not exist"
                    ),
                }
            }
            AlterDomainAction::Validate(constraint) => self.validate_domain(&row, constraint),
        }
    }

    fn drop_domain_constraint(&mut self, constraint: &Row, cascade: bool) -> Result<()> {
        let object = Object::of("pg_constraint", constraint.oid("oid"));
        for notice in drop_objects(self.state(), &[object], cascade)? {
            self.client.notice(&notice)?;
        }
        Ok(())
    }

    fn set_not_null(&mut self, row: &Row, name: Option<&str>) -> Result<()> {
        if row.bool("typnotnull") {
            return Ok(());
        }
        self.add_domain_not_null(row.oid("oid"), name)?;
        for Use { table, column } in self.domain_uses(row)? {
            let relation = crate::system::names::relation_name(self.state(), &table);
            let quoted = crate::system::names::quote_identifier(&column.name);
            let sql = format!("SELECT 1 FROM ONLY {relation} WHERE {quoted} IS NULL LIMIT 1");
            if self.session.internal_query(&sql, &[])?.is_empty() {
                continue;
            }
            let text = format!(
                "column \"{}\" of table \"{}\" contains null values",
                column.name, table.name
            );
            return Err(SqlError::new(SqlState::NOT_NULL_VIOLATION, text)
                .table(&table.namespace_name, &table.name)
                .column(&column.name)
                .into());
        }
        Ok(())
    }

    fn validate_domain(&mut self, row: &Row, constraint: &str) -> Result<()> {
        let of = row.text("typname");
        let Some(mut found) = self.find_constraint(row.oid("oid"), constraint)? else {
            bail!(
                UNDEFINED_OBJECT,
                "constraint \"{constraint}\" of domain \"{of}\" does not exist"
            );
        };
        if found.char("contype") != b'c' {
            bail!(
                WRONG_OBJECT_TYPE,
                "constraint \"{constraint}\" of domain \"{of}\" is not a check constraint"
            );
        }
        self.verify_domain_check(row, &*stored_expr(found.text("conbin"))?)?;
        found.set("convalidated", Datum::Bool(true));
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&found)?;
        state.catalog.changed(Oid::INVALID);
        Ok(())
    }

    /// Looks for a value of the domain that violates a condition of it.
    fn verify_domain_check(&mut self, row: &Row, check: &Expr) -> Result<()> {
        for Use { table, column } in self.domain_uses(row)? {
            let env = self.session.env().as_ref();
            let text =
                crate::deparse::expression(check, std::slice::from_ref(&column.name), false, env)?;
            let relation = crate::system::names::relation_name(self.state(), &table);
            let sql = format!("SELECT 1 FROM ONLY {relation} WHERE NOT ({text}) LIMIT 1");
            if self.session.internal_query(&sql, &[])?.is_empty() {
                continue;
            }
            let text = format!(
                "column \"{}\" of table \"{}\" contains values that violate the new constraint",
                column.name, table.name
            );
            return Err(SqlError::new(SqlState::CHECK_VIOLATION, text)
                .table(&table.namespace_name, &table.name)
                .column(&column.name)
                .into());
        }
        Ok(())
    }

    /// The stored columns of a domain and of those over it, their tables locked against writers.
    ///
    /// # Errors
    /// `0A000` when there is a column of an array of one of them, or of rows with one of them; I/O.
    fn domain_uses(&self, row: &Row) -> Result<Vec<Use>> {
        let mut uses = Vec::new();
        let mut next = vec![row.oid("oid")];
        let class = |name: &str| defs::by_name(name).oid;
        while let Some(ty) = next.pop() {
            let state = self.state();
            let txn = state.txn()?;
            let key = [("refclassid", Datum::Oid(class("pg_type"))), ("refobjid", Datum::Oid(ty))];
            for depend in state.catalog.rows(&txn).find("pg_depend", &key)? {
                let (of, object) = (depend.oid("classid"), depend.oid("objid"));
                if of == class("pg_type") && is_directly_over(object, ty) {
                    next.push(object);
                }
                if of != class("pg_class") || depend.i32("objsubid") == 0 {
                    continue;
                }
                crate::relations::lock(state, object, LockMode::Share)?;
                let Some(table) = state.catalog.table(&txn, object)? else { continue };
                let wanted = |c: &&Column| c.number == depend.i32("objsubid") && c.declared == ty;
                let Some(column) = table.columns.iter().find(wanted).cloned() else { continue };
                let stored =
                    matches!(table.kind, RelationKind::Table | RelationKind::MaterializedView);
                if !stored && table.kind != RelationKind::Composite {
                    continue;
                }
                let within = match stored && is_domain_array(ty) {
                    true => Some((Arc::clone(&table), column.name.clone())),
                    false => self.row_type_user(&table)?,
                };
                if let Some((table, column)) = within {
                    bail!(
                        FEATURE_NOT_SUPPORTED,
                        "cannot alter type \"{}\" because column \"{}.{column}\" uses it",
                        row.text("typname"),
                        table.name
                    );
                }
                if stored {
                    uses.push(Use { table, column });
                }
            }
        }
        uses.sort_by_key(|u| (u.table.oid, u.column.number));
        Ok(uses)
    }
}
