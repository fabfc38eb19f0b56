//! Rows on their way from node to node.

use base::Result;
use types::Datum;

/// Rows of one width, one after the other. Its memory is reused.
#[derive(Default, Debug)]
pub struct Batch {
    width: usize,
    len: usize,
    data: Vec<Datum>,
}

/// Rows a node hands on at most at once.
pub const BATCH_ROWS: usize = 128;

/// Of long values so many bytes are read before rows are handed out: of a whole batch it may be too much at once.
const SETTLED_BYTES: usize = 1 << 20;

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }
    /// Empties it, for rows of `width` columns.
    #[inline]
    pub fn reset(&mut self, width: usize) {
        self.data.clear();
        self.width = width;
        self.len = 0;
    }
    /// Rows in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Columns of each row.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }
    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &[Datum] {
        &self.data[i * self.width..(i + 1) * self.width]
    }
    /// Row `i`, to be changed.
    #[inline]
    pub fn row_mut(&mut self, i: usize) -> &mut [Datum] {
        &mut self.data[i * self.width..(i + 1) * self.width]
    }
    /// Reads what is late in its first rows: in `max` of them at most, and in no more once that has been [`SETTLED_BYTES`]. Gives how many rows
    /// that is.
    ///
    /// # Errors
    /// Corruption, I/O.
    pub(crate) fn settle(&mut self, max: usize) -> Result<usize> {
        let mut bytes = 0;
        for i in 0..self.len.min(max) {
            if bytes >= SETTLED_BYTES {
                return Ok(i);
            }
            for value in self.row_mut(i) {
                if let Datum::Late(late) = value {
                    bytes += late.len();
                    value.settle()?;
                }
            }
        }
        Ok(self.len.min(max))
    }
    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = &[Datum]> {
        (0..self.len).map(|i| self.row(i))
    }
    /// Adds a copy of a row.
    #[inline]
    pub fn push(&mut self, row: &[Datum]) {
        debug_assert_eq!(row.len(), self.width);
        self.data.extend_from_slice(row);
        self.len += 1;
    }
    /// Adds a row from values.
    #[inline]
    pub fn push_values(&mut self, values: impl IntoIterator<Item = Datum>) {
        self.data.extend(values);
        self.len += 1;
        debug_assert_eq!(self.data.len(), self.len * self.width);
    }
    /// The row behind the last one, which [`Batch::end_row`] makes one of them: of NULLs, or as it was left if it was begun before. Whoever
    /// begins rows and leaves them drops the last of them ([`Batch::drop_partial`]) before anybody else has the batch.
    #[inline]
    pub(crate) fn begin_row(&mut self) -> &mut [Datum] {
        let from = self.len * self.width;
        if self.data.len() == from {
            self.data.resize_with(from + self.width, Datum::default);
        }
        &mut self.data[from..]
    }
    /// Adds a value of a row that [`Batch::end_row`] ends.
    #[inline]
    pub fn push_value(&mut self, value: Datum) {
        self.data.push(value);
    }
    /// Adds the row whose values `read` appends; false if it says that there is none.
    pub(crate) fn read_row(
        &mut self,
        read: impl FnOnce(&mut Vec<Datum>) -> Result<bool>,
    ) -> Result<bool> {
        let more = read(&mut self.data)?;
        self.len += usize::from(more);
        debug_assert_eq!(self.data.len(), self.len * self.width);
        Ok(more)
    }
    /// Ends a row.
    #[inline]
    pub fn end_row(&mut self) {
        self.len += 1;
        debug_assert_eq!(self.data.len(), self.len * self.width);
    }
    /// Drops values pushed for a row that was not ended.
    #[inline]
    pub fn drop_partial(&mut self) {
        self.data.truncate(self.len * self.width);
    }
    /// Keeps the first `n` rows.
    pub fn truncate(&mut self, n: usize) {
        if n < self.len {
            self.len = n;
            self.data.truncate(n * self.width);
        }
    }
    /// Splits the rows from `n` on off.
    pub fn split_off(&mut self, n: usize) -> Batch {
        let n = n.min(self.len);
        let rest = Batch {
            width: self.width,
            len: self.len - n,
            data: self.data.split_off(n * self.width),
        };
        self.len = n;
        rest
    }
    /// Takes the rows out of the front.
    pub fn skip(&mut self, n: usize) {
        let n = n.min(self.len);
        self.data.drain(..n * self.width);
        self.len -= n;
    }
    /// Moves a row's values out, leaving NULLs.
    pub fn take_row(&mut self, i: usize) -> Vec<Datum> {
        self.row_mut(i).iter_mut().map(std::mem::take).collect()
    }
}

/// Bytes a row takes in memory, about.
pub(crate) fn row_bytes(row: &[Datum]) -> usize {
    std::mem::size_of_val(row) + row.iter().map(heap_bytes).sum::<usize>() + 24
}

fn heap_bytes(d: &Datum) -> usize {
    match d {
        Datum::Text(t) if t.len() > 24 => t.len(),
        Datum::Bytea(b) => b.len() + 16,
        Datum::Numeric(_) => 48,
        Datum::Interval(_) => 16,
        Datum::Jsonb(j) => j.bytes().len() + 16,
        Datum::Array(a) => {
            64 + a.elements.len() * size_of::<Datum>()
                + a.elements.iter().map(heap_bytes).sum::<usize>()
        }
        Datum::Record(r) => 64 + r.fields.len() * size_of::<Datum>(),
        // What is compressed in its row is held as it is there.
        Datum::Late(v) => 96 + v.len_in_row() + if v.is_read() { v.len() } else { 0 },
        _ => 0,
    }
}

/// An error that waits until the rows before it have been handed on: a client sees them first, and who wants no more rows does not meet it.
#[derive(Default, Debug)]
pub(crate) struct Later(Option<base::Error>);

impl Later {
    /// The error that was kept.
    ///
    /// # Errors
    /// That.
    #[inline]
    pub(crate) fn raise(&mut self) -> Result<()> {
        match self.0.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
    /// Keeps it while `out` has rows, of which the one that was being made is dropped.
    ///
    /// # Errors
    /// The error, if there are none.
    #[cold]
    pub(crate) fn keep(&mut self, error: base::Error, out: &mut Batch) -> Result<()> {
        out.drop_partial();
        if out.is_empty() {
            return Err(error);
        }
        self.0 = Some(error);
        Ok(())
    }
    /// All begins again.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
