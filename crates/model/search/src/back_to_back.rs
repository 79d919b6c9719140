//! The longest burst at the highest load that passes without loss (RFC 9004, which updates RFC 2544
//! §26.4).
//!
//! 1. The longest burst allowed is tried. When it passes, the search ends.
//! 2. Else the burst length is bisected between the longest that passed and the shortest that lost,
//!    down to one frame.
//! 3. The length found is confirmed by repeats. When one of them loses a frame, the search steps
//!    down, by steps that double, and confirms again.
//!
//! So the reported length passed every time. RFC 9004 §6.3 asks for the mean of independent
//! searches instead; at that length every second burst may lose frames if the device's buffer
//! varies.

use crate::SearchError;

/// Search for the longest burst without loss.
#[derive(Debug, Clone)]
pub struct BackToBack {
    longest: u64,
    repeats: u32,
    phase: Phase,
    /// Longest that passed; in [`Phase::Confirm`] the length to confirm. 0: none.
    passed: u64,
    /// Shortest that lost a frame.
    lost: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Longest,
    Bisect,
    Confirm {
        /// Repeats that passed.
        confirmed: u32,
        /// Next step down, in frames.
        step: u64,
    },
}

/// The driver's next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BurstStep {
    /// Send this burst and record it.
    Send {
        /// Frames in the burst.
        frames: u64,
        /// Whether it repeats the length found.
        confirming: bool,
    },
    /// The search has ended.
    Done,
}

/// The result of a search for the longest burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BurstBounds {
    /// Frames in the longest burst that passed each time; `None` when not even one frame did.
    pub passed: Option<u64>,
    /// Frames in the shortest burst that lost one; `None` when the longest allowed passes: then the
    /// device carries the highest load, or its buffer is deeper than that burst.
    pub lost: Option<u64>,
    /// Repeats of `passed`, all without loss.
    pub confirmed: u32,
}

impl BackToBack {
    /// Starts a search with the longest burst allowed, in frames, and the number of repeats of the
    /// length found (RFC 2544 §26.4: at least 2 s at the highest load, and 50).
    ///
    /// # Errors
    /// When the longest burst has no frame, or there are no repeats.
    pub const fn new(longest: u64, repeats: u32) -> Result<Self, SearchError> {
        if longest == 0 {
            return Err(SearchError::Zero {
                what: "the longest burst",
            });
        }
        if repeats == 0 {
            return Err(SearchError::Zero {
                what: "the number of confirming bursts",
            });
        }
        Ok(Self {
            longest,
            repeats,
            phase: Phase::Longest,
            passed: 0,
            lost: None,
        })
    }

    /// The next burst, or the end. Asking twice changes nothing.
    #[must_use]
    pub const fn next(&self) -> BurstStep {
        match (self.phase, self.lost) {
            (Phase::Bisect, Some(lost)) if lost - self.passed > 1 => BurstStep::Send {
                frames: self.passed.midpoint(lost),
                confirming: false,
            },
            // Nothing is left to confirm if not even one frame passed.
            (Phase::Confirm { confirmed, .. }, _)
                if self.passed > 0 && confirmed < self.repeats =>
            {
                BurstStep::Send {
                    frames: self.passed,
                    confirming: true,
                }
            }
            (Phase::Longest, _) => BurstStep::Send {
                frames: self.longest,
                confirming: false,
            },
            _ => BurstStep::Done,
        }
    }

    /// Records the number of frames lost of the burst that [`BackToBack::next`] returned.
    pub const fn record(&mut self, lost: u64) {
        let BurstStep::Send { frames, .. } = self.next() else {
            return;
        };
        match &mut self.phase {
            Phase::Longest | Phase::Bisect => {
                if lost == 0 {
                    self.passed = frames;
                } else {
                    self.lost = Some(frames);
                }
                self.phase = match self.lost {
                    Some(lost) if lost - self.passed > 1 => Phase::Bisect,
                    _ => Phase::Confirm {
                        confirmed: 0,
                        step: 1,
                    },
                };
            }
            Phase::Confirm { confirmed, .. } if lost == 0 => *confirmed += 1,
            Phase::Confirm { confirmed, step } => {
                self.lost = Some(frames);
                self.passed = frames.saturating_sub(*step);
                // Repeats of a longer burst prove nothing about this one.
                *confirmed = 0;
                // Doubled, so that few bursts are spent on lengths that only mostly pass.
                *step = step.saturating_mul(2);
            }
        }
    }

    /// The result so far.
    #[must_use]
    pub const fn bounds(&self) -> BurstBounds {
        let confirmed = match self.phase {
            Phase::Confirm { confirmed, .. } => confirmed,
            _ => 0,
        };
        let passed = if confirmed > 0 {
            Some(self.passed)
        } else {
            None
        };
        BurstBounds {
            passed,
            lost: self.lost,
            confirmed,
        }
    }
}
