//! Frames that a player showed, matched with the clip.

use crate::clip;
use crate::error::VideoError;
use crate::frames::{Frames, hash};
use journal::record::FramesSeen;
use plan::VideoTest;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Frames of the clip that a damaged frame is compared with, at most: two seconds.
const CANDIDATES_MAX: usize = 50;
/// To find the frame that a damaged one shows, one byte in this many is compared.
const FIND_ONE_IN: usize = 16;
/// A freeze lasts at least this much longer than a frame, and three times as long (W3C
/// webrtc-stats, `freezeCount`).
const FREEZE_NS: u64 = 150_000_000;
/// A pixel's largest value.
const PEAK: f64 = 255.0;

/// A frame that a player showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    at_ns: u64,
    is: Is,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Is {
    /// The clip's frame with this number.
    Frame(usize),
    /// A frame that is not in the clip; kept at this index.
    Damaged(u64),
}

/// All frames that a player showed, without repetitions.
pub(crate) struct Playback {
    shown: Vec<Shown>,
    /// The damaged frames, one after another.
    damaged: File,
    frame_bytes: usize,
}

/// Reads the frames of a player until it ends. `last_ns` receives the time of the last new one.
pub(crate) fn watch(
    from: impl Read,
    reference: &HashMap<u64, usize>,
    started: Instant,
    last_ns: &AtomicU64,
) -> io::Result<Playback> {
    let mut frames = Frames::new(from);
    let mut seen = Playback {
        shown: Vec::new(),
        damaged: tempfile::tempfile()?,
        frame_bytes: 0,
    };
    let mut kept = 0;
    let mut before = None;
    while let Some(frame) = frames.next()? {
        let at_ns = started.elapsed().as_nanos() as u64;
        let hash = hash(frame);
        // VLC repeats a frame until there is a new one.
        if before.replace(hash) == Some(hash) {
            continue;
        }
        last_ns.store(at_ns, Ordering::Relaxed);
        seen.frame_bytes = frame.len();
        // By hash: the clip's frames need not be in memory.
        let is = match reference.get(&hash) {
            Some(number) => Is::Frame(*number),
            None => {
                seen.damaged.write_all(frame)?;
                kept += 1;
                Is::Damaged(kept - 1)
            }
        };
        seen.shown.push(Shown { at_ns, is });
    }
    Ok(seen)
}

/// A frame of the clip that was shown.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Placed {
    number: usize,
    at_ns: u64,
    /// In decibels; `None` if identical to the clip's frame.
    psnr_db: Option<f64>,
}

impl Playback {
    /// Counts the frames of the measured part of the clip.
    pub(crate) fn counts(self, test: &VideoTest, folder: &Path) -> Result<FramesSeen, VideoError> {
        let all = self.shown.len() as u64;
        let placed = self.place(test, &folder.join(clip::name(test)))?;
        Ok(count(&placed, test, all))
    }

    /// Matches each frame with the clip. Frames come in the clip's order; a damaged frame is
    /// matched with the most similar one between its undamaged neighbours.
    fn place(mut self, test: &VideoTest, clip: &Path) -> Result<Vec<Placed>, VideoError> {
        let in_all = usize::try_from(test.frames_in_all()).unwrap_or(usize::MAX);
        let mut reference = Reference::default();
        let mut placed: Vec<Placed> = Vec::new();
        for (at, one) in self.shown.iter().enumerate() {
            // Frames are shown in order, so a damaged one follows the frame placed last.
            let least = placed.last().map_or(0, |last| last.number + 1);
            let (number, psnr_db) = match one.is {
                Is::Frame(number) => (number, None),
                Is::Damaged(kept) => {
                    let behind = self.shown[at..].iter().find_map(|shown| match shown.is {
                        Is::Frame(number) => Some(number),
                        Is::Damaged(_) => None,
                    });
                    let most = behind.unwrap_or(in_all).min(least + CANDIDATES_MAX);
                    let frame = read_kept(&mut self.damaged, kept, self.frame_bytes)
                        .map_err(VideoError::system("read a damaged frame back"))?;
                    let Some(found) = reference.nearest(&frame, least..most, clip)? else {
                        continue;
                    };
                    (found.0, Some(found.1))
                }
            };
            // A player that went back shows nothing new.
            if number >= least {
                placed.push(Placed {
                    number,
                    at_ns: one.at_ns,
                    psnr_db,
                });
            }
        }
        Ok(placed)
    }
}

fn read_kept(file: &mut File, kept: u64, bytes: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(kept * bytes as u64))?;
    let mut frame = vec![0; bytes];
    file.read_exact(&mut frame)?;
    Ok(frame)
}

/// Frames of the clip around the damaged frame.
#[derive(Default)]
struct Reference {
    /// Number of the first frame held, and the frames from there on.
    first: usize,
    frames: VecDeque<Vec<u8>>,
}

impl Reference {
    /// Returns the frame of the clip in this range that is most similar to the damaged one, with
    /// its peak signal-to-noise ratio in decibels; `None` if the range is empty.
    fn nearest(
        &mut self,
        damaged: &[u8],
        range: Range<usize>,
        clip: &Path,
    ) -> Result<Option<(usize, f64)>, VideoError> {
        if range.is_empty() {
            return Ok(None);
        }
        self.load(&range, clip)?;
        let candidates = (self.first..).zip(&self.frames);
        let candidates = candidates
            .filter(|(number, frame)| range.contains(number) && frame.len() == damaged.len());
        // A sample of the bytes suffices to find it; the ratio then takes all.
        let nearest = candidates.min_by_key(|(_, frame)| squares(damaged, frame, FIND_ONE_IN));
        Ok(nearest.map(|(number, frame)| (number, psnr_db(damaged, frame))))
    }

    /// Decodes the clip up to the end of the range, unless the frames are loaded.
    fn load(&mut self, range: &Range<usize>, clip: &Path) -> Result<(), VideoError> {
        if range.start >= self.first && range.end <= self.first + self.frames.len() {
            return Ok(());
        }
        *self = Self {
            first: range.start,
            frames: VecDeque::new(),
        };
        // Also load the candidates of the next damaged frames.
        let wanted = range.start..range.end + CANDIDATES_MAX;
        let mut number = 0;
        clip::decode(clip, |frame| {
            if wanted.contains(&number) {
                self.frames.push_back(frame.to_vec());
            }
            number += 1;
            number < wanted.end
        })
    }
}

fn squares(one: &[u8], other: &[u8], one_in: usize) -> u64 {
    let pairs = one.iter().zip(other).step_by(one_in);
    pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum()
}

/// Peak signal-to-noise ratio over all samples of a frame, averaged as in ffmpeg's `psnr` filter.
fn psnr_db(one: &[u8], other: &[u8]) -> f64 {
    let mean = squares(one, other, 1) as f64 / one.len().max(1) as f64;
    10.0 * (PEAK * PEAK / mean.max(f64::MIN_POSITIVE)).log10()
}

/// Counts the frames and freezes of the measured part.
fn count(placed: &[Placed], test: &VideoTest, all: u64) -> FramesSeen {
    let measured = test.measured_frames();
    let numbers = measured.start as usize..measured.end as usize;
    let of_part: Vec<&Placed> = (placed.iter())
        .filter(|one| numbers.contains(&one.number))
        .collect();
    let damaged: Vec<f64> = of_part.iter().filter_map(|one| one.psnr_db).collect();
    let milli = |db: f64| (db * 1000.0).round() as u64;
    let worst = damaged.iter().copied().reduce(f64::min);
    let sum: f64 = damaged.iter().sum();
    let mut seen = FramesSeen {
        decoded: all,
        expected: measured.end - measured.start,
        shown: of_part.len() as u64,
        damaged: damaged.len() as u64,
        psnr_least_millidb: worst.map(milli),
        psnr_mean_millidb: worst.map(|_| milli(sum / damaged.len() as f64)),
        ..FramesSeen::default()
    };
    let frame_ns = VideoTest::FRAME_NS;
    // The larger of both conditions.
    let freeze_ns = (3 * frame_ns).max(frame_ns + FREEZE_NS);
    let mut gap = |ns: u64| {
        seen.longest_gap_ns = seen.longest_gap_ns.max(ns);
        if ns >= freeze_ns {
            seen.freezes += 1;
            seen.frozen_ns += ns - frame_ns;
        }
    };
    // Including the last frame before the part and the first after it.
    let around = placed
        .windows(2)
        .filter(|pair| pair[1].number >= numbers.start && pair[0].number < numbers.end);
    for pair in around {
        gap(pair[1].at_ns.saturating_sub(pair[0].at_ns));
    }
    // Frames missing before the first or after the last shown one count as a gap of their length.
    let absent = |frames: usize| frames as u64 * frame_ns;
    match (placed.first(), placed.last()) {
        (Some(first), Some(last)) => {
            if first.number > numbers.start {
                gap(absent(first.number.min(numbers.end) - numbers.start));
            }
            if last.number + 1 < numbers.end {
                gap(absent(numbers.end - (last.number + 1).max(numbers.start)));
            }
        }
        _ => gap(absent(numbers.len())),
    }
    seen
}

#[cfg(test)]
mod tests;
