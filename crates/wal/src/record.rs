//! What a record is, and its form as bytes.
//!
//! # Layout
//! ```text
//! header   0 length u32 (header to end, without padding)
//!          4 checksum u32: CRC-32C of bytes 8..length, then length (4 bytes), then the LSN (8 bytes)
//!          8 XID u64 | 16 resource manager u8 | 17 info u8 | 18 number of blocks u8 | 19 zero u8
//! blocks   each: 0 id u8 | 1 flags u8 | 2 data length u16 | 4 block number u32
//!                [database u32, file number u32]       unless the relation is the block's before
//!                [hole offset u16, hole length u16, stored length u16]      if there is an image
//! bodies   each block's image, then its data, in the blocks' order
//! data     the rest
//! padding  zeros to a multiple of 4
//! ```

use base::{BlockNumber, Fork, Lsn, Oid, PageTag, RelationId, Xid};
use page::{PAGE_SIZE, Page};
use smallvec::SmallVec;

pub(crate) const HEADER_SIZE: usize = 20;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 4;
/// No record is longer: a length above it is damage.
pub(crate) const RECORD_SIZE_MAX: usize = 1 << 26;

pub(crate) const FLAG_FORK_MASK: u8 = 0x03;
pub(crate) const FLAG_SAME_RELATION: u8 = 0x04;
pub(crate) const FLAG_WILL_INIT: u8 = 0x08;
pub(crate) const FLAG_IMAGE: u8 = 0x10;
pub(crate) const FLAG_COMPRESSED: u8 = 0x20;
pub(crate) const FLAG_APPLY: u8 = 0x40;

/// Who wrote a record and knows how to redo it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum ResourceManager {
    /// Checkpoints and the log itself.
    Wal = 0,
    /// Commits and aborts.
    Transaction = 1,
    /// Relation files.
    Storage = 2,
    /// Tables.
    Heap = 3,
    /// B-trees.
    Btree = 4,
    /// The commit log's pages.
    CommitLog = 5,
    /// Sequences.
    Sequence = 6,
    /// The relation map, database folders.
    Catalog = 7,
}

impl ResourceManager {
    /// All of them, in the order of their numbers.
    pub const ALL: [ResourceManager; 8] = [
        ResourceManager::Wal,
        ResourceManager::Transaction,
        ResourceManager::Storage,
        ResourceManager::Heap,
        ResourceManager::Btree,
        ResourceManager::CommitLog,
        ResourceManager::Sequence,
        ResourceManager::Catalog,
    ];
    /// The one with number `n`.
    pub fn from_number(n: u8) -> Option<ResourceManager> {
        ResourceManager::ALL.get(usize::from(n)).copied()
    }
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ResourceManager::Wal => "WAL",
            ResourceManager::Transaction => "Transaction",
            ResourceManager::Storage => "Storage",
            ResourceManager::Heap => "Heap",
            ResourceManager::Btree => "Btree",
            ResourceManager::CommitLog => "CommitLog",
            ResourceManager::Sequence => "Sequence",
            ResourceManager::Catalog => "Catalog",
        }
    }
}

/// A record as it was read.
#[derive(Debug)]
pub struct Record {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it ends: the LSN of the pages it changed.
    pub end_lsn: Lsn,
    /// The transaction that wrote it, if any.
    pub xid: Xid,
    /// Who redoes it.
    pub rmgr: ResourceManager,
    /// The resource manager's own: which kind of record.
    pub info: u8,
    /// Main data.
    pub data: Vec<u8>,
    /// The pages changed.
    pub blocks: Vec<RecordBlock>,
}

/// A page that a record changed.
pub struct RecordBlock {
    /// The number that the writer gave it.
    pub id: u8,
    /// Which page.
    pub tag: PageTag,
    /// The whole page as it was after the change (but for its LSN), if the record carries it.
    pub image: Option<Box<Page>>,
    /// Redo restores the image, if there is one, and does nothing else with the page.
    pub apply_image: bool,
    /// Redo makes the page anew: what is on disk does not matter.
    pub will_init: bool,
    /// The block's data; left out when the record carries an image, unless the writer asked to
    /// keep it.
    pub data: Vec<u8>,
}

impl std::fmt::Debug for RecordBlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordBlock")
            .field("id", &self.id)
            .field("tag", &format_args!("{}", self.tag))
            .field("image", &self.image.is_some())
            .field("will_init", &self.will_init)
            .field("data", &self.data)
            .finish()
    }
}

impl Record {
    /// The block that the writer numbered `id`.
    pub fn block(&self, id: u8) -> Option<&RecordBlock> {
        self.blocks.iter().find(|b| b.id == id)
    }
}

/// The checksum of a whole record (its header included) that starts at `lsn`.
pub(crate) fn checksum(record: &[u8], lsn: Lsn) -> u32 {
    finish_checksum(crc32c::crc32c(&record[8..]), record.len() as u32, lsn)
}

/// Adds the length and the position to the checksum of bytes `8..`.
pub(crate) fn finish_checksum(crc: u32, len: u32, lsn: Lsn) -> u32 {
    let mut tail = [0; 12];
    tail[..4].copy_from_slice(&len.to_le_bytes());
    tail[4..].copy_from_slice(&lsn.0.to_le_bytes());
    crc32c::crc32c_append(crc, &tail)
}

/// `len` with the padding that follows it.
pub(crate) fn padded(len: u64) -> u64 {
    len.next_multiple_of(ALIGNMENT)
}

/// Takes bytes off the front; never panics on what is not there.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], &'static str> {
        if n > self.0.len() {
            return Err("record ends too early");
        }
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let bytes = self.take(N)?;
        Ok(std::array::from_fn(|i| bytes[i]))
    }
    fn u8(&mut self) -> Result<u8, &'static str> {
        Ok(self.array::<1>()?[0])
    }
    fn u16(&mut self) -> Result<u16, &'static str> {
        Ok(u16::from_le_bytes(self.array()?))
    }
    fn u32(&mut self) -> Result<u32, &'static str> {
        Ok(u32::from_le_bytes(self.array()?))
    }
    fn u64(&mut self) -> Result<u64, &'static str> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

struct ImageHeader {
    hole_offset: usize,
    hole_len: usize,
    stored_len: usize,
    compressed: bool,
}

impl ImageHeader {
    fn restore(&self, stored: &[u8], to: &mut [u8; PAGE_SIZE]) -> Result<(), &'static str> {
        let kept = PAGE_SIZE - self.hole_len;
        let mut unpacked = [0; PAGE_SIZE];
        let bytes = if self.compressed {
            let n = lz4_flex::block::decompress_into(stored, &mut unpacked[..kept])
                .map_err(|_| "page image does not decompress")?;
            if n != kept {
                return Err("page image has the wrong length");
            }
            &unpacked[..kept]
        } else {
            stored
        };
        let hole_end = self.hole_offset + self.hole_len;
        to[..self.hole_offset].copy_from_slice(&bytes[..self.hole_offset]);
        to[self.hole_offset..hole_end].fill(0);
        to[hole_end..].copy_from_slice(&bytes[self.hole_offset..]);
        Ok(())
    }
}

/// What stands before the blocks' heads.
struct Head {
    xid: Xid,
    rmgr: ResourceManager,
    info: u8,
    blocks: u8,
}

/// What stands before the images and the data: of each page that the record changed.
struct BlockHead {
    id: u8,
    flags: u8,
    tag: PageTag,
    data_len: usize,
    image: Option<ImageHeader>,
}

/// Reads a record's head and leaves the rest.
fn read_head(input: &mut Input<'_>) -> Result<Head, &'static str> {
    let whole_len = input.0.len();
    let len = input.u32()?;
    let _checksum = input.u32()?;
    if len as usize != whole_len {
        return Err("record has the wrong length");
    }
    let xid = Xid(input.u64()?);
    let rmgr =
        ResourceManager::from_number(input.u8()?).ok_or("record of an unknown resource manager")?;
    let (info, blocks) = (input.u8()?, input.u8()?);
    if input.u8()? != 0 {
        return Err("record has unknown flags");
    }
    Ok(Head { xid, rmgr, info, blocks })
}

/// `relation` is that of the block before.
fn read_block_head(
    input: &mut Input<'_>,
    relation: &mut Option<RelationId>,
) -> Result<BlockHead, &'static str> {
    let id = input.u8()?;
    let flags = input.u8()?;
    if flags & 0x80 != 0 {
        return Err("block has unknown flags");
    }
    let data_len = usize::from(input.u16()?);
    let block = BlockNumber(input.u32()?);
    if flags & FLAG_SAME_RELATION == 0 {
        *relation = Some(RelationId { database: Oid(input.u32()?), file_number: input.u32()? });
    }
    let relation = relation.ok_or("first block names no relation")?;
    let fork = Fork::from_number(flags & FLAG_FORK_MASK).ok_or("block of an unknown fork")?;
    let image = if flags & FLAG_IMAGE != 0 { Some(read_image_header(input, flags)?) } else { None };
    let tag = PageTag { relation, fork, block };
    Ok(BlockHead { id, flags, tag, data_len, image })
}

fn read_image_header(input: &mut Input<'_>, flags: u8) -> Result<ImageHeader, &'static str> {
    let image = ImageHeader {
        hole_offset: usize::from(input.u16()?),
        hole_len: usize::from(input.u16()?),
        stored_len: usize::from(input.u16()?),
        compressed: flags & FLAG_COMPRESSED != 0,
    };
    let kept = PAGE_SIZE
        .checked_sub(image.hole_len)
        .filter(|_| image.hole_offset + image.hole_len <= PAGE_SIZE)
        .ok_or("page image has a wrong hole")?;
    if !image.compressed && image.stored_len != kept {
        return Err("page image has the wrong length");
    }
    Ok(image)
}

/// The pages that a whole record changed.
pub(crate) fn tags(bytes: &[u8]) -> Result<SmallVec<[PageTag; 4]>, &'static str> {
    let mut input = Input(bytes);
    let count = read_head(&mut input)?.blocks;
    let (mut relation, mut tags) = (None, SmallVec::new());
    for _ in 0..count {
        tags.push(read_block_head(&mut input, &mut relation)?.tag);
    }
    Ok(tags)
}

/// A record in its parts, which are where they were read.
pub struct RecordParts<'b> {
    head: Head,
    /// The pages changed.
    pub blocks: SmallVec<[BlockParts<'b>; 4]>,
    data: &'b [u8],
}

/// A page that a record changed, and what it has of it.
pub struct BlockParts<'b> {
    /// Which page.
    pub tag: PageTag,
    id: u8,
    flags: u8,
    image: Option<(ImageHeader, &'b [u8])>,
    data: &'b [u8],
}

impl BlockParts<'_> {
    /// Is there an image that redo is to put in the page's place, and do nothing else?
    pub fn is_restored(&self) -> bool {
        self.image.is_some() && self.flags & FLAG_APPLY != 0
    }

    /// Puts the whole page of the image in `to`, its LSN being the one before the change; false if there is no image.
    ///
    /// # Errors
    /// What makes no sense; `to` is worth nothing then.
    pub fn restore(&self, to: &mut [u8; PAGE_SIZE]) -> Result<bool, &'static str> {
        match self.image {
            Some((ref header, stored)) => header.restore(stored, to).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Finds the parts of a whole record (its length and checksum checked already, but any bytes are safe).
pub(crate) fn parts(bytes: &[u8]) -> Result<RecordParts<'_>, &'static str> {
    let mut input = Input(bytes);
    let head = read_head(&mut input)?;
    let (mut relation, mut heads) = (None, SmallVec::<[BlockHead; 4]>::new());
    for _ in 0..head.blocks {
        heads.push(read_block_head(&mut input, &mut relation)?);
    }
    let mut blocks = SmallVec::with_capacity(heads.len());
    for BlockHead { id, flags, tag, data_len, image } in heads {
        let image = match image {
            Some(header) => {
                let stored = input.take(header.stored_len)?;
                Some((header, stored))
            }
            None => None,
        };
        blocks.push(BlockParts { tag, id, flags, image, data: input.take(data_len)? });
    }
    Ok(RecordParts { head, blocks, data: input.0 })
}

impl RecordParts<'_> {
    /// The record that starts at `lsn` and has `len` bytes. Of blocks that are not `wanted` neither the image nor the data is there.
    pub(crate) fn record(
        &self,
        lsn: Lsn,
        len: usize,
        wanted: impl Fn(&BlockParts<'_>) -> bool,
    ) -> Result<Record, &'static str> {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for parts in &self.blocks {
            let wanted = wanted(parts);
            let image = match parts.image {
                Some((ref header, stored)) if wanted => {
                    let mut page = Page::new_zeroed();
                    header.restore(stored, page.bytes_mut())?;
                    Some(page)
                }
                _ => None,
            };
            blocks.push(RecordBlock {
                id: parts.id,
                tag: parts.tag,
                image,
                apply_image: parts.flags & FLAG_APPLY != 0,
                will_init: parts.flags & FLAG_WILL_INIT != 0,
                data: if wanted { parts.data.to_vec() } else { Vec::new() },
            });
        }
        let end_lsn = Lsn(lsn.0 + padded(len as u64));
        let Head { xid, rmgr, info, .. } = self.head;
        Ok(Record { lsn, end_lsn, xid, rmgr, info, data: self.data.to_vec(), blocks })
    }
}
