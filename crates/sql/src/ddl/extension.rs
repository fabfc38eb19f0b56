//! CREATE, ALTER and DROP EXTENSION: the built-in extensions' rows and views.
//!
//! # Differs from PostgreSQL
//! An extension is its row in `pg_extension`, which makes its functions callable, rows in `pg_proc` that tell of them, and a view if it
//! has one. There is one version of each, and ALTER EXTENSION has UPDATE only.

use super::depend::{Kind, Object};
use super::{Ddl, new_oid};
use crate::acl;
use crate::parse::Statement;
use crate::parse::utility::{Drop, UtilityOption, UtilityStatement};
use crate::session::SessionState;
use crate::system::extensions;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::{NewRow, Row, oid_array, text_array};
use std::sync::Arc;
use types::{Datum, quote_ident};

fn row(state: &SessionState, name: &str) -> Result<Option<Row>> {
    let txn = state.txn()?;
    let key = [("extname", Datum::text(name))];
    Ok(state.catalog.rows(&txn).find("pg_extension", &key)?.into_iter().next())
}

pub(super) fn check_owner(state: &SessionState, found: &Row, name: &str) -> Result<()> {
    let me = state.current_user.borrow().oid;
    if !state.is_superuser() && !acl::roles_of(state, me)?.contains(&found.oid("extowner")) {
        bail!(INSUFFICIENT_PRIVILEGE, "must be owner of extension {name}");
    }
    Ok(())
}

/// What could be a version's name at all.
fn check_version_name(name: &str) -> Result<()> {
    let why = if name.is_empty() {
        "Version names must not be empty."
    } else if name.contains("--") {
        "Version names must not contain \"--\"."
    } else if name.starts_with('-') || name.ends_with('-') {
        "Version names must not begin or end with \"-\"."
    } else if name.contains('/') {
        "Version names must not contain directory separator characters."
    } else {
        return Ok(());
    };
    let text = format!("invalid extension version name: \"{name}\"");
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text).detail(why).into())
}

/// Is the extension there?
///
/// # Errors
/// I/O.
pub fn is_installed(state: &SessionState, name: &str) -> Result<bool> {
    Ok(row(state, name)?.is_some())
}

impl Ddl<'_> {
    /// CREATE EXTENSION
    ///
    /// # Errors
    /// `42710`, `0A000` for others than those that are built in, `22023` for another version; `3F000`, `42501`
    pub fn create_extension(
        &mut self,
        if_not_exists: bool,
        name: &str,
        options: &[UtilityOption],
    ) -> Result<()> {
        if row(self.state(), name)?.is_some() {
            if if_not_exists {
                return self.notice(
                    SqlState::DUPLICATE_OBJECT,
                    format!("extension \"{name}\" already exists, skipping"),
                );
            }
            bail!(DUPLICATE_OBJECT, "extension \"{name}\" already exists");
        }
        let (mut version, mut schema) = (None, None);
        for option in options {
            match option.name.as_str() {
                "version" => version = Some(option.string()?),
                "schema" => schema = Some(option.string()?),
                "cascade" => {}
                other => bail!(SYNTAX_ERROR, "option \"{other}\" not recognized"),
            }
        }
        let Some(extension) = extensions::by_name(name) else {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("extension \"{name}\" is not available"),
            )
            .hint(
                "The extension must first be installed on the system where PostgreSQL is running.",
            )
            .into());
        };
        let state = self.state();
        if !state.is_superuser() {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied to create extension \"{name}\""),
            )
            .hint("Must be superuser to create this extension.")
            .into());
        }
        if let Some(version) = version.filter(|v| v != extension.version) {
            bail!(
                INVALID_PARAMETER_VALUE,
                "extension \"{name}\" has no installation script nor update path for version \"{version}\""
            );
        }
        let (schema, namespace) = match schema {
            None => state.creation_schema()?,
            Some(schema) => match state.schema_by_name(&schema)? {
                Some(oid) => (schema, oid),
                None => bail!(INVALID_SCHEMA_NAME, "schema \"{schema}\" does not exist"),
            },
        };
        let oid = new_oid(state, "pg_extension")?;
        let new = NewRow::of("pg_extension")
            .oid("oid", oid)
            .text("extname", name)
            .oid("extowner", state.current_user.borrow().oid)
            .oid("extnamespace", namespace)
            .bool("extrelocatable", true)
            .text("extversion", extension.version);
        {
            let txn = state.txn()?;
            state.catalog.rows(&txn).insert(&new)?;
            for function in extension.signatures() {
                state.catalog.rows(&txn).insert(&function_row(state, &function, namespace))?;
                let of = Object::of("pg_proc", function.oid);
                super::depend::record(state, of, Object::of("pg_extension", oid), Kind::Extension)?;
            }
            txn.advance_command()?;
        }
        self.set_comment(Object::of("pg_extension", oid), false, Some(extension.comment))?;
        if name == crate::statements::EXTENSION {
            let state = self.state();
            state.cluster.statements.found_in(state.database.oid, true);
        }
        for (view, query) in extension.views {
            self.extension_view(&schema, view, query)?;
            self.let_read(&schema, view, extension.view_readers)?;
        }
        Ok(())
    }

    /// ALTER EXTENSION … UPDATE: each has one version, which is the one that is there.
    ///
    /// # Errors
    /// `42704`, `42501`; `22023` for another version.
    pub fn update_extension(&mut self, name: &str, version: Option<&str>) -> Result<()> {
        let Some(found) = row(self.state(), name)? else {
            bail!(UNDEFINED_OBJECT, "extension \"{name}\" does not exist");
        };
        check_owner(self.state(), &found, name)?;
        let present = found.text("extversion").to_owned();
        let default = extensions::by_name(name).map_or(present.as_str(), |e| e.version);
        let version = version.unwrap_or(default);
        check_version_name(version)?;
        if version != present {
            bail!(
                INVALID_PARAMETER_VALUE,
                "extension \"{name}\" has no update path from version \"{present}\" to version \"{version}\""
            );
        }
        self.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            format!("version \"{version}\" of extension \"{name}\" is already installed"),
        )
    }

    /// Lets roles read the view of an extension.
    fn let_read(&mut self, schema: &str, name: &str, readers: &[&str]) -> Result<()> {
        let state = self.state();
        state.txn()?.advance_command()?;
        let Some(view) = state.table_by_name(Some(schema), name)? else { return Ok(()) };
        let owner = state.current_user.borrow().name.clone();
        let item = |grantee: &str, privileges| {
            let (grantee, grantor) = (grantee.to_owned(), owner.clone());
            acl::AclItem { grantee, privileges, grantable: 0, grantor }.to_text()
        };
        let mut items = vec![item(&owner, acl::ALL_OF_TABLE)];
        items.extend(readers.iter().map(|reader| item(reader, acl::SELECT)));
        super::relation::update_class(state, view.oid, |row| {
            row.set("relacl", text_array(&items));
        })
    }

    /// The view that an extension brings.
    fn extension_view(&mut self, schema: &str, name: &str, query: &str) -> Result<()> {
        let text = format!("CREATE VIEW {}.{} AS {query}", quote_ident(schema), quote_ident(name));
        let mut parsed = crate::parse::parse(&text)?;
        let Some(Statement::Utility(statement)) = parsed.pop().map(|p| p.statement) else {
            bail!(INTERNAL_ERROR, "not a view: {text}");
        };
        let UtilityStatement::CreateView(view) = *statement else {
            bail!(INTERNAL_ERROR, "not a view: {text}");
        };
        self.create_view(&view)
    }

    /// DROP EXTENSION
    ///
    /// # Errors
    /// `42704`, `42501`; `2BP01` when something needs its view.
    pub fn drop_extension(&mut self, statement: &Drop) -> Result<()> {
        for name in &statement.names {
            let name = &name.name;
            let Some(found) = row(self.state(), name)? else {
                if !statement.if_exists {
                    bail!(UNDEFINED_OBJECT, "extension \"{name}\" does not exist");
                }
                self.notice(
                    SqlState::SUCCESSFUL_COMPLETION,
                    format!("extension \"{name}\" does not exist, skipping"),
                )?;
                continue;
            };
            let state = self.state();
            check_owner(state, &found, name)?;
            let object = Object::of("pg_extension", found.oid("oid"));
            self.drop_unused(&[object], statement.cascade)?;
        }
        Ok(())
    }
}

/// The views that an extension has brought.
///
/// # Errors
/// I/O.
pub(super) fn views(state: &SessionState, extension: Oid) -> Result<Vec<Object>> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn).find("pg_extension", &[("oid", Datum::Oid(extension))])?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let brought = extensions::by_name(row.text("extname")).map_or(&[][..], |e| e.views);
    let mut views = Vec::new();
    for (view, _) in brought {
        let found = state.catalog.relation_oid(&txn, row.oid("extnamespace"), view)?;
        views.extend(found.map(Object::relation));
    }
    Ok(views)
}

/// A function's row in `pg_proc`.
fn function_row(state: &SessionState, of: &extensions::Signature, namespace: Oid) -> NewRow {
    const C: Oid = Oid(13);
    let row = NewRow::of("pg_proc")
        .oid("oid", of.oid)
        .text("proname", of.name)
        .oid("pronamespace", namespace)
        .oid("proowner", state.current_user.borrow().oid)
        .oid("prolang", C)
        .set("procost", Datum::Float4(1.0))
        .set("prorows", Datum::Float4(if of.returns_set { 1000.0 } else { 0.0 }))
        .char("prokind", b'f')
        .bool("proisstrict", extensions::is_strict(of.name))
        .bool("proretset", of.returns_set)
        .char("provolatile", b'v')
        .char("proparallel", b'u')
        .int("pronargs", i64::try_from(of.args.len()).unwrap_or(0))
        .oid("prorettype", of.result)
        .set("proargtypes", oid_array(of.args))
        .text("prosrc", of.name);
    let input_names = || (0..of.args.len()).map(|i| of.names.get(i).copied().unwrap_or(""));
    if of.columns.is_empty() {
        let names: Vec<&str> = input_names().collect();
        return if of.names.is_empty() { row } else { row.set("proargnames", text_array(&names)) };
    }
    let outputs = || of.columns.iter();
    let all: Vec<Oid> = of.args.iter().copied().chain(outputs().map(|(_, ty)| *ty)).collect();
    let modes = of.args.iter().map(|_| b'i').chain(outputs().map(|_| b'o'));
    let modes = modes.map(Datum::Char).collect();
    let names: Vec<&str> = input_names().chain(outputs().map(|(n, _)| *n)).collect();
    row.set("proallargtypes", oid_array(&all))
        .set(
            "proargmodes",
            Datum::Array(Arc::new(types::ArrayValue::one_dimension(types::oids::CHAR, modes))),
        )
        .set("proargnames", text_array(&names))
}

/// The extension's function, if it may be called by name now.
///
/// # Errors
/// I/O.
pub fn is_visible(state: &SessionState, function: Oid) -> Result<bool> {
    match extensions::of_function(function) {
        Some(extension) => is_installed(state, extension.name),
        None => Ok(true),
    }
}
