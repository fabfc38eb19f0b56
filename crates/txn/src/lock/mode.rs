//! Lock modes and what can be locked.

use base::{Oid, Tid, Xid};
use std::fmt;

/// PostgreSQL's eight table-lock modes, by strength; the numbers are PostgreSQL's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum LockMode {
    /// SELECT.
    AccessShare = 1,
    /// SELECT FOR UPDATE and its kin.
    RowShare = 2,
    /// INSERT, UPDATE, DELETE.
    RowExclusive = 3,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive = 4,
    /// CREATE INDEX.
    Share = 5,
    /// CREATE TRIGGER.
    ShareRowExclusive = 6,
    /// REFRESH CONCURRENTLY; tuples and transactions.
    Exclusive = 7,
    /// DROP, TRUNCATE, most of ALTER TABLE, VACUUM FULL.
    AccessExclusive = 8,
}

impl LockMode {
    /// All modes, weakest first.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// The modes that this one conflicts with, as bits by their numbers.
    pub fn conflict_bits(self) -> u16 {
        const AS: u16 = 1 << 1;
        const RS: u16 = 1 << 2;
        const RX: u16 = 1 << 3;
        const SUX: u16 = 1 << 4;
        const S: u16 = 1 << 5;
        const SRX: u16 = 1 << 6;
        const X: u16 = 1 << 7;
        const AX: u16 = 1 << 8;
        match self {
            LockMode::AccessShare => AX,
            LockMode::RowShare => X | AX,
            LockMode::RowExclusive => S | SRX | X | AX,
            LockMode::ShareUpdateExclusive => SUX | S | SRX | X | AX,
            LockMode::Share => RX | SUX | SRX | X | AX,
            LockMode::ShareRowExclusive => RX | SUX | S | SRX | X | AX,
            LockMode::Exclusive => RS | RX | SUX | S | SRX | X | AX,
            LockMode::AccessExclusive => AS | RS | RX | SUX | S | SRX | X | AX,
        }
    }

    /// May two backends not hold these at once?
    pub fn conflicts(self, other: LockMode) -> bool {
        self.conflict_bits() & other.bit() != 0
    }

    /// Its bit.
    pub fn bit(self) -> u16 {
        1 << self as u8
    }

    /// May it take the fast path? These conflict only with strong ones.
    pub fn is_weak(self) -> bool {
        self <= LockMode::RowExclusive
    }

    /// Does it conflict with a weak one?
    pub fn is_strong(self) -> bool {
        self >= LockMode::Share
    }

    /// As pg_locks shows it.
    pub fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }
}

/// What can be locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs, reason = "fields are named as pg_locks' columns")]
pub enum LockTag {
    /// A table, index, view or sequence.
    Relation { database: Oid, relation: Oid },
    /// The right to extend a relation's file.
    Extend { database: Oid, relation: Oid },
    /// A version of a row, while waiting for the transaction that has changed it (keeps the queue fair). `version` is the low half of the XID that
    /// made it: another version that comes to the same address has a queue of its own.
    Tuple { database: Oid, relation: Oid, tid: Tid, version: u32 },
    /// A transaction: listed and waited for, not acquired.
    Transaction(Xid),
    /// A virtual transaction: listed and waited for, not acquired.
    Virtual(u32, u32),
    /// Any other catalog object.
    Object { database: Oid, class: Oid, object: Oid, sub: u16 },
    /// `pg_advisory_lock`: a key of 64 bits (kind 1: high half, low half) or two of 32 (kind 2).
    Advisory { database: Oid, key1: u32, key2: u32, kind: u16 },
    /// `pg_database.datfrozenxid` is being changed.
    DatabaseFrozenIds { database: Oid },
}

impl LockTag {
    /// An advisory lock by one key.
    pub fn advisory(database: Oid, key: i64) -> LockTag {
        let key = key as u64;
        LockTag::Advisory { database, key1: (key >> 32) as u32, key2: key as u32, kind: 1 }
    }
    /// An advisory lock by two keys.
    pub fn advisory2(database: Oid, key1: i32, key2: i32) -> LockTag {
        LockTag::Advisory { database, key1: key1 as u32, key2: key2 as u32, kind: 2 }
    }
    /// Is it a relation?
    pub fn is_relation(&self) -> bool {
        matches!(self, LockTag::Relation { .. })
    }
    /// Is it an advisory lock?
    pub fn is_advisory(&self) -> bool {
        matches!(self, LockTag::Advisory { .. })
    }
    /// As `pg_locks.locktype`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            LockTag::Relation { .. } => "relation",
            LockTag::Extend { .. } => "extend",
            LockTag::Tuple { .. } => "tuple",
            LockTag::Transaction(_) => "transactionid",
            LockTag::Virtual(..) => "virtualxid",
            LockTag::Object { .. } => "object",
            LockTag::Advisory { .. } => "advisory",
            LockTag::DatabaseFrozenIds { .. } => "frozenid",
        }
    }
    /// `wait_event_type` and `wait_event` while waiting for it.
    pub fn wait_event(&self) -> (&'static str, &'static str) {
        ("Lock", self.kind_name())
    }
}

impl fmt::Display for LockTag {
    /// As in the deadlock report.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockTag::Relation { database, relation } => {
                write!(f, "relation {relation} of database {database}")
            }
            LockTag::Extend { database, relation } => {
                write!(f, "extension of relation {relation} of database {database}")
            }
            LockTag::Tuple { database, relation, tid, .. } => {
                write!(f, "tuple {tid} of relation {relation} of database {database}")
            }
            LockTag::Transaction(xid) => write!(f, "transaction {xid}"),
            LockTag::Virtual(a, b) => write!(f, "virtual transaction {a}/{b}"),
            LockTag::Object { database, class, object, .. } => {
                write!(f, "object {object} of class {class} of database {database}")
            }
            LockTag::Advisory { database, key1, key2, kind } => {
                write!(f, "advisory lock [{database},{key1},{key2},{kind}]")
            }
            LockTag::DatabaseFrozenIds { database } => {
                write!(f, "pg_database.datfrozenxid of database {database}")
            }
        }
    }
}
