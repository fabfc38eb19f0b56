//! Identifiers: transaction ids, log positions, block and tuple addresses, relation keys.

use std::fmt;

macro_rules! number {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }
    };
}

number!(
    /// A byte position in the write-ahead log; 0 is "none".
    Lsn(u64)
);
number!(
    /// A transaction id. 64 bits wide everywhere: there is no wraparound.
    Xid(u64)
);
number!(
    /// A commit sequence number: the order in which transactions became visible.
    Csn(u64)
);
number!(
    /// The number of an 8 KiB block within one fork of a relation.
    BlockNumber(u32)
);
number!(
    /// A line pointer's number on its page, counted from 1; 0 is "none".
    OffsetNumber(u16)
);
number!(
    /// The number of a statement within its transaction.
    CommandId(u32)
);
number!(
    /// A catalog object's id, as PostgreSQL's `oid`; 0 is "none".
    Oid(u32)
);

impl Lsn {
    /// No position.
    pub const INVALID: Lsn = Lsn(0);
    /// True unless this is [`Lsn::INVALID`].
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Lsn {
    /// PostgreSQL's form, `HHHHHHHH/LLLLLLLL` in hexadecimal without leading zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xFFFF_FFFF)
    }
}

impl Xid {
    /// No transaction.
    pub const INVALID: Xid = Xid(0);
    /// The transaction that made the initial catalogs: always committed, visible to all.
    pub const BOOTSTRAP: Xid = Xid(1);
    /// Stands for any transaction old enough to be visible to all.
    pub const FROZEN: Xid = Xid(2);
    /// Newer than any.
    pub const MAX: Xid = Xid(u64::MAX);
    /// The first id an ordinary transaction can have.
    pub const FIRST_NORMAL: Xid = Xid(3);
    /// True unless this is [`Xid::INVALID`].
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
    /// True for ids that were assigned to a transaction.
    pub fn is_normal(self) -> bool {
        self.0 >= 3
    }
    /// The next id.
    pub fn next(self) -> Xid {
        Xid(self.0 + 1)
    }
}

impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Csn {
    /// No commit.
    pub const INVALID: Csn = Csn(0);
}

impl BlockNumber {
    /// No block.
    pub const INVALID: BlockNumber = BlockNumber(u32::MAX);
    /// The next block.
    pub fn next(self) -> BlockNumber {
        BlockNumber(self.0 + 1)
    }
}

impl fmt::Display for BlockNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl OffsetNumber {
    /// No line pointer.
    pub const INVALID: OffsetNumber = OffsetNumber(0);
    /// The first line pointer of a page.
    pub const FIRST: OffsetNumber = OffsetNumber(1);
    /// The next line pointer.
    pub fn next(self) -> OffsetNumber {
        OffsetNumber(self.0 + 1)
    }
    /// The index into the line-pointer array.
    pub fn index(self) -> usize {
        usize::from(self.0) - 1
    }
}

impl fmt::Display for OffsetNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Oid {
    /// No object.
    pub const INVALID: Oid = Oid(0);
    /// Objects made by users start here, as in PostgreSQL.
    pub const FIRST_NORMAL: Oid = Oid(16384);
    /// True unless this is [`Oid::INVALID`].
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The address of a tuple: block and line pointer. Ordered by block, then offset.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tid {
    /// The block.
    pub block: BlockNumber,
    /// The line pointer on it.
    pub offset: OffsetNumber,
}

impl Tid {
    /// No tuple.
    pub const INVALID: Tid = Tid { block: BlockNumber::INVALID, offset: OffsetNumber::INVALID };
    /// The address made of `block` and `offset`.
    pub fn new(block: BlockNumber, offset: OffsetNumber) -> Tid {
        Tid { block, offset }
    }
    /// True unless the offset is 0.
    pub fn is_valid(self) -> bool {
        self.offset.0 != 0
    }
    /// Six bytes, little-endian: block (4), offset (2).
    pub fn to_bytes(self) -> [u8; 6] {
        let b = self.block.0.to_le_bytes();
        let o = self.offset.0.to_le_bytes();
        [b[0], b[1], b[2], b[3], o[0], o[1]]
    }
    /// The inverse of [`Tid::to_bytes`].
    pub fn from_bytes(bytes: [u8; 6]) -> Tid {
        let [a, b, c, d, e, f] = bytes;
        Tid {
            block: BlockNumber(u32::from_le_bytes([a, b, c, d])),
            offset: OffsetNumber(u16::from_le_bytes([e, f])),
        }
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.block.0, self.offset.0)
    }
}

/// Which file set a relation's pages live in: the database's OID (0 for catalogs shared by all
/// databases) and the relation's file number (`pg_class.relfilenode`). Never reused while a
/// page of its former owner could still be cached or replayed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelationId {
    /// `pg_database.oid`, 0 for shared catalogs.
    pub database: Oid,
    /// `pg_class.relfilenode`.
    pub file_number: u32,
}

impl fmt::Display for RelationId {
    /// The path of the main fork relative to the data folder.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.database.0 == 0 {
            write!(f, "global/{}", self.file_number)
        } else {
            write!(f, "base/{}/{}", self.database.0, self.file_number)
        }
    }
}

/// One of the files a relation consists of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Fork {
    /// Tuples or index entries.
    Main = 0,
    /// The free-space map.
    FreeSpaceMap = 1,
    /// The visibility map.
    VisibilityMap = 2,
    /// What an unlogged relation is reset to after a crash.
    Init = 3,
}

impl Fork {
    /// Every fork, in the order of their numbers.
    pub const ALL: [Fork; 4] = [Fork::Main, Fork::FreeSpaceMap, Fork::VisibilityMap, Fork::Init];
    /// The fork with number `n`.
    pub fn from_number(n: u8) -> Option<Fork> {
        Fork::ALL.get(usize::from(n)).copied()
    }
    /// What the fork's file name ends with.
    pub fn suffix(self) -> &'static str {
        match self {
            Fork::Main => "",
            Fork::FreeSpaceMap => "_fsm",
            Fork::VisibilityMap => "_vm",
            Fork::Init => "_init",
        }
    }
    /// PostgreSQL's name: main, fsm, vm, init.
    pub fn name(self) -> &'static str {
        match self {
            Fork::Main => "main",
            Fork::FreeSpaceMap => "fsm",
            Fork::VisibilityMap => "vm",
            Fork::Init => "init",
        }
    }
}

/// The address of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageTag {
    /// The relation.
    pub relation: RelationId,
    /// The fork of it.
    pub fork: Fork,
    /// The block of that.
    pub block: BlockNumber,
}

impl fmt::Display for PageTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} of relation \"{}{}\"", self.block, self.relation, self.fork.suffix())
    }
}
