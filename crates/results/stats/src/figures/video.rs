//! Trials of video: lost and late packets, and the picture that the players showed.

use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate, ratio};
use journal::record::{Measured, RtpCounts, VideoResult, VideoStream};
use schemars::JsonSchema;
use serde::Serialize;

/// Video. Counts are sums over all streams and repeats.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VideoFigures {
    /// Streams of all repeats.
    pub streams: u64,
    /// RTP packets; `null` over HTTP.
    pub packets: Option<PacketCounts>,
    /// Frames that the measured part of the clip has.
    pub frames_expected: u64,
    /// Of these, never shown.
    pub frames_missing: u64,
    /// Of those shown, frames that differ from the clip's in any bit of the picture.
    pub frames_damaged: u64,
    /// Frames neither missing nor damaged by frames expected, of each repeat.
    pub intact_ratio: Estimate,
    /// Least peak signal-to-noise ratio of a damaged frame over all samples, in dB; `null` without
    /// one.
    pub psnr_least_db: Option<f64>,
    /// Mean of these ratios over all damaged frames, in dB; `null` without one.
    pub psnr_mean_db: Option<f64>,
    /// Freezes: gaps between new frames that exceed one frame's time by 150 ms, and three times
    /// that time.
    pub freezes: u64,
    /// Time in freezes divided by the time that was to be shown, of each repeat.
    pub frozen_ratio: Estimate,
    /// Longest time from one new frame to the next.
    pub longest_gap_ns: u64,
    /// Payload that station A received, of whole clips with lead-in and lead-out.
    pub received_bytes: u64,
}

/// RTP packets of the whole runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PacketCounts {
    /// Sent by station B.
    pub sent: u64,
    /// Of those, never received by station A.
    pub lost: u64,
    /// Lost by sent, of each repeat.
    pub loss_ratio: Estimate,
    /// Received with a transit of more than 100 ms above the stream's shortest.
    pub late: u64,
    /// Received after one that was sent later.
    pub out_of_order: u64,
    /// Received again.
    pub duplicated: u64,
}

impl VideoFigures {
    /// `None` if a repeat has no figure, or without repeats.
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let trials: Vec<(u32, &VideoResult)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.video()?)))
            .collect();
        let streams = || trials.iter().flat_map(|(_, video)| &video.streams);
        let sum = |count: fn(&VideoStream) -> u64| streams().map(count).total();
        let frames_expected = sum(|stream| stream.frames.expected);
        let shown = sum(|stream| stream.frames.shown);
        let least = streams().filter_map(|stream| stream.frames.psnr_least_millidb);
        let damaged = sum(|stream| stream.frames.damaged);
        // Streams record means. Weighted by their damaged frames they give the mean over all of
        // these.
        let of_all: f64 = streams().map(psnr_sum_db).sum();
        Some(Self {
            streams: streams().count() as u64,
            packets: PacketCounts::of(&trials),
            frames_expected,
            frames_missing: frames_expected.saturating_sub(shown),
            frames_damaged: damaged,
            intact_ratio: estimate(&trials, |video| {
                let intact = video.sum(|it| it.frames.shown.saturating_sub(it.frames.damaged));
                ratio(intact, video.sum(|stream| stream.frames.expected))
            })?,
            psnr_least_db: least.min().map(|millidb| millidb as f64 / 1000.0),
            psnr_mean_db: (damaged > 0).then(|| of_all / damaged as f64),
            freezes: sum(|stream| stream.frames.freezes),
            frozen_ratio: estimate(&trials, |video| {
                // Freezes of all streams add up, so the time is of all streams too.
                let planned_ns = video.duration_ns.checked_mul(video.streams.len() as u64)?;
                ratio(video.sum(|it| it.frames.frozen_ns), planned_ns)
            })?,
            longest_gap_ns: streams().map(|stream| stream.frames.longest_gap_ns).max()?,
            received_bytes: sum(|stream| stream.received_bytes),
        })
    }
}

/// The sum over a stream's damaged frames.
fn psnr_sum_db(stream: &VideoStream) -> f64 {
    let mean = stream.frames.psnr_mean_millidb.unwrap_or(0);
    mean as f64 / 1000.0 * stream.frames.damaged as f64
}

impl PacketCounts {
    fn of(trials: &[(u32, &VideoResult)]) -> Option<Self> {
        let of_one = |video: &VideoResult, count: fn(&RtpCounts) -> u64| {
            video.sum(|stream| stream.rtp.as_ref().map_or(0, count))
        };
        let sum = |count: fn(&RtpCounts) -> u64| {
            let counts = trials.iter().map(|(_, video)| of_one(video, count));
            counts.total()
        };
        let mut streams = trials.iter().flat_map(|(_, video)| &video.streams);
        // Over HTTP no packets are counted: zeros would claim that none was lost.
        streams.any(|stream| stream.rtp.is_some()).then_some(())?;
        Some(Self {
            sent: sum(|rtp| rtp.sent),
            lost: sum(|rtp| rtp.lost),
            loss_ratio: estimate(trials, |video| {
                let lost = of_one(video, |rtp| rtp.lost);
                ratio(lost, of_one(video, |rtp| rtp.sent))
            })?,
            late: sum(|rtp| rtp.late),
            out_of_order: sum(|rtp| rtp.out_of_order),
            duplicated: sum(|rtp| rtp.duplicated),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{Figures, FramesSeen};

    fn measured(lost: u64, damaged: u64) -> Measured {
        let stream = VideoStream {
            rtp: Some(RtpCounts {
                sent: 1000,
                received: 1000 - lost,
                lost,
                late: 1,
                ..RtpCounts::default()
            }),
            frames: FramesSeen {
                decoded: 120,
                expected: 100,
                shown: 98,
                damaged,
                psnr_least_millidb: (damaged > 0).then_some(20_000),
                psnr_mean_millidb: (damaged > 0).then_some(30_000),
                freezes: 1,
                frozen_ns: 400_000_000,
                longest_gap_ns: 440_000_000,
            },
            received_bytes: 10,
            ..VideoStream::default()
        };
        Measured {
            figures: Figures::Video(VideoResult {
                duration_ns: 4_000_000_000,
                streams: vec![stream.clone(), stream],
            }),
            ..Measured::default()
        }
    }

    #[test]
    fn counts_are_sums_and_ratios_are_of_each_repeat() {
        let (one, other) = (measured(10, 4), measured(0, 0));
        let found = VideoFigures::of(&[(1, &one), (2, &other)]).unwrap();
        let packets = found.packets.unwrap();
        assert_eq!((packets.sent, packets.lost, packets.late), (4000, 20, 4));
        assert!((packets.loss_ratio.mean - 0.005).abs() < 1e-9);
        assert_eq!((found.streams, found.frames_expected), (4, 400));
        assert_eq!((found.frames_missing, found.frames_damaged), (8, 8));
        // 98 of 100 frames are shown, and in one repeat four of them are damaged.
        assert!((found.intact_ratio.mean - (0.94 + 0.98) / 2.0).abs() < 1e-9);
        assert_eq!(found.psnr_least_db, Some(20.0));
        assert!((found.psnr_mean_db.unwrap() - 30.0).abs() < 1e-9);
        // Two streams of 4 s, each frozen for 0.4 s.
        assert!((found.frozen_ratio.mean - 0.1).abs() < 1e-9);
        assert_eq!((found.freezes, found.longest_gap_ns), (4, 440_000_000));
    }

    #[test]
    fn over_http_there_are_no_packets_to_count() {
        let mut one = measured(0, 0);
        let Figures::Video(video) = &mut one.figures else {
            panic!()
        };
        video
            .streams
            .iter_mut()
            .for_each(|stream| stream.rtp = None);
        let found = VideoFigures::of(&[(1, &one)]).unwrap();
        assert_eq!(found.packets, None);
        assert_eq!(found.psnr_mean_db, None);
    }
}
