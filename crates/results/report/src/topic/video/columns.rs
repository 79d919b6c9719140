//! The columns of trials of video.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::{RtpCounts, VideoResult, VideoStream};

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "video_packets_sent",
        "RTP packets that station B sent, of all streams; empty over HTTP",
        |row| packets(row, |rtp| rtp.sent),
    ),
    (
        "video_packets_lost",
        "packets of these that station A never received",
        |row| packets(row, |rtp| rtp.lost),
    ),
    (
        "video_packets_late",
        "received with a transit of more than 100 ms above the stream's shortest",
        |row| packets(row, |rtp| rtp.late),
    ),
    (
        "video_frames_expected",
        "frames of the clip's measured part, of all streams",
        |row| sum(row, |stream| stream.frames.expected),
    ),
    (
        "video_frames_shown",
        "frames of these that a player showed",
        |row| sum(row, |stream| stream.frames.shown),
    ),
    (
        "video_frames_damaged",
        "shown frames that differ from the clip's",
        |row| sum(row, |stream| stream.frames.damaged),
    ),
    (
        "video_psnr_least_db",
        "peak signal-to-noise ratio of the worst damaged frame; empty without one",
        |row| {
            let streams = video(row)?.streams.iter();
            let least = streams.filter_map(|stream| stream.frames.psnr_least_millidb);
            Some(format!("{:.3}", least.min()? as f64 / 1000.0))
        },
    ),
    (
        "video_freezes",
        "gaps between new frames that exceed one frame's time by 150 ms, and are three times as long",
        |row| sum(row, |stream| stream.frames.freezes),
    ),
    (
        "video_frozen_ns",
        "time of these gaps beyond one frame each",
        |row| sum(row, |stream| stream.frames.frozen_ns),
    ),
];

fn video<'a>(row: &Context<'a>) -> Option<&'a VideoResult> {
    measured(row.trial)?.video()
}

fn sum(row: &Context<'_>, count: fn(&VideoStream) -> u64) -> Option<String> {
    text(video(row)?.sum(count))
}

fn packets(row: &Context<'_>, count: fn(&RtpCounts) -> u64) -> Option<String> {
    let video = video(row)?;
    let is_rtp = video.streams.iter().any(|stream| stream.rtp.is_some());
    // Over HTTP there are no packets, and 0 would be a count.
    is_rtp.then_some(())?;
    text(video.sum(|stream| stream.rtp.as_ref().map_or(0, count)))
}
