//! The order in which a plan's trials run.

use super::Cell;
use serde::{Deserialize, Serialize};

/// The order in which the trials of each repeat run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Order {
    /// That of the cells in the plan, the same in each repeat. Journals without this key were made
    /// so.
    #[default]
    File,
    /// Randomised blocks: each repeat is a block with an order of its own.
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
    /// runs in the reverse order of the one before it, so that over both each cell of a group runs
    /// as often before another as after it.
    pub(super) fn cells<'c>(&self, cells: &'c [Cell], repeat: u32) -> Vec<&'c Cell> {
        let Self::Random { seed: Some(seed) } = *self else {
            return cells.iter().collect();
        };
        let pair = repeat.div_ceil(2);
        let mut random = SplitMix64(u64::from(seed) << 32 | u64::from(pair));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use std::collections::BTreeSet;

    /// A plan with this order: four groups of three devices.
    fn plan(head: &str) -> Plan {
        let text = format!(
            "campaign: x\nrepeats: 4\n{head}duts: [direct, cipherbench, wireguard-go]\n\
             trials:\n  - tcp: {{ mtu: [1300 B, 1400 B, 1450 B, 1500 B], cores: 1 }}\n"
        );
        let campaign = crate::from_text("x.yaml", &text).unwrap();
        let host = crate::HostFacts { cores: 2 };
        campaign.plan(&crate::LabFile::built_in(), &host).unwrap()
    }

    /// The ids of each repeat in the order in which they run.
    fn blocks(plan: &Plan) -> Vec<Vec<&str>> {
        let trials: Vec<_> = plan.trials().collect();
        assert_eq!(trials.len(), plan.trial_count());
        let blocks = trials.chunk_by(|a, b| a.repeat == b.repeat);
        let ids = blocks.map(|block| block.iter().map(|trial| trial.cell.id.as_str()).collect());
        ids.collect()
    }

    #[test]
    fn each_repeat_is_a_block_in_an_order_of_its_own() {
        let mut plan = plan("");
        assert_eq!(plan.order, Order::Random { seed: None });
        let of_file: Vec<String> = plan.cells.iter().map(|cell| cell.id.clone()).collect();
        plan.order = plan.order.with_seed(1);
        assert_eq!(plan.order.with_seed(2), plan.order, "a seed is drawn once");
        let blocks = blocks(&plan);
        assert_eq!(blocks.len(), 4);
        let different: BTreeSet<_> = blocks.iter().collect();
        assert_eq!(different.len(), 4);
        for block in &blocks {
            let all: BTreeSet<&str> = block.iter().copied().collect();
            assert_eq!(all, of_file.iter().map(String::as_str).collect());
            let group = |id: &str| id.rsplit_once('/').unwrap().0.to_owned();
            let groups = block.chunk_by(|a, b| group(a) == group(b));
            assert!(groups.map(<[_]>::len).eq([3; 4]), "a group was torn apart");
            assert_ne!(block, &of_file);
        }
        let mut reversed = blocks[0].clone();
        reversed.reverse();
        assert_eq!(blocks[1], reversed);
    }

    #[test]
    fn a_seed_reproduces_the_order_and_another_changes_it() {
        let (one, again) = (plan("seed: 42\n"), plan("seed: 42\n"));
        assert_eq!(blocks(&one), blocks(&again));
        assert_ne!(blocks(&one), blocks(&plan("seed: 43\n")));
        // Part of the format: a resumed run continues in the order of the journal's seed.
        let first: Vec<&str> = blocks(&one)[0][..3].to_vec();
        assert_eq!(first, PINNED);
        let journal = serde_json::to_string(&one).unwrap();
        let read: Plan = serde_json::from_str(&journal).unwrap();
        assert_eq!(blocks(&read), blocks(&one));
    }

    /// Computed by another program from the description of [`Order::cells`].
    const PINNED: [&str; 3] = [
        "tcp/mtu=1300/cores=1/wireguard-go",
        "tcp/mtu=1300/cores=1/direct",
        "tcp/mtu=1300/cores=1/cipherbench",
    ];

    #[test]
    fn the_order_of_the_file_is_kept_on_request_and_for_older_journals() {
        let plan = plan("order: file\n");
        let of_file: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert!(blocks(&plan).iter().all(|block| *block == of_file));
        let mut older = serde_json::to_value(&plan).unwrap();
        older.as_object_mut().unwrap().remove("order");
        let older: Plan = serde_json::from_value(older).unwrap();
        assert_eq!(older.order, Order::File);
    }

    #[test]
    fn every_order_of_a_group_is_equally_likely() {
        let mut firsts = [0_u32; 3];
        let cells = plan("").cells;
        for seed in 0..3_000 {
            let order = Order::Random { seed: Some(seed) };
            let group = order.cells(&cells[..3], 1);
            let first = cells.iter().position(|cell| cell.id == group[0].id);
            firsts[first.unwrap()] += 1;
        }
        // Each 1000 with a standard deviation of 26.
        assert!(
            firsts.iter().all(|count| (900..1_100).contains(count)),
            "{firsts:?}"
        );
    }

    #[test]
    fn a_seed_for_the_order_of_the_file_is_a_mistake() {
        let text = "campaign: x\norder: file\nseed: 1\nduts: [direct]\ntrials: [ping]\n";
        let mistakes = crate::from_text("x.yaml", text).unwrap_err().to_string();
        assert!(
            mistakes.contains("needs no seed") && mistakes.contains("x.yaml:3"),
            "{mistakes}"
        );
    }
}
