//! Who a role is, as far as that decides what it may do: superuser or not, and which roles' privileges it has.
//!
//! # Purpose
//! Every statement of anybody but a superuser asks that for each relation it uses. Catalogs are read for it once, and again when roles have
//! changed.
//!
//! # Invariants
//! What is known is as of a change of roles ([`crate::cluster::Cluster::role_changes`]); whatever changes the rows that it follows from counts one:
//! those of roles and of memberships, and who owns a database. In a transaction that has made such changes nothing is known, for its own are not
//! everybody's yet; and nothing of before is known after a rollback, whatever was read within it.

use super::{names_of, roles_of};
use crate::session::SessionState;
use base::{Oid, Result};
use engine::catalog::load::RowSource;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use types::Datum;

/// So many roles are known at once: those that own views, beside the session's own.
const MOST: usize = 256;

/// What a session knows of roles.
#[derive(Default)]
pub struct KnownRoles {
    as_of: u64,
    known: HashMap<Oid, Rc<Standing>>,
}

/// A role's standing, each part of it looked up when it is first asked for.
pub(super) struct Standing {
    role: Oid,
    superuser: OnceCell<bool>,
    roles: OnceCell<HashSet<Oid>>,
    names: OnceCell<HashSet<String>>,
}

/// What the cell has, else what `find` finds.
fn once<T>(cell: &OnceCell<T>, find: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}

impl Standing {
    /// That of `role`, which is looked up when it is asked for.
    pub(super) fn of(state: &SessionState, role: Oid) -> Rc<Standing> {
        let unknown = || {
            Rc::new(Standing {
                role,
                superuser: OnceCell::new(),
                roles: OnceCell::new(),
                names: OnceCell::new(),
            })
        };
        if state.roles_changed.get() {
            return unknown();
        }
        let now = state.cluster.role_changes();
        let mut known = state.known_roles.borrow_mut();
        if known.as_of != now || known.known.len() >= MOST && !known.known.contains_key(&role) {
            *known = KnownRoles { as_of: now, known: HashMap::new() };
        }
        Rc::clone(known.known.entry(role).or_insert_with(unknown))
    }

    /// Is it a superuser?
    ///
    /// # Errors
    /// I/O.
    pub(super) fn superuser(&self, state: &SessionState) -> Result<bool> {
        once(&self.superuser, || {
            let txn = state.txn()?;
            let key = [("oid", Datum::Oid(self.role))];
            let rows = state.catalog.rows(&txn).find("pg_authid", &key)?;
            Ok(rows.first().is_some_and(|r| r.bool("rolsuper")))
        })
        .copied()
    }

    /// The roles whose privileges it has, itself among them.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn roles(&self, state: &SessionState) -> Result<&HashSet<Oid>> {
        once(&self.roles, || roles_of(state, self.role))
    }

    /// Their names.
    ///
    /// # Errors
    /// I/O.
    pub(super) fn names(&self, state: &SessionState) -> Result<&HashSet<String>> {
        once(&self.names, || names_of(state, self.roles(state)?))
    }
}
