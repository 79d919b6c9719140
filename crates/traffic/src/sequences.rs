//! What has come of each flow: new, late, or for the second time.
//!
//! For each flow there is a ring of bits, one for each of the last sequence numbers, and a shorter ring with the
//! order in which they came. Rings are stored crosswise, the same word of all flows side by side: flows that
//! take turns then stay on a few cache lines, however many they are.

use wire::stamp::infer_sequence;

const WORD_BITS: u64 = u64::BITS as u64;
/// Bits of a flow's ring at least, and at most.
const RING_MIN: u64 = 8192;
const RING_MAX: u64 = 1 << 20;
/// Bits of all rings together, unless the least for each is more: 8 MiB.
const RINGS_BITS: u64 = 1 << 26;
/// Frames of a flow whose order is kept, at least and at most.
const ORDER_MIN: u64 = 64;
const ORDER_MAX: u64 = 1 << 16;
/// Frames of all flows whose order is kept, unless the least for each is more: 2 MiB.
const ORDERS: u64 = 1 << 19;
/// Marks a frame that was the highest of its flow when it came.
const LED: u32 = 1;

/// What a frame turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one of its flow, or one further on: then those between are missing so far.
    Leading {
        /// Whether any are.
        gap: bool,
    },
    /// New, but a later one of its flow came before: reordered (RFC 4737 §3.3).
    Reordered {
        /// Frames of the flow that came from the first later one until this (RFC 4737 §4.2.2). When that
        /// is further back than what is kept, those that are known.
        extent: u64,
    },
    /// It has come before.
    Duplicate,
    /// So late that nothing is known of it.
    TooLate,
}

/// One flow's state beside its rings.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// One more than the highest number that has come.
    next: u64,
    /// Frames that have come, duplicates not counted; wraps.
    arrivals: u32,
}

/// The state of all flows.
#[derive(Debug)]
pub(crate) struct Sequences {
    flows: Vec<Flow>,
    /// Bit `s % 64` of word `(s / 64 % ring words) × flows + flow` is frame `s`.
    seen: Vec<u64>,
    /// At `(s % order length) × flows + flow`: the flow's arrivals before frame `s`, shifted left by one,
    /// and [`LED`].
    order: Vec<u32>,
    ring_words: u64,
    order_frames: u64,
}

impl Sequences {
    pub(crate) fn new(flows: u32) -> Self {
        let count = u64::from(flows.max(1));
        let share = |all: u64| 1 << (all / count).max(1).ilog2();
        let ring_words = u64::clamp(share(RINGS_BITS), RING_MIN, RING_MAX) / WORD_BITS;
        let order_frames = u64::clamp(share(ORDERS), ORDER_MIN, ORDER_MAX);
        Self {
            flows: vec![Flow::default(); flows as usize],
            seen: vec![0; (ring_words * count) as usize],
            order: vec![0; (order_frames * count) as usize],
            ring_words,
            order_frames,
        }
    }

    /// How many frames of its flow a frame may be late to be told from a duplicate: 8128 or more.
    pub(crate) const fn window(&self) -> u64 {
        // The word at the top is cleared as a whole.
        (self.ring_words - 1) * WORD_BITS
    }

    /// The number of a frame of `flow` that has these low 32 bits; `None` when there is no such flow, or it has
    /// no such frame.
    #[inline]
    pub(crate) fn infer(&self, flow: u16, low: u32) -> Option<u64> {
        infer_sequence(self.flows.get(usize::from(flow))?.next, low)
    }

    /// Notes a frame of a flow that there is.
    #[inline]
    pub(crate) fn note(&mut self, flow: u16, sequence: u64) -> Arrival {
        let flow = usize::from(flow);
        let Flow { next, arrivals } = self.flows[flow];
        if sequence < next {
            return self.note_behind(flow, sequence);
        }
        self.clear(flow, next.div_ceil(WORD_BITS), sequence / WORD_BITS);
        self.mark(flow, sequence, arrivals << 1 | LED);
        self.flows[flow] = Flow {
            next: sequence + 1,
            arrivals: arrivals.wrapping_add(1),
        };
        Arrival::Leading {
            gap: sequence > next,
        }
    }

    /// Notes a frame that is not the highest of its flow.
    #[cold]
    fn note_behind(&mut self, flow: usize, sequence: u64) -> Arrival {
        let Flow { next, arrivals } = self.flows[flow];
        if next - sequence > self.window() {
            return Arrival::TooLate;
        }
        if self.has(flow, sequence) {
            return Arrival::Duplicate;
        }
        // The first later frame to come led the flow when it came, and of those it is the lowest.
        let kept = (sequence + 1).max(next.saturating_sub(self.order_frames));
        let first_later = (kept..next)
            .filter(|later| self.has(flow, *later))
            .map(|later| self.order[self.order_at(flow, later)])
            .find(|order| order & LED != 0);
        let extent = first_later.map_or(0, |order| (arrivals << 1).wrapping_sub(order & !LED) >> 1);
        // What is further back than its ring must not stand in the way of later ones.
        if next - sequence <= self.order_frames {
            let at = self.order_at(flow, sequence);
            self.order[at] = arrivals << 1;
        }
        let at = self.word_at(flow, sequence / WORD_BITS);
        self.seen[at] |= 1 << (sequence % WORD_BITS);
        self.flows[flow].arrivals = arrivals.wrapping_add(1);
        Arrival::Reordered {
            extent: u64::from(extent),
        }
    }

    /// Clears the words from `first` to `last`, as far as the ring has them.
    #[inline]
    fn clear(&mut self, flow: usize, first: u64, last: u64) {
        let first = first.max((last + 1).saturating_sub(self.ring_words));
        for word in first..=last {
            let at = self.word_at(flow, word);
            self.seen[at] = 0;
        }
    }

    #[inline]
    fn mark(&mut self, flow: usize, sequence: u64, order: u32) {
        let at = self.word_at(flow, sequence / WORD_BITS);
        self.seen[at] |= 1 << (sequence % WORD_BITS);
        let at = self.order_at(flow, sequence);
        self.order[at] = order;
    }

    #[inline]
    fn has(&self, flow: usize, sequence: u64) -> bool {
        let at = self.word_at(flow, sequence / WORD_BITS);
        self.seen[at] >> (sequence % WORD_BITS) & 1 == 1
    }

    #[inline]
    fn word_at(&self, flow: usize, word: u64) -> usize {
        (word & (self.ring_words - 1)) as usize * self.flows.len() + flow
    }

    #[inline]
    fn order_at(&self, flow: usize, sequence: u64) -> usize {
        (sequence & (self.order_frames - 1)) as usize * self.flows.len() + flow
    }
}
