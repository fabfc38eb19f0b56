//! Roles: CREATE, ALTER, DROP, membership, and their settings.

use super::membership::MemberOptions;
use super::{Ddl, new_oid};
use crate::client::{Notice, Severity};
use crate::parse::utility::{OptionValue, RoleName, SettingChange, UtilityOption};
use crate::scram::Verifier;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER;
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::options::RelationOptions;
use engine::catalog::rows::{NewRow, Row, options_array};
use txn::{LockMode, Wait};
use types::Datum;

/// What the options of CREATE and ALTER ROLE come to.
#[derive(Default)]
struct RoleOptions {
    columns: Vec<(&'static str, Datum)>,
    in_roles: Vec<String>,
    members: Vec<String>,
    admins: Vec<String>,
}

fn list(value: Option<&OptionValue>) -> Vec<String> {
    match value {
        Some(OptionValue::List(names)) => names.clone(),
        Some(other) => vec![other.text()],
        None => Vec::new(),
    }
}

/// What PostgreSQL keeps of a verifier at most.
const VERIFIER_MAX: usize = 512;

/// What is kept of a password: a verifier that is of no empty one.
fn password(state: &SessionState, text: &str) -> Result<Option<String>> {
    let verifier = match Verifier::parse(text) {
        // From elsewhere, kept as it is.
        Some(v) => (!v.accepts("")).then(|| text.to_owned()),
        None if text.is_empty() => None,
        None => {
            let rounds = state.settings.borrow().int("scram_iterations");
            let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
            Some(Verifier::new(text, rounds).to_text())
        }
    };
    if verifier.as_ref().is_some_and(|v| v.len() > VERIFIER_MAX) {
        return Err(base::SqlError::new(
            base::SqlState::PROGRAM_LIMIT_EXCEEDED,
            "encrypted password is too long",
        )
        .detail(format!("Encrypted passwords must be no longer than {VERIFIER_MAX} bytes."))
        .into());
    }
    Ok(verifier)
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        return Err(SqlError::new(
            SqlState::RESERVED_NAME,
            format!("role name \"{name}\" is reserved"),
        )
        .detail("Role names starting with \"pg_\" are reserved.")
        .into());
    }
    if matches!(name, "public" | "none") {
        bail!(RESERVED_NAME, "role name \"{name}\" is reserved");
    }
    Ok(())
}

/// Roles were changed: others too are to look again what they may do, in whatever database.
pub(super) fn roles_changed(state: &SessionState) {
    state.catalog.changed(Oid::INVALID);
    state.roles_changed.set(true);
    state.known_roles.take();
}

/// The roles that are there from the beginning stay what they are.
fn refuse_reserved(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    let text = format!("role name \"{name}\" is reserved");
    Err(SqlError::new(SqlState::RESERVED_NAME, text).detail("Cannot alter reserved roles.").into())
}

/// `createrole_self_grant`: what who makes a role without being a superuser gets of it besides; None: nothing.
fn self_grant(state: &SessionState) -> Option<MemberOptions> {
    let text = state.settings.borrow().text("createrole_self_grant").to_ascii_lowercase();
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
    let has = |word| Some(words.contains(&word));
    let said = MemberOptions { admin: Some(false), inherit: has("inherit"), set: has("set") };
    (!words.is_empty()).then_some(said)
}

pub(super) fn denied(what: &str, why: &str) -> base::Error {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, format!("permission denied to {what}"))
        .detail(why)
        .into()
}

impl Ddl<'_> {
    fn role_options(&mut self, options: &[UtilityOption], altered: bool) -> Result<RoleOptions> {
        let mut out = RoleOptions::default();
        let mut seen: Vec<&str> = Vec::new();
        for option in options {
            let name = option.name.as_str();
            let (positive, plain) = match name.strip_prefix("no") {
                Some(rest) if rest != "ne" => (false, rest),
                _ => (true, name),
            };
            if seen.contains(&plain) {
                return Err(crate::parse::error_at(
                    &self.source,
                    base::err!(SYNTAX_ERROR, "conflicting or redundant options"),
                    option.loc,
                ));
            }
            seen.push(plain);
            let flag = Datum::Bool(positive);
            match plain {
                "superuser" | "replication" | "bypassrls" | "createdb" => {
                    let column = match plain {
                        "superuser" => "rolsuper",
                        "replication" => "rolreplication",
                        "createdb" => "rolcreatedb",
                        _ => "rolbypassrls",
                    };
                    // What one has not oneself one gives nobody, nor takes it from anybody.
                    if (positive || altered) && !self.has_attribute(column)? {
                        let what = plain.to_uppercase();
                        return Err(if altered {
                            denied(
                                "alter role",
                                &format!(
                                    "Only roles with the {what} attribute may change the {what} attribute."
                                ),
                            )
                        } else {
                            denied(
                                "create role",
                                &format!(
                                    "Only roles with the {what} attribute may create roles with the {what} attribute."
                                ),
                            )
                        });
                    }
                    out.columns.push((column, flag));
                }
                "createrole" => out.columns.push(("rolcreaterole", flag)),
                "inherit" => out.columns.push(("rolinherit", flag)),
                "login" => out.columns.push(("rolcanlogin", flag)),
                "connection_limit" => {
                    let n = option.integer()?;
                    if n < -1 {
                        bail!(INVALID_PARAMETER_VALUE, "invalid connection limit: {n}");
                    }
                    let n = i32::try_from(n).unwrap_or(-1);
                    out.columns.push(("rolconnlimit", Datum::Int4(n)));
                }
                "password" => {
                    let given = option.value.as_ref().map(OptionValue::text);
                    let kept = match &given {
                        Some(text) => password(self.state(), text)?,
                        None => None,
                    };
                    if given.is_some() && kept.is_none() {
                        let text = "empty string is not a valid password, clearing password";
                        self.client.notice(&Notice::new(Severity::Notice, text.to_owned()))?;
                    }
                    out.columns.push(("rolpassword", kept.map_or(Datum::Null, Datum::text)));
                }
                "valid_until" => {
                    let env = self.session.env().as_ref();
                    let ty = types::oids::TIMESTAMPTZ;
                    let until = types::text_input(ty, -1, &option.string()?, env)?;
                    out.columns.push(("rolvaliduntil", until));
                }
                "in_role" => out.in_roles = list(option.value.as_ref()),
                "role" => out.members = list(option.value.as_ref()),
                "admin" => out.admins = list(option.value.as_ref()),
                "sysid" => {}
                other => bail!(SYNTAX_ERROR, "unrecognized role option \"{other}\""),
            }
        }
        Ok(out)
    }

    pub(super) fn role_row(&self, name: &str) -> Result<Option<Row>> {
        let state = self.state();
        let txn = state.txn()?;
        let key = [("rolname", Datum::text(name))];
        Ok(state.catalog.rows(&txn).find("pg_authid", &key)?.into_iter().next())
    }

    /// Does the current user have an attribute? A superuser has all.
    pub(super) fn has_attribute(&self, column: &str) -> Result<bool> {
        let name = self.state().current_user.borrow().name.clone();
        let row = self.role_row(&name)?;
        Ok(row.is_some_and(|r| r.bool("rolsuper") || r.bool(column)))
    }

    pub(super) fn may_create_roles(&self) -> Result<bool> {
        self.has_attribute("rolcreaterole")
    }

    /// May the current user give membership in `role` to others, by himself or by a role that he is a member of?
    pub(super) fn is_admin_of(&self, role: Oid) -> Result<bool> {
        let me = self.state().current_user.borrow().oid;
        crate::acl::is_admin_of(self.state(), me, role)
    }

    /// Does the current user create roles, and may he give this one to others?
    fn controls(&self, row: &Row) -> Result<bool> {
        Ok(self.may_create_roles()? && self.is_admin_of(row.oid("oid"))?)
    }

    /// Fails unless the current user may `verb` the role: a superuser a superuser, else who creates roles and may give this one to
    /// others.
    pub(super) fn check_controls(&self, row: &Row, verb: &str) -> Result<()> {
        if self.state().is_superuser() {
            return Ok(());
        }
        let doing = format!("{verb} role");
        if row.bool("rolsuper") {
            return Err(denied(
                &doing,
                &format!(
                    "Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute."
                ),
            ));
        }
        if self.controls(row)? {
            return Ok(());
        }
        let name = row.text("rolname");
        Err(denied(
            &doing,
            &format!(
                "Only roles with the CREATEROLE attribute and the ADMIN option on role \"{name}\" may {verb} this role."
            ),
        ))
    }

    /// CREATE ROLE
    ///
    /// # Errors
    /// `42710`, `42939`, `42501`
    pub fn create_role(
        &mut self,
        name: &str,
        login: bool,
        options: &[UtilityOption],
    ) -> Result<()> {
        if !self.may_create_roles()? {
            return Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                "permission denied to create role",
            )
            .detail("Only roles with the CREATEROLE attribute may create roles.")
            .into());
        }
        check_name(name)?;
        let options = self.role_options(options, false)?;
        for role in &options.in_roles {
            self.check_admin(self.role(&RoleName::Name(role.clone()))?, role, true)?;
        }
        if self.role_row(name)?.is_some() {
            bail!(DUPLICATE_OBJECT, "role \"{name}\" already exists");
        }
        let state = self.state();
        let oid = new_oid(state, "pg_authid")?;
        let mut row = NewRow::of("pg_authid")
            .oid("oid", oid)
            .text("rolname", name)
            .bool("rolinherit", true)
            .bool("rolcanlogin", login)
            .int("rolconnlimit", -1);
        for (column, value) in options.columns {
            row = row.set(column, value);
        }
        let txn = state.txn()?;
        state.catalog.rows(&txn).insert(&row)?;
        roles_changed(state);
        drop(txn);
        // Who makes a role may give it to others, and to himself.
        let creator = self.state().current_user.borrow().oid;
        if !self.state().is_superuser() {
            let creator_name = self.state().role_name(creator)?.unwrap_or_default();
            let admin = MemberOptions { admin: Some(true), inherit: Some(false), set: Some(false) };
            let me = [(creator, creator_name)];
            self.add_members_by_system((oid, name), &me, admin)?;
            if let Some(said) = self_grant(self.state()) {
                self.add_members((oid, name), &me, Some(creator), said)?;
            }
        }
        for role in &options.in_roles {
            let of = self.role(&RoleName::Name(role.clone()))?;
            let it = [(oid, name.to_owned())];
            self.add_members((of, role), &it, None, MemberOptions::default())?;
        }
        for (members, admin) in [(&options.members, None), (&options.admins, Some(true))] {
            let mut named = Vec::new();
            for member in members {
                named.push((self.role(&RoleName::Name(member.clone()))?, member.clone()));
            }
            if !named.is_empty() {
                let said = MemberOptions { admin, ..MemberOptions::default() };
                self.add_members((oid, name), &named, None, said)?;
            }
        }
        Ok(())
    }

    pub(super) fn role_name_of(&self, role: &RoleName) -> Result<String> {
        let oid = self.role(role)?;
        Ok(self.state().role_name(oid)?.unwrap_or_default())
    }

    /// ALTER ROLE
    ///
    /// # Errors
    /// `42704`, `42501`
    pub fn alter_role(&mut self, role: &RoleName, options: &[UtilityOption]) -> Result<()> {
        let name = self.role_name_of(role)?;
        let own_password = name == self.state().current_user.borrow().name
            && options.iter().all(|o| o.name == "password");
        let Some(mut row) = self.role_row(&name)? else {
            bail!(UNDEFINED_OBJECT, "role \"{name}\" does not exist");
        };
        refuse_reserved(&name)?;
        if !own_password {
            let only_password = !options.is_empty() && options.iter().all(|o| o.name == "password");
            if only_password && !row.bool("rolsuper") && !self.controls(&row)? {
                let why = "To change another role's password, the current user must have the CREATEROLE attribute and the ADMIN option on the role.";
                return Err(denied("alter role", why));
            }
            self.check_controls(&row, "alter")?;
        }
        let options = self.role_options(options, true)?;
        for (column, value) in options.columns {
            let ends = column == "rolsuper" && matches!(value, Datum::Bool(false));
            if ends && row.oid("oid") == BOOTSTRAP_SUPERUSER {
                let why = "The bootstrap superuser must have the SUPERUSER attribute.";
                let e = SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "permission denied to alter role",
                );
                return Err(e.detail(why).into());
            }
            row.set(column, value);
        }
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        roles_changed(state);
        Ok(())
    }

    /// Fails unless the current user may do with a role what owners do with other things.
    pub(super) fn check_role_owner(&self, role: Oid, name: &str) -> Result<()> {
        let lacks = |what: String| {
            let detail = format!("The current user must have the {what}.");
            let e = SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, "permission denied");
            Err(e.detail(detail).into())
        };
        if self.state().is_superuser() {
            return Ok(());
        }
        if self.role_row(name)?.is_some_and(|r| r.bool("rolsuper")) {
            return lacks("SUPERUSER attribute".to_owned());
        }
        if !self.may_create_roles()? {
            return lacks("CREATEROLE attribute".to_owned());
        }
        if !self.is_admin_of(role)? {
            return lacks(format!("ADMIN option on role \"{name}\""));
        }
        Ok(())
    }

    /// ALTER ROLE … SET
    ///
    /// # Errors
    /// `42704`, `22023`, `42501`
    pub fn role_setting(
        &mut self,
        role: Option<&RoleName>,
        database: Option<&str>,
        setting: &SettingChange,
    ) -> Result<()> {
        let mut role_oid = Oid::INVALID;
        if let Some(role) = role {
            role_oid = self.role(role)?;
            let name = self.role_name_of(role)?;
            refuse_reserved(&name)?;
            if role_oid != self.state().current_user.borrow().oid
                && let Some(row) = self.role_row(&name)?
            {
                self.check_controls(&row, "alter")?;
            }
            super::lock_role(self.state(), role_oid)?;
        }
        let mut database_oid = Oid::INVALID;
        if let Some(name) = database {
            database_oid = self.database_to_set(name)?;
            if role.is_none() {
                self.check_database_owner(name)?;
            }
        }
        if role.is_none() && database.is_none() && !self.state().is_superuser() {
            return Err(denied(
                "alter setting",
                "Only roles with the SUPERUSER attribute may alter settings globally.",
            ));
        }
        self.change_setting(database_oid, role_oid, setting)
    }

    /// A database, which stays while something is said of it.
    fn database_to_set(&self, name: &str) -> Result<Oid> {
        let oid = self.database_oid(name)?;
        let tag = crate::cluster::database_lock(oid);
        self.state().txn()?.lock(tag, LockMode::AccessShare, Wait::Block)?;
        // Dropped while its lock was waited for, or renamed.
        match self.database_oid(name)? == oid {
            true => Ok(oid),
            false => bail!(INVALID_CATALOG_NAME, "database \"{name}\" does not exist"),
        }
    }

    /// ALTER DATABASE … SET
    ///
    /// # Errors
    /// `3D000`, `42704`, `22023`, `42501`
    pub fn database_setting(&mut self, name: &str, setting: &SettingChange) -> Result<()> {
        let database = self.database_to_set(name)?;
        self.check_database_owner(name)?;
        self.change_setting(database, Oid::INVALID, setting)
    }

    fn change_setting(&self, database: Oid, role: Oid, setting: &SettingChange) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let key = [("setdatabase", Datum::Oid(database)), ("setrole", Datum::Oid(role))];
        let found = rows.find("pg_db_role_setting", &key)?.into_iter().next();
        let mut options = found.as_ref().map(|r| r.options("setconfig")).unwrap_or_default();
        let superuser = state.is_superuser();
        match setting {
            SettingChange::Set { name, values } => {
                let value = crate::session::setting_text(name, values);
                let kept = may_keep(name, superuser)?;
                if let Some((_, definition)) = base::settings::find(name) {
                    crate::session::check_setting(definition, &value)?;
                }
                put(&mut options, kept, value);
            }
            SettingChange::FromCurrent { name } => {
                let kept = may_keep(name, superuser)?;
                let value = state.settings.borrow().show(name)?;
                put(&mut options, kept, value);
            }
            SettingChange::SetDefault { name } | SettingChange::Reset { name } => {
                // What nothing can be called was never kept.
                let known = base::settings::find(name).is_some();
                if known || base::settings::check_custom_name(name).is_ok() {
                    may_keep(name, superuser)?;
                }
                options.retain(|n| !n.eq_ignore_ascii_case(name));
            }
            // What one may not set one does not take back either.
            SettingChange::ResetAll => {
                options.retain(|name| !superuser && may_keep(name, superuser).is_err());
            }
        }
        match (found, options.is_empty()) {
            (None, true) => {}
            (None, false) => {
                let row = NewRow::of("pg_db_role_setting")
                    .oid("setdatabase", database)
                    .oid("setrole", role)
                    .set("setconfig", options_array(&options));
                rows.insert(&row)?;
            }
            (Some(row), true) => rows.delete(&row)?,
            (Some(mut row), false) => {
                row.set("setconfig", options_array(&options));
                rows.update(&row)?;
            }
        }
        Ok(())
    }
}

/// A setting's name as it is kept for sessions to come, if one may say what it is to be. Of those that nobody has defined a superuser does: who
/// defines one later may want it to be nobody else's.
fn may_keep(name: &str, superuser: bool) -> Result<&str> {
    if let Some((_, definition)) = base::settings::find(name) {
        return base::settings::check_default(definition, superuser).map(|()| definition.name);
    }
    base::settings::check_custom_name(name)?;
    if !superuser {
        bail!(INSUFFICIENT_PRIVILEGE, "permission denied to set parameter \"{name}\"");
    }
    Ok(name)
}

/// However the name was spelled when it was set before.
fn put(options: &mut RelationOptions, name: &str, value: String) {
    options.retain(|n| n == name || !n.eq_ignore_ascii_case(name));
    options.put(name.to_owned(), value);
}
