//! The anti-replay window (RFC 4303 §3.4.3) and the inference of extended sequence numbers
//! (appendix A2).
//!
//! The window is a ring of words as in RFC 6479: when it advances, whole words are cleared and no
//! bit is shifted. The ring has twice the words of the window, so that a word being filled at the
//! top never coincides with one that the bottom still needs.

/// Length of an anti-replay window in packets: a power of two, 1024 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowSize(u32);

impl WindowSize {
    /// 8192 packets.
    pub const DEFAULT: Self = Self(8192);
    /// 1024 packets.
    pub const MIN: Self = Self(1024);
    /// 2^20 packets, which take 256 KiB per SA.
    pub const MAX: Self = Self(1 << 20);

    /// A window of this many packets; `None` unless it is a power of two from 1024 to 2^20.
    #[must_use]
    pub const fn new(packets: u32) -> Option<Self> {
        if packets.is_power_of_two() && packets >= Self::MIN.0 && packets <= Self::MAX.0 {
            Some(Self(packets))
        } else {
            None
        }
    }

    /// In packets.
    #[must_use]
    pub const fn packets(self) -> u32 {
        self.0
    }
}

impl Default for WindowSize {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a sequence number is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// Marked before.
    Replayed,
    /// Left of the window.
    TooOld,
}

const WORD_BITS: u64 = u64::BITS as u64;

/// The set of recently received sequence numbers.
#[derive(Debug)]
pub(crate) struct Window {
    /// Bit `s % 64` of word `s / 64 % words.len()` is sequence number `s`; the number of words is a
    /// power of two.
    words: Box<[u64]>,
    size: u64,
    /// The highest sequence number received.
    top: u64,
}

impl Window {
    /// A window with only the number 0 marked, which no sender uses (RFC 4303 §3.3.3).
    pub(crate) fn new(size: WindowSize) -> Self {
        let size = u64::from(size.packets());
        // Twice the window: see the module.
        let mut words = vec![0; (2 * size / WORD_BITS) as usize].into_boxed_slice();
        // Number 0 counts as received from the start.
        words[0] = 1;
        Self {
            words,
            size,
            top: 0,
        }
    }

    /// The full sequence number of a packet with the low half `low`: the only match within 2^32
    /// from the window's left end (RFC 4303 appendix A2). Returns [`Rejected::TooOld`] when it is
    /// below 0 or beyond 64 bits.
    #[inline]
    pub(crate) fn infer(&self, low: u32) -> Result<u64, Rejected> {
        const HALF: u64 = 1 << 32;
        // Wraps as long as the window begins before 0; numbers there are refused below.
        let bottom = self.top.wrapping_sub(self.size - 1);
        // With the high half of the bottom it is at or right of the bottom, or 2^32 short of that.
        let candidate = bottom & !(HALF - 1) | u64::from(low);
        let below = u64::from(low) < bottom % HALF;
        let sequence = if below {
            candidate.wrapping_add(HALF)
        } else {
            candidate
        };
        // A window that begins before 0 or ends beyond 2^64 has no numbers there.
        let before_zero = self.top < self.size - 1 && sequence >= bottom;
        let beyond = self.top >= self.size - 1 && sequence < bottom;
        if before_zero || beyond {
            Err(Rejected::TooOld)
        } else {
            Ok(sequence)
        }
    }

    /// Whether a packet with this number may still be accepted.
    #[inline]
    pub(crate) fn check(&self, sequence: u64) -> Result<(), Rejected> {
        // The usual case first: most packets arrive in order.
        if sequence > self.top {
            return Ok(());
        }
        if self.top - sequence >= self.size {
            return Err(Rejected::TooOld);
        }
        let (word, bit) = self.place(sequence);
        if self.words[word] & bit == 0 {
            Ok(())
        } else {
            Err(Rejected::Replayed)
        }
    }

    /// Marks a number that [`check`](Self::check) accepts; the window advances if it is the highest
    /// so far.
    #[inline]
    pub(crate) fn mark(&mut self, sequence: u64) {
        if sequence > self.top {
            self.advance(sequence);
        }
        let (word, bit) = self.place(sequence);
        self.words[word] |= bit;
    }

    /// Moves the top to `sequence` and clears the words that enter the window.
    #[inline]
    fn advance(&mut self, sequence: u64) {
        let (from, to) = (self.top / WORD_BITS, sequence / WORD_BITS);
        // After a long jump every word is cleared once, however far it was.
        let new_words = (to - from).min(self.words.len() as u64);
        let mask = self.words.len() - 1;
        for step in 1..=new_words {
            self.words[(from + step) as usize & mask] = 0;
        }
        self.top = sequence;
    }

    #[inline]
    fn place(&self, sequence: u64) -> (usize, u64) {
        let word = (sequence / WORD_BITS) as usize & (self.words.len() - 1);
        (word, 1 << (sequence % WORD_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// The window's behaviour, modelled with an unlimited set.
    struct Model {
        seen: HashSet<u64>,
        top: u64,
        size: u64,
    }

    impl Model {
        fn check(&self, sequence: u64) -> Result<(), Rejected> {
            if sequence <= self.top && self.top - sequence >= self.size {
                Err(Rejected::TooOld)
            } else if self.seen.contains(&sequence) {
                Err(Rejected::Replayed)
            } else {
                Ok(())
            }
        }
    }

    /// The next packet's number relative to the top.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Ahead(u64),
        Back(u64),
    }

    fn step(size: u64) -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1u64..4).prop_map(Step::Ahead),
            4 => (0..size).prop_map(Step::Back),
            1 => (0..3 * size).prop_map(Step::Ahead),
            1 => (size - 3..size + 70).prop_map(Step::Back),
            1 => (0..1u64 << 33).prop_map(Step::Ahead),
            1 => (0..1u64 << 33).prop_map(Step::Back),
        ]
    }

    fn size() -> impl Strategy<Value = WindowSize> {
        prop_oneof![
            Just(WindowSize::MIN),
            Just(WindowSize(2048)),
            Just(WindowSize::DEFAULT)
        ]
    }

    fn start() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0),
            0..20_000u64,
            (1u64 << 32) - 20_000..(1 << 32) + 20_000,
            any::<u64>(),
            u64::MAX - 20_000..=u64::MAX,
        ]
    }

    proptest! {
        #[test]
        fn the_window_equals_an_unlimited_set(
            size in size(),
            start in start(),
            steps in prop::collection::vec(step(1024), 1..600),
        ) {
            let mut window = Window::new(size);
            let mut model =
                Model { seen: HashSet::from([0]), top: 0, size: u64::from(size.packets()) };
            let from_top = |top: u64, step| match step {
                Step::Ahead(by) => top.saturating_add(by),
                Step::Back(by) => top.saturating_sub(by),
            };
            for step in [Step::Ahead(start)].into_iter().chain(steps) {
                let sequence = from_top(model.top, step);
                let verdict = window.check(sequence);
                prop_assert_eq!(verdict, model.check(sequence), "{} at top {}", sequence, model.top);
                if verdict.is_ok() {
                    window.mark(sequence);
                    model.seen.insert(sequence);
                    model.top = model.top.max(sequence);
                    prop_assert_eq!(window.check(sequence), Err(Rejected::Replayed));
                }
            }
        }

        #[test]
        fn inference_is_right_for_2_to_the_32_numbers_from_the_windows_left_end(
            size in size(),
            top in start(),
            offset in prop_oneof![
                0u64..20_000,
                (1u64 << 32) - 20_000..1 << 32,
                0u64..1 << 32,
            ],
        ) {
            let mut window = Window::new(size);
            window.mark(top);
            let size = u64::from(size.packets());
            // In 128 bits, where nothing wraps.
            let sequence = i128::from(top) - i128::from(size - 1) + i128::from(offset);
            let expected = u64::try_from(sequence).map_err(|_| Rejected::TooOld);
            prop_assert_eq!(window.infer(sequence as u32), expected);
        }
    }

    /// RFC 4303 appendix A2.1, case A and case B, literally.
    #[test]
    fn inference_follows_the_two_cases_of_the_rfc() {
        let window_at = |top| {
            let mut window = Window::new(WindowSize::MIN);
            window.mark(top);
            window
        };
        // Case A: the window is within one subspace.
        let window = window_at(0x5_0000_2000);
        assert_eq!(window.infer(0x1c01), Ok(0x5_0000_1c01));
        assert_eq!(window.infer(0x1c00), Ok(0x6_0000_1c00));
        assert_eq!(window.infer(0xffff_ffff), Ok(0x5_ffff_ffff));
        // Case B: it spans two.
        let window = window_at(0x5_0000_0100);
        assert_eq!(window.infer(0xffff_fd01), Ok(0x4_ffff_fd01));
        assert_eq!(window.infer(0xffff_fd00), Ok(0x5_ffff_fd00));
        assert_eq!(window.infer(0x0101), Ok(0x5_0000_0101));
    }

    #[test]
    fn a_window_size_is_a_power_of_two_of_at_least_1024() {
        assert_eq!(WindowSize::new(8192), Some(WindowSize::DEFAULT));
        for packets in [0, 1, 512, 1023, 3000, 1 << 21, u32::MAX] {
            assert_eq!(WindowSize::new(packets), None);
        }
    }
}
