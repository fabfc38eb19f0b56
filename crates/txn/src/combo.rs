//! Combo command ids.
//!
//! # Purpose
//! A tuple header has room for one command id. A tuple inserted and deleted by the same transaction needs two:
//! the header then holds the number of a pair in this table. It means something to its own transaction only.

use base::CommandId;
use std::collections::HashMap;

/// The pairs of one transaction.
#[derive(Default)]
pub struct ComboCommands {
    pairs: Vec<(CommandId, CommandId)>,
    numbers: HashMap<(CommandId, CommandId), u32>,
}

impl ComboCommands {
    /// The number that stands for (cmin, cmax).
    pub fn number(&mut self, cmin: CommandId, cmax: CommandId) -> CommandId {
        let next = self.pairs.len() as u32;
        let n = *self.numbers.entry((cmin, cmax)).or_insert(next);
        if n == next {
            self.pairs.push((cmin, cmax));
        }
        CommandId(n)
    }
    /// The pair that `number` stands for.
    pub fn pair(&self, number: CommandId) -> Option<(CommandId, CommandId)> {
        self.pairs.get(number.0 as usize).copied()
    }
    /// Forgets everything, at the transaction's end.
    pub fn clear(&mut self) {
        if !self.pairs.is_empty() {
            self.pairs = Vec::new();
            self.numbers = HashMap::new();
        }
    }
}
