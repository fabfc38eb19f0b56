//! Membership in roles: GRANT and REVOKE of roles, and by whom each was granted.
//!
//! # Invariants
//! There is one row of `pg_auth_members` for each role, member and grantor. A grantor is the bootstrap superuser, or has the role with
//! ADMIN OPTION from somebody who got it without him: who loses that option loses what he has granted by it (CASCADE), or keeps the option
//! (RESTRICT).
//!
//! # Locks
//! Who changes the members of a role holds it against others who do.

use super::depend::Object;
use super::role::{denied, roles_changed};
use super::{Ddl, lock_object, lock_role, new_oid};
use crate::acl::DATABASE_OWNER;
use crate::client::{Notice, Severity};
use crate::parse::utility::{GrantRole, RoleName};
use crate::session::SessionState;
use base::{Oid, Result, SqlError, SqlState};
use engine::catalog::bootstrap::BOOTSTRAP_SUPERUSER;
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;
use engine::catalog::rows::{NewRow, Row};
use std::collections::HashSet;
use txn::LockMode;
use types::Datum;

/// What is said of a membership; None: nothing.
#[derive(Clone, Copy, Default)]
pub(super) struct MemberOptions {
    pub admin: Option<bool>,
    pub inherit: Option<bool>,
    pub set: Option<bool>,
}

/// A role and its name.
type Named<'a> = (Oid, &'a str);

/// What becomes of a membership.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
    Loses(&'static str),
}

/// All memberships in a role, and what becomes of each.
struct Revocation {
    rows: Vec<Row>,
    fates: Vec<Fate>,
}

impl Revocation {
    fn of(state: &SessionState, role: Oid) -> Result<Revocation> {
        let txn = state.txn()?;
        let key = [("roleid", Datum::Oid(role))];
        let rows = state.catalog.rows(&txn).find("pg_auth_members", &key)?;
        let fates = vec![Fate::Stays; rows.len()];
        Ok(Revocation { rows, fates })
    }

    /// Takes the membership that `grantor` gave, or one option of it; false if he gave none.
    fn take(
        &mut self,
        (member, grantor): (Oid, Oid),
        option: Option<&str>,
        cascade: bool,
    ) -> Result<bool> {
        let is_it = |r: &Row| r.oid("member") == member && r.oid("grantor") == grantor;
        let Some(at) = self.rows.iter().position(is_it) else { return Ok(false) };
        match option {
            Some("inherit") => self.fates[at] = Fate::Loses("inherit_option"),
            Some("set") => self.fates[at] = Fate::Loses("set_option"),
            option => self.take_all(at, option.is_some(), cascade)?,
        }
        Ok(true)
    }

    /// Takes a membership, or its ADMIN OPTION alone, and what was granted by that.
    fn take_all(&mut self, at: usize, admin_only: bool, cascade: bool) -> Result<()> {
        const ADMIN: Fate = Fate::Loses("admin_option");
        let done = self.fates[at] == Fate::Goes || (admin_only && self.fates[at] == ADMIN);
        let (admin, member) = (self.rows[at].bool("admin_option"), self.rows[at].oid("member"));
        if done || (admin_only && !admin) {
            return Ok(());
        }
        self.fates[at] = if admin_only { ADMIN } else { Fate::Goes };
        if !admin || self.may_grant(member) {
            return Ok(());
        }
        for granted in 0..self.rows.len() {
            if self.rows[granted].oid("grantor") != member || self.fates[granted] == Fate::Goes {
                continue;
            }
            if !cascade {
                return Err(SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    "dependent privileges exist",
                )
                .hint("Use CASCADE to revoke them too.")
                .into());
            }
            self.take_all(granted, false, cascade)?;
        }
        Ok(())
    }

    /// Would `member` still have the ADMIN OPTION?
    fn may_grant(&self, member: Oid) -> bool {
        let mut all = self.rows.iter().zip(&self.fates);
        all.any(|(r, f)| *f == Fate::Stays && r.oid("member") == member && r.bool("admin_option"))
    }

    fn carry_out(self, state: &SessionState) -> Result<()> {
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        for (mut row, fate) in self.rows.into_iter().zip(self.fates) {
            match fate {
                Fate::Stays => {}
                Fate::Goes => rows.delete(&row)?,
                Fate::Loses(option) => {
                    row.set(option, Datum::Bool(false));
                    rows.update(&row)?;
                }
            }
        }
        roles_changed(state);
        Ok(())
    }
}

/// By which role `member` would best give others membership in `role`: himself, or the nearest one whose privileges he has, of those that
/// were given the ADMIN OPTION.
///
/// # Errors
/// I/O.
fn best_admin(state: &SessionState, member: Oid, role: Oid) -> Result<Option<Oid>> {
    if member == role {
        return Ok(None);
    }
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let (mut seen, mut todo) = (HashSet::from([member]), vec![member]);
    let mut next = 0;
    while let Some(by) = todo.get(next).copied() {
        next += 1;
        for row in rows.find("pg_auth_members", &[("member", Datum::Oid(by))])? {
            let of = row.oid("roleid");
            if of == role && row.bool("admin_option") {
                return Ok(Some(by));
            }
            if row.bool("inherit_option") && seen.insert(of) {
                todo.push(of);
            }
        }
    }
    Ok(None)
}

/// `0LP01`
fn granted_back() -> base::Error {
    let text = "ADMIN option cannot be granted back to your own grantor";
    SqlError::new(SqlState::INVALID_GRANT_OPERATION, text).into()
}

/// Nobody gets the ADMIN OPTION by which its grantor has his own.
fn check_not_circular(
    state: &SessionState,
    role: Oid,
    members: &[(Oid, String)],
    grantor: Oid,
) -> Result<()> {
    let mut without = Revocation::of(state, role)?;
    for (member, _) in members {
        if *member == BOOTSTRAP_SUPERUSER {
            return Err(granted_back());
        }
        for at in 0..without.rows.len() {
            if without.rows[at].oid("member") == *member {
                without.take_all(at, false, true)?;
            }
        }
    }
    if without.may_grant(grantor) { Ok(()) } else { Err(granted_back()) }
}

impl Ddl<'_> {
    /// GRANT and REVOKE of roles.
    ///
    /// # Errors
    /// `42704`, `42501`, `0LP01`, `2BP01`, `0A000`
    pub fn grant_role(&mut self, statement: &GrantRole) -> Result<()> {
        let option = |name: &str| {
            statement.options.iter().find(|o| o.name == name).map(|o| o.boolean()).transpose()
        };
        let options = MemberOptions {
            admin: option("admin")?,
            inherit: option("inherit")?,
            set: option("set")?,
        };
        let by = statement.granted_by.as_ref().map(|by| self.role(by)).transpose()?;
        let mut members = Vec::new();
        for member in &statement.members {
            members.push((self.role(member)?, self.role_name_of(member)?));
        }
        for name in &statement.roles {
            let role = self.role(&RoleName::Name(name.clone()))?;
            self.check_admin(role, name, statement.grant)?;
            if statement.grant {
                self.add_members((role, name), &members, by, options)?;
            } else {
                let option = statement.option_for.as_deref();
                self.remove_members((role, name), &members, by, (option, statement.cascade))?;
            }
        }
        Ok(())
    }

    /// By whom a role is granted, or was.
    fn grantor(&self, (role, name): Named<'_>, by: Option<Oid>, grant: bool) -> Result<Oid> {
        let state = self.state();
        let me = state.current_user.borrow().oid;
        let Some(by) = by else {
            if state.is_superuser() {
                return Ok(BOOTSTRAP_SUPERUSER);
            }
            let best = best_admin(state, me, role)?;
            return best.ok_or_else(|| base::err!(INTERNAL_ERROR, "no possible grantors"));
        };
        let by_name = state.role_name(by)?.unwrap_or_default();
        let (verb, how) = if grant { ("grant", "as") } else { ("revoke", "granted by") };
        let what = format!("{verb} privileges {how} role \"{by_name}\"");
        if !state.is_superuser() && !crate::acl::roles_of(state, me)?.contains(&by) {
            let this = if grant { "as this role" } else { "granted by this role" };
            let detail = format!(
                "Only roles with privileges of role \"{by_name}\" may {verb} privileges {this}."
            );
            return Err(denied(&what, &detail));
        }
        if grant && by != BOOTSTRAP_SUPERUSER && best_admin(state, by, role)? != Some(by) {
            let detail = format!("The grantor must have the ADMIN option on role \"{name}\".");
            return Err(denied(&what, &detail));
        }
        Ok(by)
    }

    /// Makes roles members of one.
    ///
    /// # Errors
    /// `42501`, `0LP01`; I/O.
    pub(super) fn add_members(
        &mut self,
        role: Named<'_>,
        members: &[(Oid, String)],
        by: Option<Oid>,
        options: MemberOptions,
    ) -> Result<()> {
        let grantor = self.grantor(role, by, true)?;
        self.add_members_by(role, members, grantor, options)
    }

    /// [`Ddl::add_members`], whoever does it: granted by the bootstrap superuser.
    ///
    /// # Errors
    /// `0LP01`; I/O.
    pub(super) fn add_members_by_system(
        &mut self,
        role: Named<'_>,
        members: &[(Oid, String)],
        options: MemberOptions,
    ) -> Result<()> {
        self.add_members_by(role, members, BOOTSTRAP_SUPERUSER, options)
    }

    fn add_members_by(
        &mut self,
        role: Named<'_>,
        members: &[(Oid, String)],
        grantor: Oid,
        options: MemberOptions,
    ) -> Result<()> {
        let (oid, name) = role;
        let state = self.state();
        if oid == DATABASE_OWNER {
            let text = format!("role \"{name}\" cannot have explicit members");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
        }
        hold(state, oid)?;
        for (member, member_name) in members {
            lock_role(state, *member)?;
            if *member == DATABASE_OWNER {
                let text = format!("role \"{member_name}\" cannot be a member of any role");
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
            }
            if crate::acl::memberships(state, oid)?.contains(member) {
                let text = format!("role \"{name}\" is a member of role \"{member_name}\"");
                return Err(SqlError::new(SqlState::INVALID_GRANT_OPERATION, text).into());
            }
        }
        if options.admin == Some(true) && grantor != BOOTSTRAP_SUPERUSER {
            check_not_circular(state, oid, members, grantor)?;
        }
        for (member, member_name) in members {
            if !add_member(self.state(), oid, *member, grantor, options)? {
                let by = self.state().role_name(grantor)?.unwrap_or_default();
                let text = format!(
                    "role \"{member_name}\" has already been granted membership in role \"{name}\" by role \"{by}\""
                );
                self.notice(SqlState::SUCCESSFUL_COMPLETION, text)?;
            }
        }
        roles_changed(self.state());
        Ok(())
    }

    fn remove_members(
        &mut self,
        role: Named<'_>,
        members: &[(Oid, String)],
        by: Option<Oid>,
        (option, cascade): (Option<&str>, bool),
    ) -> Result<()> {
        let grantor = self.grantor(role, by, false)?;
        let (oid, name) = role;
        hold(self.state(), oid)?;
        let mut revocation = Revocation::of(self.state(), oid)?;
        for (member, member_name) in members {
            if revocation.take((*member, grantor), option, cascade)? {
                continue;
            }
            let by = self.state().role_name(grantor)?.unwrap_or_default();
            let text = format!(
                "role \"{member_name}\" has not been granted membership in role \"{name}\" by role \"{by}\""
            );
            let mut notice = Notice::new(Severity::Warning, text);
            notice.body.state = SqlState::WARNING;
            self.client.notice(&notice)?;
        }
        revocation.carry_out(self.state())
    }

    /// Fails unless the current user may give, or take, membership in the role.
    pub(super) fn check_admin(&self, role: Oid, name: &str, grant: bool) -> Result<()> {
        let state = self.state();
        if state.is_superuser() {
            return Ok(());
        }
        let verb = if grant { "grant" } else { "revoke" };
        let what = format!("{verb} role \"{name}\"");
        if crate::acl::is_superuser(state, role)? {
            let why = format!(
                "Only roles with the SUPERUSER attribute may {verb} roles with the SUPERUSER attribute."
            );
            return Err(denied(&what, &why));
        }
        if self.is_admin_of(role)? {
            return Ok(());
        }
        let why =
            format!("Only roles with the ADMIN option on role \"{name}\" may {verb} this role.");
        Err(denied(&what, &why))
    }
}

/// Keeps others from changing the members of a role, and the role from going.
fn hold(state: &SessionState, role: Oid) -> Result<()> {
    lock_object(state, Object::of("pg_authid", role), LockMode::ShareUpdateExclusive)?;
    lock_role(state, role)
}

/// Makes a role a member, or changes what is said of its membership; false if that is said already.
fn add_member(
    state: &SessionState,
    role: Oid,
    member: Oid,
    grantor: Oid,
    options: MemberOptions,
) -> Result<bool> {
    let MemberOptions { admin, inherit, set } = options;
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    let key = [
        ("roleid", Datum::Oid(role)),
        ("member", Datum::Oid(member)),
        ("grantor", Datum::Oid(grantor)),
    ];
    if let Some(mut row) = rows.find("pg_auth_members", &key)?.into_iter().next() {
        let more = [("admin_option", admin), ("inherit_option", inherit), ("set_option", set)];
        let mut changed = false;
        for (option, wanted) in more {
            if let Some(wanted) = wanted.filter(|w| *w != row.bool(option)) {
                row.set(option, Datum::Bool(wanted));
                changed = true;
            }
        }
        if changed {
            rows.update(&row)?;
        }
        return Ok(changed);
    }
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
        .oid("roleid", role)
        .oid("member", member)
        .oid("grantor", grantor)
        .bool("admin_option", admin.unwrap_or(false))
        .bool("inherit_option", inherit)
        .bool("set_option", set.unwrap_or(true));
    rows.insert(&row)?;
    Ok(true)
}
