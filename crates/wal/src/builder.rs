//! Building a record.

use crate::record::{
    FLAG_APPLY, FLAG_COMPRESSED, FLAG_IMAGE, FLAG_SAME_RELATION, FLAG_WILL_INIT, HEADER_SIZE,
    RECORD_SIZE_MAX, ResourceManager,
};
use base::{Lsn, PageTag, Xid};
use page::{PAGE_SIZE, Page};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::BitOr;

/// How a record treats a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockFlags(u8);

impl BlockFlags {
    /// Nothing special: a whole page's image when one is needed.
    pub const NONE: BlockFlags = BlockFlags(0);
    /// What lies between the page's lower and upper means nothing and is left out of an image.
    pub const STANDARD: BlockFlags = BlockFlags(1);
    /// Redo makes the page anew from the data: no image is needed.
    pub const WILL_INIT: BlockFlags = BlockFlags(2);
    /// An image in any case.
    pub const FORCE_IMAGE: BlockFlags = BlockFlags(4);
    /// No image in any case.
    pub const NO_IMAGE: BlockFlags = BlockFlags(8);
    /// The block's data is kept even beside an image.
    pub const KEEP_DATA: BlockFlags = BlockFlags(16);

    /// Are all flags of `other` set?
    pub fn contains(self, other: BlockFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for BlockFlags {
    type Output = BlockFlags;
    fn bitor(self, other: BlockFlags) -> BlockFlags {
        BlockFlags(self.0 | other.0)
    }
}

struct Block<'a> {
    id: u8,
    flags: BlockFlags,
    tag: PageTag,
    page: &'a Page,
    data: Bytes,
    /// Its image, made beforehand.
    ready: Option<Image>,
}

impl Block<'_> {
    /// May the record carry the page's image, and does it?
    fn wants_image(&self, bound: u64) -> (bool, bool) {
        let may = !self.flags.contains(BlockFlags::WILL_INIT)
            && !self.flags.contains(BlockFlags::NO_IMAGE);
        let wanted =
            self.flags.contains(BlockFlags::FORCE_IMAGE) || (may && self.page.lsn().0 < bound);
        (may, wanted)
    }
}

type Bytes = smallvec::SmallVec<[u8; 64]>;

/// A record to be inserted.
pub struct RecordBuilder<'a> {
    rmgr: ResourceManager,
    info: u8,
    xid: Xid,
    data: smallvec::SmallVec<[u8; 128]>,
    blocks: smallvec::SmallVec<[Block<'a>; 2]>,
}

/// What a record takes in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordCost {
    /// Bytes, padding and all.
    pub bytes: u64,
    /// Pages whose image is in it.
    pub images: u64,
}

/// What assembling found out.
pub(crate) struct Assembled {
    /// Images in it.
    pub images: u64,
    /// The bytes of these.
    pub image_bytes: u64,
    /// The smallest LSN of a page that went without an image.
    pub bare_lsn_min: u64,
    /// CRC-32C of all bytes from 8 on.
    pub crc: u32,
}

impl<'a> RecordBuilder<'a> {
    /// A record of `rmgr`'s kind `info`, written by transaction `xid` (or [`Xid::INVALID`]).
    pub fn new(rmgr: ResourceManager, info: u8, xid: Xid) -> Self {
        RecordBuilder {
            rmgr,
            info,
            xid,
            data: smallvec::SmallVec::new(),
            blocks: smallvec::SmallVec::new(),
        }
    }

    /// Appends to the main data.
    pub fn data(&mut self, bytes: &[u8]) -> &mut Self {
        self.data.extend_from_slice(bytes);
        self
    }

    /// Names a page that the record changes, as it is after the change, its LSN still the old one.
    ///
    /// # Panics
    /// If `id` is taken.
    pub fn block(&mut self, id: u8, tag: PageTag, page: &'a Page, flags: BlockFlags) -> &mut Self {
        assert!(self.blocks.iter().all(|b| b.id != id), "block {id} named twice");
        self.blocks.push(Block { id, flags, tag, page, data: Bytes::new(), ready: None });
        self
    }

    /// Appends to the data of block `id`. It is left out if the page's image goes into the record,
    /// unless the block was named with [`BlockFlags::KEEP_DATA`].
    ///
    /// # Panics
    /// If no block `id` was named.
    pub fn block_data(&mut self, id: u8, bytes: &[u8]) -> &mut Self {
        let block = self.blocks.iter_mut().find(|b| b.id == id);
        block.expect("block_data after block").data.extend_from_slice(bytes);
        self
    }

    /// Makes the images of the blocks named so far, if they will be needed.
    pub(crate) fn prepare(&mut self, image_bound: u64, compress: bool) {
        for block in &mut self.blocks {
            if block.wants_image(image_bound).1 {
                block.ready = Some(Image::of(block.page, block.flags, compress));
            }
        }
    }

    /// Writes the record into `out`, all but its checksum, without padding. A page whose LSN is
    /// below `image_bound` gets an image.
    pub(crate) fn assemble(
        &self,
        out: &mut Vec<u8>,
        image_bound: u64,
        compress: bool,
    ) -> Assembled {
        let mut result = Assembled { images: 0, image_bytes: 0, bare_lsn_min: u64::MAX, crc: 0 };
        out.clear();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.xid.0.to_le_bytes());
        assert!(self.blocks.len() <= 255, "too many blocks in a record");
        out.extend_from_slice(&[self.rmgr as u8, self.info, self.blocks.len() as u8, 0]);
        debug_assert_eq!(out.len(), HEADER_SIZE);
        let mut images = smallvec::SmallVec::<[Option<Cow<'_, Image>>; 2]>::new();
        let mut previous = None;
        for block in &self.blocks {
            let (may, wanted) = block.wants_image(image_bound);
            if may && !wanted {
                result.bare_lsn_min = result.bare_lsn_min.min(block.page.lsn().0);
            }
            let image = wanted.then(|| match &block.ready {
                Some(ready) => Cow::Borrowed(ready),
                None => Cow::Owned(Image::of(block.page, block.flags, compress)),
            });
            let mut flags = block.tag.fork as u8;
            if previous == Some(block.tag.relation) {
                flags |= FLAG_SAME_RELATION;
            }
            if block.flags.contains(BlockFlags::WILL_INIT) {
                flags |= FLAG_WILL_INIT;
            }
            if let Some(image) = &image {
                flags |= FLAG_IMAGE | FLAG_APPLY;
                if image.compressed.is_some() {
                    flags |= FLAG_COMPRESSED;
                }
            }
            let keep_data = image.is_none() || block.flags.contains(BlockFlags::KEEP_DATA);
            let data_len = if keep_data { block.data.len() } else { 0 };
            let data_len = u16::try_from(data_len).expect("block data under 64 KiB");
            out.extend_from_slice(&[block.id, flags]);
            out.extend_from_slice(&data_len.to_le_bytes());
            out.extend_from_slice(&block.tag.block.0.to_le_bytes());
            if previous != Some(block.tag.relation) {
                out.extend_from_slice(&block.tag.relation.database.0.to_le_bytes());
                out.extend_from_slice(&block.tag.relation.file_number.to_le_bytes());
                previous = Some(block.tag.relation);
            }
            if let Some(image) = &image {
                for n in [image.hole_offset, image.hole_len, image.stored_len()] {
                    out.extend_from_slice(&(n as u16).to_le_bytes());
                }
                result.images += 1;
                result.image_bytes += image.stored_len() as u64;
            }
            images.push(image);
        }
        for (block, image) in self.blocks.iter().zip(&images) {
            if let Some(image) = image {
                image.append(block.page, out);
            }
            if image.is_none() || block.flags.contains(BlockFlags::KEEP_DATA) {
                out.extend_from_slice(&block.data);
            }
        }
        out.extend_from_slice(&self.data);
        assert!(out.len() <= RECORD_SIZE_MAX, "record too long");
        let len = out.len() as u32;
        out[..4].copy_from_slice(&len.to_le_bytes());
        result.crc = crc32c::crc32c(&out[8..]);
        result
    }
}

#[derive(Clone)]
struct Image {
    hole_offset: usize,
    hole_len: usize,
    compressed: Option<Box<[u8]>>,
}

thread_local! {
    static PACKING: RefCell<Packing> = RefCell::new(Packing {
        table: lz4_flex::block::CompressTable::small(),
        output: vec![0; lz4_flex::block::get_maximum_output_size(PAGE_SIZE)].into(),
        kept: vec![0; PAGE_SIZE].into(),
    });
}

struct Packing {
    table: lz4_flex::block::CompressTable,
    output: Box<[u8]>,
    /// The page without its hole.
    kept: Box<[u8]>,
}

impl Image {
    fn of(page: &Page, flags: BlockFlags, compress: bool) -> Image {
        let (lower, upper) = (page.lower(), page.upper());
        let hole = if flags.contains(BlockFlags::STANDARD)
            && lower >= page::HEADER_SIZE
            && lower < upper
            && upper <= PAGE_SIZE
        {
            lower..upper
        } else {
            0..0
        };
        let mut image = Image { hole_offset: hole.start, hole_len: hole.len(), compressed: None };
        if compress {
            let bytes = page.bytes();
            let kept_len = PAGE_SIZE - hole.len();
            image.compressed = PACKING.with_borrow_mut(|p| {
                p.kept[..hole.start].copy_from_slice(&bytes[..hole.start]);
                p.kept[hole.start..kept_len].copy_from_slice(&bytes[hole.end..]);
                lz4_flex::block::compress_into_with_table(
                    &p.kept[..kept_len],
                    &mut p.output,
                    &mut p.table,
                )
                .ok()
                .filter(|n| *n < kept_len)
                .map(|n| p.output[..n].into())
            });
        }
        image
    }

    fn stored_len(&self) -> usize {
        match &self.compressed {
            Some(bytes) => bytes.len(),
            None => PAGE_SIZE - self.hole_len,
        }
    }

    fn append(&self, page: &Page, out: &mut Vec<u8>) {
        match &self.compressed {
            Some(bytes) => out.extend_from_slice(bytes),
            None => {
                out.extend_from_slice(&page.bytes()[..self.hole_offset]);
                out.extend_from_slice(&page.bytes()[self.hole_offset + self.hole_len..]);
            }
        }
    }
}

/// The bytes that the image of a page takes in a record.
pub fn image_len(page: &Page, compress: bool) -> usize {
    Image::of(page, BlockFlags::STANDARD, compress).stored_len()
}

/// The bound for which every page with an LSN up to the redo point gets an image.
pub(crate) fn image_bound(redo: Lsn, full_page_writes: bool) -> u64 {
    if full_page_writes { redo.0 + 1 } else { 0 }
}
