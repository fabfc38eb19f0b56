//! Whether what was made of a text is still what would be made of it.

use crate::session::{Session, SessionEnv};
use std::rc::Rc;

/// What the catalogs and settings were when something was made.
#[derive(Clone)]
pub(super) struct Good {
    generation: u64,
    own: Option<u64>,
    dirty: bool,
    env: Rc<SessionEnv>,
    path: Rc<[String]>,
}

impl Good {
    /// As they are.
    pub fn now(session: &Session) -> Good {
        let catalog = &session.state().catalog;
        Good {
            generation: catalog.generation(),
            own: catalog.own_version(),
            dirty: catalog.is_dirty(),
            env: Rc::clone(session.env()),
            path: session.state().search_path_names(),
        }
    }

    /// They are the same.
    pub fn holds(&self, session: &Session) -> bool {
        let state = session.state();
        let catalog = &state.catalog;
        let dirty = catalog.is_dirty();
        self.generation == catalog.generation()
            && self.dirty == dirty
            // Nobody knows when catalogs are written to by hand.
            && (!dirty || self.own.is_some() && self.own == catalog.own_version())
            && Rc::ptr_eq(&self.env, session.env())
            && !self.env.is_stale()
            && Rc::ptr_eq(&self.path, &state.search_path_names())
    }
}
