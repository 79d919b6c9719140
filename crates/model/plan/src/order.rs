//! The order of a plan's trials.

use super::Cell;
use serde::{Deserialize, Serialize};

/// The order of the trials in each repeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Order {
    /// The order of the cells in the plan, the same in each repeat. Journals without this key used
    /// it.
    #[default]
    File,
    /// Randomised blocks: each repeat is a block with a separate order.
    Random {
        /// The seed of all orders; `None` until the run begins and draws one.
        seed: Option<u32>,
    },
}

impl Order {
    /// The same order, with this seed if it needs one and none is given.
    #[must_use]
    pub const fn with_seed(self, seed: u32) -> Self {
        match self {
            Self::Random { seed: None } => Self::Random { seed: Some(seed) },
            given => given,
        }
    }

    /// The cells in the order of a repeat, from 1: a pure function of seed, repeat and the number
    /// of cells in each group.
    ///
    /// The groups are shuffled, and the cells within each group: cells that are compared with one
    /// another stay neighbours, so that a drift of the machine affects them equally. An even repeat
    /// reverses the order of the one before it, so that over both each cell of a group runs equally
    /// often before and after each other cell.
    pub(super) fn cells<'c>(&self, cells: &'c [Cell], repeat: u32) -> Vec<&'c Cell> {
        // The order of the file, or a seed that no run has drawn yet.
        let Self::Random { seed: Some(seed) } = *self else {
            return cells.iter().collect();
        };
        let pair = repeat.div_ceil(2);
        // Both repeats of a pair draw the same order, which the second one reverses. A run that
        // is resumed in any repeat needs no state.
        let mut random = SplitMix64(u64::from(seed) << 32 | u64::from(pair));
        // Cells of one group are neighbours in a plan, so chunks are whole groups.
        let of_one = |a: &Cell, b: &Cell| a.group == b.group;
        let groups = cells.chunk_by(of_one).map(|group| group.iter().collect());
        let mut groups: Vec<Vec<&Cell>> = groups.collect();
        for group in &mut groups {
            random.shuffle(group);
        }
        random.shuffle(&mut groups);
        let mut order = groups.concat();
        if repeat.is_multiple_of(2) {
            order.reverse();
        }
        order
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014). The recorded seed must give the same order in every
/// later version, so the generator belongs to the journal's format.
struct SplitMix64(u64);

impl SplitMix64 {
    /// A number from 0 to `limit` - 1. The bias of the multiplication is below `limit` / 2^64.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * limit as u128) >> 64) as usize
    }

    /// Fisher and Yates: each order is equally likely.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}
