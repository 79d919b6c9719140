//! A store of captured frames, limited in bytes.

use plan::Keep;
use port::TapFrame;
use std::collections::VecDeque;

/// Bytes that the file adds to a frame: header, trailer, flags and padding.
const AROUND_BYTES: usize = 48;

/// A kept frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredFrame {
    pub(crate) at_unix_ns: u64,
    pub(crate) bytes: Box<[u8]>,
    /// Length before it was cut.
    pub(crate) whole_bytes: u32,
    pub(crate) is_outgoing: bool,
}

/// Frames in the order of arrival.
#[derive(Debug)]
pub(crate) struct Store {
    keep: Keep,
    bytes_max: usize,
    bytes: usize,
    frames: VecDeque<StoredFrame>,
    /// A sample that outgrew the limit keeps one in this many of the selected frames.
    thinned: u32,
    /// Selected frames since the last one that a thinned sample kept.
    skipped: u32,
}

impl Store {
    pub(crate) fn new(keep: Keep, bytes_max: u64) -> Self {
        Self {
            keep,
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            bytes: 0,
            frames: VecDeque::new(),
            thinned: 1,
            skipped: 0,
        }
    }

    /// Adds a frame if it is to be kept. Returns whether the store can take more.
    pub(crate) fn add(&mut self, frame: &TapFrame<'_>) -> bool {
        self.skipped += 1;
        if self.skipped < self.thinned {
            return true;
        }
        self.skipped = 0;
        let size = frame.bytes.len() + AROUND_BYTES;
        match self.keep {
            // The first frame that does not fit ends the capture: a shorter one behind it would
            // leave a gap.
            Keep::First if self.bytes + size > self.bytes_max => return false,
            Keep::First => {}
            Keep::Ring => self.make_room(size),
            Keep::Sampled { .. } => {
                // Thinning leaves one frame, and that may be too many for a small store.
                while self.bytes + size > self.bytes_max && self.frames.len() > 1 {
                    self.thin();
                }
                self.make_room(size);
            }
        }
        self.bytes += size;
        self.frames.push_back(StoredFrame {
            at_unix_ns: frame.at_unix_ns,
            bytes: frame.bytes.into(),
            whole_bytes: frame.whole_bytes,
            is_outgoing: frame.is_outgoing,
        });
        true
    }

    pub(crate) const fn frames(&self) -> &VecDeque<StoredFrame> {
        &self.frames
    }

    /// The store holds one in this many of the frames that crossed the interface.
    pub(crate) const fn one_in(&self) -> u32 {
        match self.keep {
            Keep::Sampled { one_in } => one_in.saturating_mul(self.thinned),
            _ => 1,
        }
    }

    /// Removes the oldest frames.
    fn make_room(&mut self, size: usize) {
        while self.bytes + size > self.bytes_max {
            let Some(oldest) = self.frames.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes.len() + AROUND_BYTES;
        }
    }

    /// Removes every second frame; the rest remains evenly spread.
    fn thin(&mut self) {
        let mut stays = false;
        self.frames.retain(|_| {
            stays = !stays;
            stays
        });
        let sizes = self
            .frames
            .iter()
            .map(|kept| kept.bytes.len() + AROUND_BYTES);
        self.bytes = sizes.sum();
        // Frames to come are thinned alike, or the end of the trial would weigh more.
        self.thinned = self.thinned.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores `count` frames of 52 B, which take 100 B each, and returns their numbers.
    fn kept(keep: Keep, bytes_max: u64, count: u64) -> (Vec<u64>, u32, Option<u64>) {
        let mut store = Store::new(keep, bytes_max);
        let mut full = None;
        for number in 0..count {
            let frame = TapFrame {
                at_unix_ns: number,
                bytes: &[0; 52],
                whole_bytes: 1514,
                is_outgoing: false,
            };
            if !store.add(&frame) {
                full = full.or(Some(number));
            }
        }
        assert!(store.bytes as u64 <= bytes_max);
        let numbers = store.frames().iter().map(|kept| kept.at_unix_ns).collect();
        (numbers, store.one_in(), full)
    }

    #[test]
    fn the_first_frames_are_kept_and_the_store_says_that_it_is_full() {
        assert_eq!(kept(Keep::First, 399, 9), (vec![0, 1, 2], 1, Some(3)));
        assert_eq!(kept(Keep::First, 400, 4), (vec![0, 1, 2, 3], 1, None));
    }

    #[test]
    fn a_ring_keeps_the_last_frames() {
        assert_eq!(kept(Keep::Ring, 399, 9), (vec![6, 7, 8], 1, None));
        assert_eq!(kept(Keep::Ring, 399, 2), (vec![0, 1], 1, None));
    }

    #[test]
    fn a_sample_in_a_store_for_one_frame_ends() {
        let sampled = Keep::Sampled { one_in: 10 };
        assert_eq!(kept(sampled, 199, 4), (vec![3], 10, None));
    }

    #[test]
    fn a_sample_that_does_not_fit_is_thinned_evenly() {
        let sampled = Keep::Sampled { one_in: 10 };
        assert_eq!(kept(sampled, 400, 4), (vec![0, 1, 2, 3], 10, None));
        let (numbers, one_in, full) = kept(sampled, 400, 100);
        assert_eq!((one_in, full), (10 * 32, None));
        let gaps: Vec<_> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(
            gaps.iter().all(|gap| (24..=40).contains(gap)),
            "{numbers:?}"
        );
    }
}
