//! Sorting what is in the order of the first keys already: piece by piece, so that a LIMIT is met without reading everything.
//!
//! # Invariants
//! A piece ends only where the presorted keys change: every row of it comes before every row that is still to be read.

use super::batch::{BATCH_ROWS, Batch};
use super::sort::{Key, KeyPlace, Sorter, compare_rows, extend_row, places};
use super::{Cx, Node};
use base::Result;
use types::Datum;

/// A piece has at least so many rows, if there are as many: neighbours of few rows are sorted together.
const LEAST_ROWS: usize = 64;
/// The first read of the input; later ones are larger.
const FIRST_READ: usize = 32;

pub(crate) struct IncrementalSort {
    input: Box<dyn Node>,
    keys: Vec<Key>,
    places: Vec<KeyPlace>,
    presorted: usize,
    /// The input's columns, and the values of keys behind them.
    width: usize,
    extra: usize,
    bound: Option<usize>,
    state: State,
}

#[derive(Default)]
struct State {
    piece: Option<Sorter>,
    /// What has been read of the input and not been sorted: from `at` on.
    batch: Batch,
    at: usize,
    read: usize,
    ended: bool,
    given: usize,
}

impl IncrementalSort {
    pub(crate) fn new(
        input: Box<dyn Node>,
        keys: Vec<Key>,
        presorted: usize,
        width: usize,
    ) -> IncrementalSort {
        let (places, extra) = places(&keys, width);
        let state = State::default();
        IncrementalSort { input, keys, places, presorted, width, extra, bound: None, state }
    }

    /// Sorts the next rows that belong together. False: there are none.
    fn next_piece(&mut self, cx: &Cx<'_>) -> Result<bool> {
        let left = self.bound.map(|b| b.saturating_sub(self.state.given));
        let list = self.places.clone();
        let mut piece = Sorter::new(list, self.width + self.extra, cx.x.work_mem_bytes, left);
        let prefix = &self.places[..self.presorted];
        let (mut rows, mut row, mut last): (usize, Vec<Datum>, Vec<Datum>) = Default::default();
        let state = &mut self.state;
        loop {
            if state.at >= state.batch.len() {
                if state.ended {
                    break;
                }
                cx.poll()?;
                state.read = (state.read * 2).clamp(FIRST_READ, BATCH_ROWS);
                self.input.next(cx, &mut state.batch, state.read)?;
                state.at = 0;
                state.ended = state.batch.is_empty();
                continue;
            }
            extend_row(&self.keys, state.batch.row(state.at), &mut row, cx)?;
            if rows >= LEAST_ROWS && compare_rows(prefix, &last, &row).is_ne() {
                break;
            }
            piece.push(&row, cx.x.cancel)?;
            rows += 1;
            state.at += 1;
            // From the last row that has to be in it the piece goes on to the end of that row's group.
            if rows >= LEAST_ROWS {
                std::mem::swap(&mut last, &mut row);
            }
        }
        piece.finish(cx.x.cancel)?;
        state.piece = Some(piece);
        Ok(rows > 0)
    }
}

impl Node for IncrementalSort {
    fn next(&mut self, cx: &Cx<'_>, out: &mut Batch, max: usize) -> Result<()> {
        out.reset(self.width);
        if self.bound.is_some_and(|b| self.state.given >= b) {
            return Ok(());
        }
        loop {
            if let Some(piece) = &mut self.state.piece {
                piece.read(out, self.width, max, cx.x.cancel)?;
                if !out.is_empty() {
                    self.state.given += out.len();
                    return Ok(());
                }
            }
            if !self.next_piece(cx)? {
                return Ok(());
            }
        }
    }
    fn let_go(&mut self) {
        self.state = State::default();
        self.input.let_go();
    }
    fn rescan(&mut self, cx: &Cx<'_>) -> Result<()> {
        self.state = State::default();
        self.input.rescan(cx)
    }
    fn set_bound(&mut self, rows: Option<usize>) {
        self.bound = rows;
    }
}
