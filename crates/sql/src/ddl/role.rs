//! Roles: CREATE, ALTER, DROP, membership, and their settings.

use super::{Ddl, new_oid};
use crate::client::{Notice, Severity};
use crate::parse::utility::{GrantRole, OptionValue, RoleName, SettingChange, UtilityOption};
use crate::scram::Verifier;
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::{NewRow, Row, options_array};
use std::collections::HashSet;
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
}

/// The roles that are there from the beginning stay what they are.
fn refuse_reserved(name: &str) -> Result<()> {
    if !name.starts_with("pg_") {
        return Ok(());
    }
    let text = format!("role name \"{name}\" is reserved");
    Err(SqlError::new(SqlState::RESERVED_NAME, text).detail("Cannot alter reserved roles.").into())
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
        let state = self.state();
        if state.is_superuser() {
            return Ok(true);
        }
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let me = state.current_user.borrow().oid;
        let (mut seen, mut todo) = (HashSet::from([me]), vec![me]);
        while let Some(member) = todo.pop() {
            for row in rows.find("pg_auth_members", &[("member", Datum::Oid(member))])? {
                let of = row.oid("roleid");
                if of == role && row.bool("admin_option") {
                    return Ok(true);
                }
                if seen.insert(of) {
                    todo.push(of);
                }
            }
        }
        Ok(false)
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
        if self.may_create_roles()? && self.is_admin_of(row.oid("oid"))? {
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
            self.check_admin(self.role(&RoleName::Name(role.clone()))?, role)?;
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
            self.add_member(name, creator, &creator_name, (Some(true), Some(false), Some(false)))?;
        }
        for role in &options.in_roles {
            self.add_member(role, oid, name, (None, None, None))?;
        }
        for (members, admin) in [(&options.members, None), (&options.admins, Some(true))] {
            for member in members {
                let member_oid = self.role(&RoleName::Name(member.clone()))?;
                self.add_member(name, member_oid, member, (admin, None, None))?;
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
            self.check_controls(&row, "alter")?;
        }
        let options = self.role_options(options, true)?;
        for (column, value) in options.columns {
            row.set(column, value);
        }
        let state = self.state();
        let txn = state.txn()?;
        state.catalog.rows(&txn).update(&row)?;
        roles_changed(state);
        Ok(())
    }

    fn add_member(
        &mut self,
        role: &str,
        member: Oid,
        member_name: &str,
        (admin, inherit, set): (Option<bool>, Option<bool>, Option<bool>),
    ) -> Result<()> {
        let oid = self.role(&RoleName::Name(role.to_owned()))?;
        let state = self.state();
        super::lock_role(state, oid)?;
        super::lock_role(state, member)?;
        if crate::acl::memberships(state, oid)?.contains(&member) {
            return Err(SqlError::new(
                SqlState(*b"0LP01"),
                format!("role \"{role}\" is a member of role \"{member_name}\""),
            )
            .into());
        }
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let key = [("roleid", Datum::Oid(oid)), ("member", Datum::Oid(member))];
        let grantor = engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER;
        if let Some(mut row) = rows.find("pg_auth_members", &key)?.into_iter().next() {
            let more = [("admin_option", admin), ("inherit_option", inherit), ("set_option", set)];
            let changed = |(option, wanted): &(&'static str, Option<bool>)| {
                wanted.filter(|w| *w != row.bool(option)).map(|w| (*option, w))
            };
            let changes: Vec<_> = more.iter().filter_map(changed).collect();
            if changes.is_empty() {
                let by = state.role_name(row.oid("grantor"))?.unwrap_or_default();
                let text = format!(
                    "role \"{member_name}\" has already been granted membership in role \"{role}\" by role \"{by}\""
                );
                drop(rows);
                drop(txn);
                return self.notice(SqlState::SUCCESSFUL_COMPLETION, text);
            }
            for (option, wanted) in changes {
                row.set(option, Datum::Bool(wanted));
            }
            rows.update(&row)?;
        } else {
            // NOINHERIT is said of the member, once for all.
            let inherit = match inherit {
                Some(inherit) => inherit,
                None => {
                    let found = rows.find("pg_authid", &[("oid", Datum::Oid(member))])?;
                    found.first().is_none_or(|r| r.bool("rolinherit"))
                }
            };
            let row = NewRow::of("pg_auth_members")
                .oid("oid", new_oid(state, "pg_auth_members")?)
                .oid("roleid", oid)
                .oid("member", member)
                .oid("grantor", grantor)
                .bool("admin_option", admin.unwrap_or(false))
                .bool("inherit_option", inherit)
                .bool("set_option", set.unwrap_or(true));
            rows.insert(&row)?;
        }
        roles_changed(state);
        Ok(())
    }

    /// GRANT and REVOKE of roles.
    ///
    /// # Errors
    /// `42704`, `42501`, `0LP01`
    pub fn grant_role(&mut self, statement: &GrantRole) -> Result<()> {
        let option = |name: &str| {
            statement.options.iter().find(|o| o.name == name).map(|o| o.boolean()).transpose()
        };
        let flags = (option("admin")?, option("inherit")?, option("set")?);
        for role in &statement.roles {
            let oid = self.role(&RoleName::Name(role.clone()))?;
            self.check_admin(oid, role)?;
            if let Some(by) = &statement.granted_by {
                self.check_grantor(by, statement.grant, (oid, role))?;
            }
            for member in &statement.members {
                let member_oid = self.role(member)?;
                let member_name = self.role_name_of(member)?;
                if statement.grant {
                    self.add_member(role, member_oid, &member_name, flags)?;
                } else {
                    self.remove_member(
                        (oid, role),
                        (member_oid, &member_name),
                        statement.option_for.as_deref(),
                    )?;
                }
            }
        }
        Ok(())
    }

    /// GRANTED BY: the current user has that role's privileges, and it may grant the role.
    fn check_grantor(&self, by: &RoleName, grant: bool, of: (Oid, &str)) -> Result<()> {
        let state = self.state();
        let (by, by_name) = (self.role(by)?, self.role_name_of(by)?);
        let me = state.current_user.borrow().oid;
        let (verb, how) = if grant { ("grant", "as") } else { ("revoke", "granted by") };
        let what = format!("{verb} privileges {how} role \"{by_name}\"");
        if !state.is_superuser() && !crate::acl::roles_of(state, me)?.contains(&by) {
            let detail = format!(
                "Only roles with privileges of role \"{by_name}\" may {verb} privileges {how} this role."
            );
            return Err(denied(&what, &detail));
        }
        if grant && by != engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER {
            let txn = state.txn()?;
            let key = [("roleid", Datum::Oid(of.0)), ("member", Datum::Oid(by))];
            let rows = state.catalog.rows(&txn).find("pg_auth_members", &key)?;
            if !rows.iter().any(|r| r.bool("admin_option")) {
                let detail =
                    format!("The grantor must have the ADMIN option on role \"{}\".", of.1);
                return Err(denied(&what, &detail));
            }
        }
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

    fn check_admin(&self, role: Oid, name: &str) -> Result<()> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(());
        }
        if crate::acl::is_superuser(state, role)? {
            return Err(denied(
                &format!("grant role \"{name}\""),
                "Only roles with the SUPERUSER attribute may grant roles with the SUPERUSER attribute.",
            ));
        }
        if self.is_admin_of(role)? {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to grant role \"{name}\""),
        )
        .detail(format!("Only roles with the ADMIN option on role \"{name}\" may grant this role."))
        .into())
    }

    fn remove_member(
        &mut self,
        (role, role_name): (Oid, &str),
        (member, member_name): (Oid, &str),
        option_for: Option<&str>,
    ) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let key = [("roleid", Datum::Oid(role)), ("member", Datum::Oid(member))];
        let Some(mut row) = rows.find("pg_auth_members", &key)?.into_iter().next() else {
            drop(txn);
            let mut notice = crate::client::Notice::new(
                crate::client::Severity::Warning,
                format!(
                    "role \"{member_name}\" has not been granted membership in role \"{role_name}\" by role \"postgres\""
                ),
            );
            notice.body.state = SqlState::WARNING;
            return self.client.notice(&notice);
        };
        match option_for {
            Some("admin") => row.set("admin_option", Datum::Bool(false)),
            Some("inherit") => row.set("inherit_option", Datum::Bool(false)),
            Some("set") => row.set("set_option", Datum::Bool(false)),
            _ => {
                rows.delete(&row)?;
                roles_changed(state);
                return Ok(());
            }
        }
        rows.update(&row)?;
        roles_changed(state);
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
        let role_oid = match role {
            Some(role) => self.role(role)?,
            None => Oid::INVALID,
        };
        let database = match database {
            Some(name) => self.database_oid(name)?,
            None => Oid::INVALID,
        };
        let me = self.state().current_user.borrow().oid;
        match role {
            Some(_) if role_oid == me => {}
            Some(role) => {
                let name = self.role_name_of(role)?;
                refuse_reserved(&name)?;
                if let Some(row) = self.role_row(&name)? {
                    self.check_controls(&row, "alter")?;
                }
            }
            None if self.state().is_superuser() => {}
            None => {
                return Err(denied(
                    "alter setting",
                    "Only roles with the SUPERUSER attribute may alter settings globally.",
                ));
            }
        }
        self.change_setting(database, role_oid, setting)
    }

    /// ALTER DATABASE … SET
    ///
    /// # Errors
    /// `3D000`, `42704`, `22023`, `42501`
    pub fn database_setting(&mut self, name: &str, setting: &SettingChange) -> Result<()> {
        let database = self.database_oid(name)?;
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
        let may_change = |name: &str| match base::settings::find(name) {
            Some((_, definition)) => {
                base::settings::check_default(definition, state.is_superuser())
            }
            None => Ok(()),
        };
        match setting {
            SettingChange::Set { name, values } => {
                let value = crate::session::setting_text(name, values);
                let known = base::settings::find(name);
                if let Some((_, definition)) = known {
                    base::settings::check_default(definition, state.is_superuser())?;
                    crate::session::check_setting(definition, &value)?;
                } else {
                    base::settings::check_custom_name(name)?;
                }
                let name = known.map_or(name.as_str(), |(_, definition)| definition.name);
                // However it was spelled when it was set before.
                options.retain(|n| n == name || !n.eq_ignore_ascii_case(name));
                options.put(name.to_owned(), value);
            }
            SettingChange::FromCurrent { name } => {
                may_change(name)?;
                let value = state.settings.borrow().show(name)?;
                options.put(name.clone(), value);
            }
            SettingChange::SetDefault { name } | SettingChange::Reset { name } => {
                may_change(name)?;
                options.retain(|n| !n.eq_ignore_ascii_case(name));
            }
            // What one may not set one does not take back either.
            SettingChange::ResetAll => options.retain(|name| may_change(name).is_err()),
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
