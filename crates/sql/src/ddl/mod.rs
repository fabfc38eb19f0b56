//! Data definition: what CREATE, ALTER and DROP do to catalogs and files.
//!
//! # Where to look
//! [`relation`]: catalog rows and files of any relation. [`table`]: CREATE TABLE. [`constraint`]: checks; `key_constraint`, `foreign_key`. [`index`]: CREATE INDEX and rebuilding. [`drop`]: dependencies and removal.
//! [`truncate`], [`sequence`], [`temp`].
//!
//! # Invariants
//! Every catalog row that a statement writes, and every file it makes or removes, goes with its transaction.
//! An object's catalogs are changed under an AccessExclusive lock on it (ShareUpdateExclusive where
//! readers and writers cannot notice), and [`SessionCatalog::changed`] is told.
//!
//! [`SessionCatalog::changed`]: engine::catalog::cache::SessionCatalog::changed

pub mod alter;
mod alter_catalog;
mod alter_identity;
mod alter_kinds;
mod alter_owner;
mod alter_type;
pub mod cluster;
pub mod comment;
pub mod compact;
mod composites;
pub mod concurrently;
pub mod constraint;
pub mod create_as;
pub mod database;
pub(crate) mod default_acl;
pub mod depend;
mod dispatch;
pub mod domains;
pub mod drop;
mod drop_concurrently;
mod drop_notice;
mod drop_role;
pub mod enums;
pub mod extension;
mod field_places;
mod foreign_key;
pub mod grant;
mod grant_chain;
mod grant_columns;
pub mod index;
mod index_feed;
pub(crate) mod index_swap;
mod key_constraint;
mod like;
mod locale;
mod membership;
pub mod misc;
pub(crate) mod not_null;
mod owned;
mod refresh;
pub mod reindex;
mod reindex_catalog;
pub(crate) mod reindex_concurrently;
pub mod relation;
pub mod rename;
pub mod replica;
pub mod rewrite;
mod role;
mod row_types;
pub mod schema;
pub mod sequence;
pub(crate) mod shrink_catalog;
mod shrunk_rows;
pub mod statistics;
pub mod storage_options;
pub mod table;
pub mod temp;
mod triggers;
pub mod truncate;
pub mod view;
mod virtual_columns;

use crate::client::{Client, Notice, Severity};
use crate::parse::ast::ObjectName;
use crate::parse::utility::RoleName;
use crate::session::{Arguments, Session, SessionState};
use base::{Oid, Result, SqlError, SqlState, bail};
use depend::Object;
use engine::catalog::bootstrap;
use engine::catalog::load::RowSource;
use engine::catalog::model::{CatalogView, Table};
use std::sync::Arc;
use txn::{LockMode, LockTag, Wait};
use types::Datum;

/// What a statement of data definition works with.
pub struct Ddl<'a> {
    /// The session.
    pub session: &'a mut Session,
    /// Who is told of notices.
    pub client: &'a mut dyn Client,
    /// The statement's source, for positions.
    pub source: Arc<str>,
    /// The parameters of the query in it.
    pub arguments: Arguments<'a>,
}

impl Ddl<'_> {
    /// The session's state.
    pub fn state(&self) -> &SessionState {
        self.session.state()
    }

    /// A NOTICE with its SQLSTATE.
    ///
    /// # Errors
    /// The client is gone.
    pub fn notice(&mut self, state: SqlState, message: impl Into<String>) -> Result<()> {
        let mut notice = Notice::new(Severity::Notice, message);
        notice.body.state = state;
        self.client.notice(&notice)
    }

    /// The relation `name`, if there is one; a schema that does not exist is no relation.
    ///
    /// # Errors
    /// `0A000` for another database's; I/O.
    pub fn find(&self, name: &ObjectName) -> Result<Option<Arc<Table>>> {
        check_catalog(self.state(), name)?;
        self.state().table_by_name(name.schema.as_deref(), &name.name)
    }

    /// The relation `name`.
    ///
    /// # Errors
    /// `42P01`, `3F000`
    pub fn relation(&self, name: &ObjectName) -> Result<Arc<Table>> {
        match self.find(name)? {
            Some(table) => Ok(table),
            None => {
                self.state().check_schema_exists(name.schema.as_deref())?;
                bail!(UNDEFINED_TABLE, "relation \"{name}\" does not exist")
            }
        }
    }

    /// As [`crate::relations::lock_if_found`], of a relation that `check` looks at before it is locked, and again afterwards; it may lock
    /// what comes before it.
    ///
    /// # Errors
    /// Those of waiting; what `check` refuses.
    pub(super) fn find_locked(
        &self,
        name: &ObjectName,
        mode: LockMode,
        check: &dyn Fn(&Table) -> Result<()>,
    ) -> Result<Option<Arc<Table>>> {
        crate::relations::lock_if_found(self.state(), mode, || {
            let found = self.find(name)?;
            found.iter().try_for_each(|table| check(table))?;
            Ok(found)
        })
    }

    /// As [`Ddl::find_locked`], of a relation that must be there.
    ///
    /// # Errors
    /// `42P01`; those of waiting; what `check` refuses.
    pub(super) fn relation_locked(
        &self,
        name: &ObjectName,
        mode: LockMode,
        check: &dyn Fn(&Table) -> Result<()>,
    ) -> Result<Arc<Table>> {
        match self.find_locked(name, mode, check)? {
            Some(table) => Ok(table),
            None => self.relation(name),
        }
    }

    /// Fails if a cursor or portal of the session is under way that reads `table`, or a check of its rows waits for the transaction's end.
    ///
    /// # Errors
    /// `55006`
    pub(super) fn check_not_in_use(&self, table: &Table, what: &str) -> Result<()> {
        if self.session.reads(table.oid) {
            bail!(
                OBJECT_IN_USE,
                "cannot {what} \"{}\" because it is being used by active queries in this session",
                table.name
            );
        }
        check_no_pending_events(self.state(), table.oid, &table.name, what)
    }

    /// [`Self::creation_namespace`] of a relation, which may not stand among the catalogs.
    ///
    /// # Errors
    /// `3F000`, `42501`
    pub fn relation_namespace(&mut self, name: &ObjectName, temporary: bool) -> Result<Oid> {
        let namespace = self.creation_namespace(name, temporary)?;
        let schema = match namespace {
            bootstrap::PG_CATALOG => "pg_catalog",
            bootstrap::PG_TOAST => "pg_toast",
            _ => return Ok(namespace),
        };
        if self.state().settings.borrow().bool("allow_system_table_mods") {
            return Ok(namespace);
        }
        let what = format!("permission denied to create \"{schema}.{}\"", name.name);
        Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, what)
            .detail("System catalog modifications are currently disallowed.")
            .into())
    }

    /// Where a new relation goes: its schema's OID. The schema stays to the transaction's end.
    ///
    /// # Errors
    /// `3F000`, `42501`
    pub fn creation_namespace(&mut self, name: &ObjectName, temporary: bool) -> Result<Oid> {
        check_catalog(self.state(), name)?;
        let owner = self.state().current_user.borrow().oid;
        lock_role(self.state(), owner)?;
        let is_temporary = match name.schema.as_deref() {
            Some(schema) => temporary || schema == "pg_temp",
            None => temporary || self.state().creates_temporary()?,
        };
        if is_temporary {
            if let Some(schema) = name.schema.as_deref()
                && schema != "pg_temp"
            {
                bail!(
                    INVALID_TABLE_DEFINITION,
                    "cannot create temporary relation in non-temporary schema"
                );
            }
            self.check_may_make_temporary()?;
            return temp::namespace(self.session);
        }
        let state = self.state();
        let mut locked = None;
        loop {
            let (schema, oid) = match &name.schema {
                None => state.creation_schema()?,
                Some(schema) => match state.schema_by_name(schema)? {
                    Some(oid) => (schema.clone(), oid),
                    None => bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist"),
                },
            };
            if temp::is_temporary(&schema) && oid != state.temp_schema.get() {
                bail!(
                    INVALID_TABLE_DEFINITION,
                    "cannot create relations in temporary schemas of other sessions"
                );
            }
            check_schema_create(state, oid, &schema)?;
            if locked == Some(oid) {
                return Ok(oid);
            }
            lock_object(state, Object::of("pg_namespace", oid), LockMode::AccessShare)?;
            locked = Some(oid);
        }
    }

    /// A role's OID.
    ///
    /// # Errors
    /// `42704`
    pub fn role(&self, role: &RoleName) -> Result<Oid> {
        let state = self.state();
        match role {
            RoleName::CurrentUser => Ok(state.current_user.borrow().oid),
            RoleName::SessionUser => Ok(state.session_user.borrow().oid),
            RoleName::Public => {
                bail!(UNDEFINED_OBJECT, "role \"public\" does not exist")
            }
            RoleName::Name(name) => match state.role_by_name(name)? {
                Some(oid) => Ok(oid),
                None => bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist"),
            },
        }
    }
}

/// Fails if a check of the rows of `table` waits for the transaction's end.
///
/// # Errors
/// `55006`
fn check_no_pending_events(state: &SessionState, table: Oid, name: &str, what: &str) -> Result<()> {
    if state.deferred.borrow().checks.has_of(table)? {
        bail!(OBJECT_IN_USE, "cannot {what} \"{name}\" because it has pending trigger events");
    }
    Ok(())
}

/// Locks what is no relation to the transaction's end: AccessShare keeps it from being dropped, AccessExclusive is for who drops it.
/// What is there from the beginning is never dropped, but for `public`.
///
/// # Errors
/// `55P03`, `40P01`, `57014`.
pub(super) fn lock_object(state: &SessionState, object: Object, mode: LockMode) -> Result<()> {
    let stays = object.oid < Oid::FIRST_NORMAL && object.oid != bootstrap::PUBLIC;
    if stays && mode == LockMode::AccessShare {
        return Ok(());
    }
    state.txn()?.lock(object_tag(state, object), mode, Wait::Block).map(|_| ())
}

/// By what `object`, which is no relation, is locked.
fn object_tag(state: &SessionState, object: Object) -> LockTag {
    let shared = engine::catalog::defs::by_oid(object.class).is_some_and(|d| d.shared);
    let database = if shared { Oid::INVALID } else { state.database.oid };
    LockTag::Object { database, class: object.class, object: object.oid, sub: 0 }
}

/// Keeps a role from being dropped to the transaction's end.
///
/// # Errors
/// `42704` if it is gone; those of waiting.
pub(super) fn lock_role(state: &SessionState, role: Oid) -> Result<()> {
    lock_object(state, Object::of("pg_authid", role), LockMode::AccessShare)?;
    if role >= Oid::FIRST_NORMAL && state.role_name(role)?.is_none() {
        bail!(UNDEFINED_OBJECT, "role {role} was concurrently dropped");
    }
    Ok(())
}

/// Fails for the name of another database's.
///
/// # Errors
/// `0A000`
pub fn check_catalog(state: &SessionState, name: &ObjectName) -> Result<()> {
    match &name.catalog {
        Some(catalog) if *catalog != state.database.name => bail!(
            FEATURE_NOT_SUPPORTED,
            "cross-database references are not implemented: \"{name}\""
        ),
        _ => Ok(()),
    }
}

/// A tablespace that is named for something of this database's: there is `pg_default`, and what is shared is elsewhere.
///
/// # Errors
/// `42704`, `22023`
pub(super) fn check_tablespace(name: Option<&str>) -> Result<()> {
    match name {
        None | Some("pg_default") => Ok(()),
        Some("pg_global") => bail!(
            INVALID_PARAMETER_VALUE,
            "only shared relations can be placed in pg_global tablespace"
        ),
        Some(other) => bail!(UNDEFINED_OBJECT, "tablespace \"{other}\" does not exist"),
    }
}

/// Catalogs are no tables of the user's.
///
/// # Errors
/// `42501`
pub(super) fn refuse_catalog(table: &Table) -> Result<()> {
    if table.oid < Oid::FIRST_NORMAL {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{}\" is a system catalog", table.name);
    }
    Ok(())
}

/// CREATE on schema `oid`.
///
/// # Errors
/// `42501`
pub fn check_schema_create(state: &SessionState, oid: Oid, name: &str) -> Result<()> {
    if state.is_superuser() {
        return Ok(());
    }
    let role = state.current_user.borrow().oid;
    check_schema_create_of(state, role, oid, name)
}

/// CREATE on schema `oid` of `role`: who is to own what is in it must have been able to make it.
///
/// # Errors
/// `42501`
pub(super) fn check_schema_create_of(
    state: &SessionState,
    role: Oid,
    oid: Oid,
    name: &str,
) -> Result<()> {
    if crate::acl::is_superuser(state, role)? {
        return Ok(());
    }
    if oid < Oid::FIRST_NORMAL && name != "public" && oid != state.temp_schema.get() {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {name}");
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_namespace", &[("oid", Datum::Oid(oid))])?;
    let Some(row) = rows.first() else { return Ok(()) };
    let acl = row.texts("nspacl");
    let has = crate::acl::privileges(state, role, row.oid("nspowner"), acl.as_deref(), 0)?;
    if has & crate::acl::CREATE == 0 {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied for schema {name}");
    }
    Ok(())
}

/// An OID that catalog `catalog` does not have yet.
///
/// # Errors
/// I/O.
pub fn new_oid(state: &SessionState, catalog: &str) -> Result<Oid> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    loop {
        let oid = state.cluster.engine().files.new_oid();
        if rows.find(catalog, &[("oid", Datum::Oid(oid))])?.is_empty() {
            return Ok(oid);
        }
    }
}

/// A relation's description as this transaction sees it now.
///
/// # Errors
/// `42P01`
pub fn reload(state: &SessionState, oid: Oid) -> Result<Arc<Table>> {
    match state.table_by_oid(oid)? {
        Some(table) => Ok(table),
        None => bail!(UNDEFINED_TABLE, "relation with OID {oid} does not exist"),
    }
}
