//! The row on which a cursor stands, for WHERE CURRENT OF.
//!
//! # Layout
//! A cursor's rows have the addresses of what they are made of behind their own columns ([`Addresses`]). After each FETCH and MOVE the
//! cursor leaves those of the row on which it then stands in the list of cursors ([`Place`]), where statements find them.
//!
//! # Differs from PostgreSQL
//! Portals of the protocol are no cursors here: 0A000.

use super::portal::{CursorList, KeptRows};
use crate::plan::current_of::Addresses;
use base::{Oid, Result, Tid, bail};
use types::Datum;

/// Where a cursor stands.
#[derive(Clone, Debug)]
pub enum Place {
    /// It is a portal of the protocol.
    Protocol,
    /// Its query is over: it goes on with rows kept, or has failed.
    Over,
    /// Its rows have no addresses to give.
    NoAddresses,
    /// What its rows have, and the addresses of the row on which it stands.
    Rows(Addresses, Option<Vec<Datum>>),
}

impl Place {
    /// Of a cursor that stands at `kept`'s position.
    pub(super) fn at(addresses: Option<&Addresses>, kept: &KeptRows) -> Place {
        let Some(addresses) = addresses else { return Place::NoAddresses };
        Place::Rows(addresses.clone(), kept.here.clone())
    }
}

/// The row of `table` on which the cursor stands; None if its row is not made of one.
pub(crate) fn current_row(
    list: &CursorList,
    cursor: &str,
    table: Oid,
    name: &str,
) -> Result<Option<Tid>> {
    let tid = |value: Option<&Datum>| match value {
        Some(Datum::Tid(tid)) => Some(*tid),
        _ => None,
    };
    let not_simple = || {
        base::err!(
            INVALID_CURSOR_STATE,
            "cursor \"{cursor}\" is not a simply updatable scan of table \"{name}\""
        )
    };
    let (addresses, row) = match list.place(cursor) {
        None => bail!(INVALID_CURSOR_NAME, "cursor \"{cursor}\" does not exist"),
        Some(Place::Protocol) => {
            return Err(base::Error::unsupported("WHERE CURRENT OF a portal of the protocol"));
        }
        Some(Place::Over) => {
            bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is held from a previous transaction")
        }
        Some(Place::NoAddresses) => return Err(not_simple()),
        Some(Place::Rows(addresses, row)) => (addresses, row),
    };
    let column = match &addresses {
        Addresses::Locked(tables) => {
            let mut places = tables.iter().enumerate().filter(|(_, t)| **t == table);
            match (places.next(), places.next()) {
                (Some((place, _)), None) => place,
                (None, _) => bail!(
                    INVALID_CURSOR_STATE,
                    "cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{name}\""
                ),
                _ => bail!(
                    INVALID_CURSOR_STATE,
                    "cursor \"{cursor}\" has multiple FOR UPDATE/SHARE references to table \"{name}\""
                ),
            }
        }
        Addresses::One(scanned) if *scanned == table => 0,
        Addresses::OneOf(tables) if tables.iter().filter(|t| **t == table).count() == 1 => 0,
        _ => return Err(not_simple()),
    };
    let Some(row) = row else {
        bail!(INVALID_CURSOR_STATE, "cursor \"{cursor}\" is not positioned on a row");
    };
    let of_other = matches!(addresses, Addresses::OneOf(_))
        && !matches!(row.get(1), Some(Datum::Oid(oid)) if *oid == table);
    Ok(if of_other { None } else { tid(row.get(column)) })
}
