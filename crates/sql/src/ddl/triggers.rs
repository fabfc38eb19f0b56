//! The triggers that constraints have (`pg_trigger`): those of a foreign key on both its tables, and that of a deferrable key.
//!
//! # Purpose
//! What they stand for is done without them. Their rows are there to be looked at, and to be switched off and on: `ALTER TABLE … DISABLE
//! TRIGGER`, on which a foreign key asks, or does, nothing any more on that side.
//!
//! # Differs from PostgreSQL
//! Users make none.

use super::depend::{self, Kind, Object};
use super::{Ddl, new_oid};
use crate::session::SessionState;
use base::{Oid, Result, bail};
use engine::catalog::load::RowSource;
use engine::catalog::model::{ReferentialAction, Table};
use engine::catalog::rows::NewRow;
use types::Datum;

const ROW: i64 = 1;
const INSERT: i64 = 4;
const DELETE: i64 = 8;
const UPDATE: i64 = 16;

/// `RI_FKey_check_ins`; that of updates is the next.
const CHECK: u32 = 1644;
/// `unique_key_recheck`
const UNIQUE_RECHECK: u32 = 1250;

/// A constraint's trigger to be.
struct NewTrigger<'a> {
    name: &'a str,
    table: Oid,
    other: Oid,
    function: u32,
    kind: i64,
    timing: (bool, bool),
}

/// The function that does what is to be done when a row that is referred to is deleted; that for updates is the next.
fn action_function(action: ReferentialAction) -> u32 {
    match action {
        ReferentialAction::Cascade => 1646,
        ReferentialAction::Restrict => 1648,
        ReferentialAction::SetNull => 1650,
        ReferentialAction::SetDefault => 1652,
        ReferentialAction::NoAction => 1654,
    }
}

fn insert(state: &SessionState, constraint: Oid, index: Oid, new: &NewTrigger<'_>) -> Result<()> {
    let oid = new_oid(state, "pg_trigger")?;
    let row = NewRow::of("pg_trigger")
        .oid("oid", oid)
        .oid("tgrelid", new.table)
        .text("tgname", &format!("{}_{oid}", new.name))
        .oid("tgfoid", Oid(new.function))
        .int("tgtype", new.kind)
        .char("tgenabled", b'O')
        .bool("tgisinternal", true)
        .oid("tgconstrrelid", new.other)
        .oid("tgconstrindid", index)
        .oid("tgconstraint", constraint)
        .bool("tgdeferrable", new.timing.0)
        .bool("tginitdeferred", new.timing.1);
    let txn = state.txn()?;
    state.catalog.rows(&txn).insert(&row)?;
    // psql looks for foreign keys only where there are triggers.
    super::relation::update_class(state, new.table, |row| {
        row.set("relhastriggers", Datum::Bool(true));
    })?;
    let on = Object::of("pg_constraint", constraint);
    depend::record(state, Object::of("pg_trigger", oid), on, Kind::Internal)
}

/// A foreign key as its triggers see it.
pub(super) struct Key {
    pub constraint: Oid,
    pub table: Oid,
    pub referenced: Oid,
    pub index: Oid,
    pub on_delete: ReferentialAction,
    pub on_update: ReferentialAction,
    /// DEFERRABLE, INITIALLY DEFERRED
    pub timing: (bool, bool),
}

/// Notes the triggers of a foreign key: those of what it does, then those of what it asks.
///
/// # Errors
/// I/O.
pub(super) fn of_foreign_key(state: &SessionState, key: &Key) -> Result<()> {
    for (action, kind, next) in [(key.on_delete, DELETE, 0), (key.on_update, UPDATE, 1)] {
        // Only what does nothing but look can wait.
        let waits = action == ReferentialAction::NoAction;
        let new = NewTrigger {
            name: "RI_ConstraintTrigger_a",
            table: key.referenced,
            other: key.table,
            function: action_function(action) + next,
            kind: ROW | kind,
            timing: if waits { key.timing } else { (false, false) },
        };
        insert(state, key.constraint, key.index, &new)?;
    }
    for (kind, next) in [(INSERT, 0), (UPDATE, 1)] {
        let new = NewTrigger {
            name: "RI_ConstraintTrigger_c",
            table: key.table,
            other: key.referenced,
            function: CHECK + next,
            kind: ROW | kind,
            timing: key.timing,
        };
        insert(state, key.constraint, key.index, &new)?;
    }
    Ok(())
}

/// Notes the trigger of a deferrable key.
///
/// # Errors
/// I/O.
pub(super) fn of_key(
    state: &SessionState,
    table: Oid,
    (constraint, index): (Oid, Oid),
    (primary, deferred): (bool, bool),
) -> Result<()> {
    let new = NewTrigger {
        name: if primary { "PK_ConstraintTrigger" } else { "Unique_ConstraintTrigger" },
        table,
        other: Oid::INVALID,
        function: UNIQUE_RECHECK,
        kind: ROW | INSERT | UPDATE,
        timing: (true, deferred),
    };
    insert(state, constraint, index, &new)
}

/// Takes a constraint's triggers away.
///
/// # Errors
/// I/O.
pub(super) fn remove(state: &SessionState, constraint: Oid) -> Result<()> {
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for row in rows.find("pg_trigger", &[("tgconstraint", Datum::Oid(constraint))])? {
        super::drop::forget_dependencies(state, Object::of("pg_trigger", row.oid("oid")))?;
        rows.delete(&row)?;
    }
    Ok(())
}

/// A foreign key is DEFERRABLE, and INITIALLY DEFERRED, from now on, or no more: so are those of its triggers that can wait.
///
/// # Errors
/// I/O.
pub(super) fn retime(state: &SessionState, constraint: Oid, timing: (bool, bool)) -> Result<()> {
    let waits = [CHECK, action_function(ReferentialAction::NoAction)];
    let txn = state.txn()?;
    let rows = state.catalog.rows(&txn);
    for mut row in rows.find("pg_trigger", &[("tgconstraint", Datum::Oid(constraint))])? {
        if waits.iter().any(|f| (row.oid("tgfoid").0 & !1) == *f) {
            row.set("tgdeferrable", Datum::Bool(timing.0));
            row.set("tginitdeferred", Datum::Bool(timing.1));
            rows.update(&row)?;
        }
    }
    Ok(())
}

/// ENABLE or DISABLE of what: `tgenabled`'s letter, and the trigger's name, ALL or USER. None: it is not of triggers.
pub(super) fn switch(enable: bool, what: &str) -> Option<(u8, &str)> {
    for (words, letter) in [("replica trigger ", b'R'), ("always trigger ", b'A')] {
        if let Some(name) = what.strip_prefix(words).filter(|_| enable) {
            return Some((letter, name));
        }
    }
    what.strip_prefix("trigger ").map(|name| (if enable { b'O' } else { b'D' }, name))
}

impl Ddl<'_> {
    /// ALTER TABLE … ENABLE or DISABLE TRIGGER
    ///
    /// # Errors
    /// `42501`, `42704`; I/O.
    pub(super) fn switch_triggers(&mut self, table: &Table, letter: u8, which: &str) -> Result<()> {
        let state = self.state();
        let txn = state.txn()?;
        let rows = state.catalog.rows(&txn);
        let mut found = false;
        for mut row in rows.find("pg_trigger", &[("tgrelid", Datum::Oid(table.oid))])? {
            let name = row.text("tgname").to_owned();
            match which {
                "all" => {}
                "user" if row.bool("tgisinternal") => continue,
                "user" => {}
                wanted if wanted != name => continue,
                _ => {}
            }
            if row.bool("tgisinternal") && !state.is_superuser() {
                bail!(INSUFFICIENT_PRIVILEGE, "permission denied: \"{name}\" is a system trigger");
            }
            found = true;
            if row.char("tgenabled") == letter {
                continue;
            }
            row.set("tgenabled", Datum::Char(letter));
            rows.update(&row)?;
            // Who writes the other table looks at its description of the key.
            let other = row.oid("tgconstrrelid");
            if other.is_valid() {
                state.catalog.changed_alone(other);
            }
        }
        if !found && !matches!(which, "all" | "user") {
            bail!(
                UNDEFINED_OBJECT,
                "trigger \"{which}\" for table \"{}\" does not exist",
                table.name
            );
        }
        state.catalog.changed_alone(table.oid);
        Ok(())
    }
}
