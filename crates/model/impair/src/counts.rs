//! What became of the frames.

use serde::{Deserialize, Serialize};

/// Counts of one direction. Every frame in, and every copy of one, has exactly one end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Frames in.
    pub received: u64,
    /// Frames out.
    pub sent: u64,
    /// Lost by the model.
    pub lost_by_model: u64,
    /// Lost because the model's queue was full.
    pub lost_by_queue: u64,
    /// Lost by the tester itself, against the model: no slot was free, or a port refused the frame.
    pub lost_by_tester: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames that were held back, so that later ones could overtake them.
    pub reordered: u64,
    /// Frames with a flipped bit.
    pub corrupted: u64,
    /// Frames that were still delayed at the end.
    pub waiting: u64,
    /// Delay beyond the model's in nanoseconds: from the intended time of sending to the actual
    /// one. Median.
    pub added_ns_p50: u64,
    /// 99th percentile of the same.
    pub added_ns_p99: u64,
    /// Maximum of the same.
    pub added_ns_max: u64,
}

impl Counts {
    /// Whether every frame has an end.
    #[must_use]
    pub const fn balances(&self) -> bool {
        let ends = [
            self.sent,
            self.lost_by_model,
            self.lost_by_queue,
            self.lost_by_tester,
            self.waiting,
        ];
        let (mut sum, mut at) = (0_u64, 0);
        while at < ends.len() {
            sum = sum.saturating_add(ends[at]);
            at += 1;
        }
        sum == self.received.saturating_add(self.duplicated)
    }

    /// Frames that did not leave as the model decided.
    #[must_use]
    pub const fn lost_as_intended(&self) -> u64 {
        self.lost_by_model.saturating_add(self.lost_by_queue)
    }
}

/// Counts of both directions of an impaired path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Impaired {
    /// From station A's side to B's.
    pub a_to_b: Counts,
    /// From station B's side to A's.
    pub b_to_a: Counts,
}

impl Impaired {
    /// The counts of one direction: from A's side to B's, or back.
    #[must_use]
    pub const fn of(&self, a_to_b: bool) -> &Counts {
        if a_to_b { &self.a_to_b } else { &self.b_to_a }
    }
}
