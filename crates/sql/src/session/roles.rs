//! Who a session is: SET ROLE, SET SESSION AUTHORIZATION, and what runs with another's rights for a while.
//!
//! # Invariants
//! What runs as another role ([`SessionState::as_another`]) comes to an end as that role: meanwhile nobody becomes a third one.

use super::state::{CurrentRole, SessionState};
use base::settings::SetScope;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::CatalogView;

/// Why something runs as another role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lent {
    /// A view's owner fills it.
    Restricted,
    /// What is made, or done, is another one's.
    Definer,
}

impl SessionState {
    /// A role's OID, and whether it is a superuser, as this transaction sees it: it may have made the role.
    fn role_now(&self, name: &str) -> Result<Option<(Oid, bool)>> {
        let Some(txn) = self.txn_opt() else {
            return Ok(self.cluster.login_role(name)?.map(|r| (r.oid, r.superuser)));
        };
        let key = [("rolname", types::Datum::text(name))];
        let rows = self.catalog.rows(&txn).find("pg_authid", &key)?;
        Ok(rows.first().map(|r| (r.oid("oid"), r.bool("rolsuper"))))
    }

    /// A role as its row says now; one that is gone is no superuser.
    pub(super) fn role_as_it_is(&self, role: &CurrentRole) -> Result<CurrentRole> {
        let key = [("oid", types::Datum::Oid(role.oid))];
        let rows = match self.txn_opt() {
            Some(txn) => self.catalog.rows(&txn).find("pg_authid", &key)?,
            None => self.cluster.with_catalogs(Oid::INVALID, |c| c.find("pg_authid", &key))?,
        };
        Ok(match rows.first() {
            Some(row) => CurrentRole {
                oid: role.oid,
                name: row.text("rolname").to_owned(),
                superuser: row.bool("rolsuper"),
            },
            None => CurrentRole { superuser: false, ..role.clone() },
        })
    }

    /// Is the session whom it logged in as, with no role set since?
    pub(super) fn acts_as_login_user(&self) -> bool {
        let login = self.login_user.oid;
        self.current_user.borrow().oid == login
            && self.session_user.borrow().oid == login
            && self.settings.borrow().text("role") == "none"
    }

    /// SET ROLE and SET SESSION AUTHORIZATION (`name`), also by `set_config`.
    ///
    /// # Errors
    /// `22023`, `42501`; I/O.
    pub(crate) fn set_role(&self, name: &str, wanted: &str, scope: SetScope) -> Result<()> {
        if let Some(lent) = self.lent.get() {
            let within = match lent {
                Lent::Restricted => "security-restricted operation",
                Lent::Definer => "security-definer function",
            };
            bail!(INSUFFICIENT_PRIVILEGE, "cannot set parameter \"{name}\" within {within}");
        }
        // SET ROLE is judged by the session's user, SESSION AUTHORIZATION by who logged in.
        let session_user = if name == "session_authorization" {
            self.role_as_it_is(&self.login_user)?
        } else {
            self.session_user.borrow().clone()
        };
        let role = if wanted.eq_ignore_ascii_case("none") || wanted.eq_ignore_ascii_case("default")
        {
            session_user
        } else {
            let Some((oid, superuser)) = self.role_now(wanted)? else {
                bail!(INVALID_PARAMETER_VALUE, "role \"{wanted}\" does not exist");
            };
            // Who logged in may be another only as a superuser.
            let may = session_user.superuser
                || session_user.oid == oid
                || name == "role"
                    && crate::acl::roles_to_set(self, session_user.oid)?.contains(&oid);
            if !may {
                bail!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied to set {} \"{wanted}\"",
                    if name == "role" { "role" } else { "session authorization" }
                );
            }
            CurrentRole { oid, name: wanted.to_owned(), superuser }
        };
        {
            let mut seen = self.roles_seen.borrow_mut();
            if seen.is_empty() {
                seen.push(self.current_user.borrow().clone());
                seen.push(self.session_user.borrow().clone());
            }
            seen.push(role.clone());
        }
        *self.current_user.borrow_mut() = role.clone();
        self.role_switched.set(true);
        if name == "session_authorization" {
            *self.session_user.borrow_mut() = role;
            // A role that was set before was the other one's.
            self.set("role", "none", scope)?;
        }
        self.set(name, wanted, scope)
    }

    /// The current user is `role` while `f` runs.
    ///
    /// # Errors
    /// `f`'s; I/O.
    pub(crate) fn as_another<T>(
        &self,
        role: Oid,
        why: Lent,
        f: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let name = self.role_name(role)?.unwrap_or_default();
        let superuser = crate::acl::is_superuser(self, role)?;
        let before = self.current_user.replace(CurrentRole { oid: role, name, superuser });
        // The stricter of two holds.
        let lent = self.lent.get();
        self.lent.set(Some(if lent == Some(Lent::Restricted) { Lent::Restricted } else { why }));
        let done = f();
        self.lent.set(lent);
        self.current_user.replace(before);
        done
    }
}
