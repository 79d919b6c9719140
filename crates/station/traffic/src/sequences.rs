//! Classifies each flow's frames: new, late, or duplicate.
//!
//! For each flow there is a ring of bits, one for each of the last sequence numbers, and a shorter
//! ring with their order of arrival. Rings are stored interleaved, the same word of all flows side
//! by side: flows that take turns then stay on a few cache lines, for any number of flows.

use wire::stamp::infer_sequence;

const WORD_BITS: u64 = u64::BITS as u64;
/// Minimum and maximum number of bits in a flow's ring.
const RING_MIN: u64 = 8192;
const RING_MAX: u64 = 1 << 20;
/// Bits of all rings together, unless the minimum for each is more: 8 MiB.
const RINGS_BITS: u64 = 1 << 26;
/// Minimum and maximum number of frames per flow for which the order is kept.
const ORDER_MIN: u64 = 64;
const ORDER_MAX: u64 = 1 << 16;
/// Frames over all flows for which the order is kept, unless the minimum for each is more: 2 MiB.
const ORDERS: u64 = 1 << 19;
/// Marks a frame that was the highest of its flow when it arrived.
const LED: u32 = 1;

/// The class of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one of its flow, or a later one: then those between are missing so far.
    Leading {
        /// Whether any are missing.
        gap: bool,
    },
    /// New, but a later one of its flow arrived before: reordered (RFC 4737 §3.3).
    Reordered {
        /// Frames of the flow that arrived from the first later one until this (RFC 4737 §4.2.2).
        /// If the first later one is further back than the ring, only the kept ones count.
        extent: u64,
    },
    /// It has arrived before.
    Duplicate,
    /// Too late to be classified.
    TooLate,
}

/// The state of one flow apart from its rings.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    /// One more than the highest number that has arrived.
    next: u64,
    /// Frames that have arrived, without duplicates; wraps.
    arrivals: u32,
}

/// The state of all flows.
#[derive(Debug)]
pub(crate) struct Sequences {
    flows: Vec<Flow>,
    /// Bit `s % 64` of word `(s / 64 % ring words) × flows + flow` is frame `s`.
    seen: Vec<u64>,
    /// At `(s % order length) × flows + flow`: the flow's arrivals before frame `s`, shifted left
    /// by one, and [`LED`].
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

    /// How far a frame may be behind the latest of its flow, in frames, and still be distinguished
    /// from a duplicate: 8128 or more.
    pub(crate) const fn window(&self) -> u64 {
        // The word at the top is cleared as a whole.
        (self.ring_words - 1) * WORD_BITS
    }

    /// The number of a frame of `flow` from its low 32 bits; `None` for an unknown flow or frame.
    #[inline]
    pub(crate) fn infer(&self, flow: u16, low: u32) -> Option<u64> {
        infer_sequence(self.flows.get(usize::from(flow))?.next, low)
    }

    /// Records a frame of an existing flow.
    #[inline]
    pub(crate) fn note(&mut self, flow: u16, sequence: u64) -> Arrival {
        let flow = usize::from(flow);
        let Flow { next, arrivals } = self.flows[flow];
        // Rare, and in a function apart, so that the common path stays short.
        if sequence < next {
            return self.note_behind(flow, sequence);
        }
        // Words between the two are reused, and still have bits of frames a ring before.
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

    /// Records a frame that is not the highest of its flow.
    #[cold]
    fn note_behind(&mut self, flow: usize, sequence: u64) -> Arrival {
        let Flow { next, arrivals } = self.flows[flow];
        if next - sequence > self.window() {
            return Arrival::TooLate;
        }
        if self.has(flow, sequence) {
            return Arrival::Duplicate;
        }
        // The first later frame to arrive led its flow then, and is the lowest of those.
        let kept = (sequence + 1).max(next.saturating_sub(self.order_frames));
        let first_later = (kept..next)
            .filter(|later| self.has(flow, *later))
            .map(|later| self.order[self.order_at(flow, later)])
            .find(|order| order & LED != 0);
        // The subtraction wraps like the count of arrivals; the lowest bit is the mark.
        let extent = first_later.map_or(0, |order| (arrivals << 1).wrapping_sub(order & !LED) >> 1);
        // A frame further back than its ring must not overwrite later ones.
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

    /// Clears the words from `first` to `last`, within the ring.
    #[inline]
    fn clear(&mut self, flow: usize, first: u64, last: u64) {
        // After a long gap each word once at most.
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
        // A power of two, so that no division is needed.
        (word & (self.ring_words - 1)) as usize * self.flows.len() + flow
    }

    #[inline]
    fn order_at(&self, flow: usize, sequence: u64) -> usize {
        (sequence & (self.order_frames - 1)) as usize * self.flows.len() + flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One flow by the definitions of RFC 4737, with every frame that ever arrived.
    #[derive(Default)]
    struct Model {
        arrivals: Vec<u64>,
    }

    impl Model {
        fn next(&self) -> u64 {
            self.arrivals.iter().max().map_or(0, |highest| highest + 1)
        }

        fn note(&mut self, sequence: u64, window: u64) -> Arrival {
            let next = self.next();
            let first_later = self.arrivals.iter().position(|later| *later > sequence);
            let arrival = if sequence >= next {
                Arrival::Leading {
                    gap: sequence > next,
                }
            } else if next - sequence > window {
                return Arrival::TooLate;
            } else if self.arrivals.contains(&sequence) {
                return Arrival::Duplicate;
            } else {
                let extent = self.arrivals.len() - first_later.unwrap();
                Arrival::Reordered {
                    extent: extent as u64,
                }
            };
            self.arrivals.push(sequence);
            arrival
        }
    }

    /// The next frame's number, relative to the one that is due.
    #[derive(Debug, Clone, Copy)]
    enum Hop {
        Ahead(u64),
        Back(u64),
    }

    fn hop() -> impl Strategy<Value = Hop> {
        prop_oneof![
            6 => Just(Hop::Ahead(0)),
            2 => (0u64..5).prop_map(Hop::Ahead),
            4 => (1u64..12).prop_map(Hop::Back),
            2 => (1u64..200).prop_map(Hop::Back),
            1 => (8000u64..8200).prop_map(Hop::Back),
            1 => (0u64..20_000).prop_map(Hop::Ahead),
            1 => (0u64..1 << 31).prop_map(Hop::Ahead),
        ]
    }

    fn check(flows: u32, hops: &[(u16, Hop)]) -> Result<(), TestCaseError> {
        let mut sequences = Sequences::new(flows);
        let window = sequences.window();
        let kept = sequences.order_frames;
        let mut models: Vec<_> = (0..flows).map(|_| Model::default()).collect();
        for &(flow, hop) in hops {
            let flow = (u32::from(flow) % flows) as u16;
            let model = &mut models[usize::from(flow)];
            let next = model.next();
            let sequence = match hop {
                Hop::Ahead(by) => next + by,
                Hop::Back(by) => next.saturating_sub(by),
            };
            prop_assert_eq!(sequences.infer(flow, sequence as u32), Some(sequence));
            let expected = model.note(sequence, window);
            let arrival = sequences.note(flow, sequence);
            match (arrival, expected) {
                (Arrival::Reordered { extent }, Arrival::Reordered { extent: exact })
                    if next - sequence > kept =>
                {
                    prop_assert!((1..=exact).contains(&extent));
                }
                _ => prop_assert_eq!(arrival, expected),
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn one_flow_agrees_with_the_definitions(
            hops in prop::collection::vec((Just(0), hop()), 1..600),
        ) {
            check(1, &hops)?;
        }

        #[test]
        fn many_flows_keep_out_of_each_others_way(
            hops in prop::collection::vec((0u16..7, hop()), 1..600),
        ) {
            check(7, &hops)?;
        }

        #[test]
        fn the_smallest_rings_agree_too(hops in prop::collection::vec((0u16..3, hop()), 1..200)) {
            check(9000, &hops)?;
        }
    }

    #[test]
    fn the_window_is_never_smaller_than_stated() {
        for flows in [1, 2, 63, 64, 65, 1000, 8192, 8193, 65_535] {
            assert!(Sequences::new(flows).window() >= 8128);
        }
        assert_eq!(Sequences::new(1).window(), (1 << 20) - 64);
    }

    #[test]
    fn what_is_behind_the_window_is_too_late_and_what_is_in_it_is_not() {
        let mut sequences = Sequences::new(65_535);
        let window = sequences.window();
        for sequence in [0, window + 1] {
            sequences.note(3, sequence);
        }
        assert_eq!(sequences.note(3, 1), Arrival::TooLate);
        assert_eq!(sequences.note(3, 0), Arrival::TooLate);
        assert_eq!(sequences.note(3, 2), Arrival::Reordered { extent: 1 });
        assert_eq!(sequences.note(3, 2), Arrival::Duplicate);
    }

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let mut sequences = Sequences::new(1);
        let mut sequence = 0;
        while sequence < 1 << 34 {
            assert_eq!(sequences.infer(0, sequence as u32), Some(sequence));
            sequences.note(0, sequence);
            sequence += (1 << 31) - 5;
        }
    }

    #[test]
    fn no_flow_and_no_frame_beyond_what_there_is() {
        let sequences = Sequences::new(2);
        assert_eq!(sequences.infer(2, 0), None);
        assert_eq!(sequences.infer(1, u32::MAX), None);
    }

    /// Frame 3 arrived before both late ones: three frames before 1, five before 2.
    #[test]
    fn extents_count_from_the_first_later_frame() {
        let mut sequences = Sequences::new(1);
        let order = [0, 3, 4, 5, 1, 6, 2];
        let arrivals = order.map(|sequence| sequences.note(0, sequence));
        assert_eq!(arrivals[1], Arrival::Leading { gap: true });
        assert_eq!(arrivals[4], Arrival::Reordered { extent: 3 });
        assert_eq!(arrivals[5], Arrival::Leading { gap: false });
        assert_eq!(arrivals[6], Arrival::Reordered { extent: 5 });
    }
}
