//! Checks of the video that stations sent, received and showed.

use super::failure::{count, then_repeat_or};
use super::{Load, ToolObserved, check};
use journal::record::{Check, Explanation, VideoResult, VideoStream};

/// One in this many packets may leave station B late.
const SENT_LATE_ONE_IN: u64 = 100;

/// The video of an observed trial.
const fn video<'a>(observed: &ToolObserved<'a>) -> Option<&'a VideoResult> {
    match observed.load {
        Load::Video(video) => Some(video),
        _ => None,
    }
}

/// Checks that station B sent every packet of every stream, at the clip's times.
pub(super) fn streams_sent_in_time(observed: &ToolObserved<'_>) -> Option<Check> {
    let video = video(observed)?;
    let sent = video.sum(|stream| stream.rtp.map_or(0, |rtp| rtp.sent));
    video
        .streams
        .iter()
        // Over HTTP there are no packets with times to keep, so the check does not apply.
        .any(|it| it.rtp.is_some())
        .then_some(())?;
    let lost = video.sum(|stream| stream.sender_lost);
    let late = video.sum(|stream| stream.sender_late);
    let difference = if sent == 0 {
        Some("station B sent no packet".to_owned())
    } else if lost > 0 {
        Some(format!(
            "station B lost {} before it sent them",
            count(lost, sent, "packet")
        ))
    } else if late.saturating_mul(SENT_LATE_ONE_IN) > sent {
        Some(format!(
            "station B sent {} late",
            count(late, sent, "packet")
        ))
    } else {
        None
    };
    let failure = difference.map(|difference| {
        let cause = "the sender waited for a core that something else used";
        Explanation::new(
            difference,
            cause,
            then_repeat_or(
                "stop what else uses this machine",
                "measure fewer `streams` in a new run",
            ),
        )
    });
    let detail = format!(
        "station B sent {sent} packets, lost {lost} itself, and sent {late} more than 100 ms after their time; 1 in \
         {SENT_LATE_ONE_IN} may be late"
    );
    check("offered-as-intended", failure, detail)
}

/// Checks that each player showed some of the video. The detail reports frames with another picture
/// than the clip's.
pub(super) fn video_decoded(observed: &ToolObserved<'_>) -> Option<Check> {
    let video = video(observed)?;
    let mut streams = (1_u32..).zip(&video.streams);
    let never = streams.find(|(_, stream)| stream.frames.shown == 0);
    let failure = never.map(|(number, stream)| never_shown(number, stream));
    let shown = video.sum(|stream| stream.frames.shown);
    let expected = video.sum(|stream| stream.frames.expected);
    // Damaged frames are no failure: losses of the path damage them, and they are a figure.
    let damaged = video.sum(|stream| stream.frames.damaged);
    let detail = format!(
        "of {expected} frames of the clip in {} streams {shown} were shown, {damaged} of them with another picture than \
         the clip's, by their hashes",
        video.streams.len()
    );
    check("video-decoded", failure, detail)
}

fn never_shown(number: u32, stream: &VideoStream) -> Explanation {
    let words = if stream.player_words.is_empty() {
        String::new()
    } else {
        format!("; the player's last words: {}", stream.player_words)
    };
    let (difference, cause, advice) = match (stream.received_bytes, stream.frames.decoded) {
        (0, _) => (
            "no byte of it arrived".to_owned(),
            "the path lets nothing of it through",
            "look at the drops of the device and the impaired path",
        ),
        (bytes, 0) => (
            format!("{bytes} B arrived, and the player decoded no frame of them"),
            "too much of it is lost, or the player cannot decode it",
            "lower losses or `rate`, or set another `player`",
        ),
        (_, frames) => (
            format!("the player showed {frames} frames, and none of the measured part"),
            "the player froze, or started when the measured part was over",
            "lower losses or `rate`, or set another `player`",
        ),
    };
    Explanation::new(
        format!("stream {number} was never shown: {difference}{words}"),
        cause,
        then_repeat_or("stop what else uses this machine", advice),
    )
}

/// Checks that the players lost no received packets: no socket was full, and without a lost, late
/// or reordered packet every frame was shown as it is in the clip.
pub(super) fn players_kept_up(observed: &ToolObserved<'_>) -> Option<Check> {
    let video = video(observed)?;
    let dropped = observed.station_lost;
    // Only a stream that the path left whole shows the players' faults. In any other one, a missing
    // frame may be the path's loss.
    let untouched = |stream: &&VideoStream| {
        stream
            .rtp
            .is_none_or(|rtp| rtp.lost + rtp.late + rtp.out_of_order + rtp.duplicated == 0)
    };
    let whole: Vec<&VideoStream> = video.streams.iter().filter(untouched).collect();
    let of_whole = |count: fn(&VideoStream) -> u64| whole.iter().map(|it| count(it)).sum::<u64>();
    let damaged = of_whole(|stream| stream.frames.damaged);
    let expected = of_whole(|stream| stream.frames.expected);
    // A transfer over HTTP may stall, and VLC then leaves frames out.
    let missing = of_whole(|stream| match stream.rtp {
        Some(_) => stream.frames.expected.saturating_sub(stream.frames.shown),
        None => 0,
    });
    let difference = if dropped > 0 {
        Some(format!("station A's sockets dropped {dropped} datagrams"))
    } else if damaged + missing > 0 {
        Some(format!(
            "{} of streams of which every packet arrived in time are missing or differ",
            count(damaged + missing, expected, "frame")
        ))
    } else {
        None
    };
    let failure = difference.map(|difference| {
        Explanation::new(
            difference,
            "a player, or what passes packets to it, waited for a core that something else used",
            then_repeat_or(
                "stop what else uses this machine",
                "measure fewer `streams` or a smaller `picture` in a new run",
            ),
        )
    });
    let detail = format!(
        "station A's sockets dropped {dropped} datagrams; every packet of {} of {} streams arrived in time, and of \
         their {expected} frames {missing} are missing and {damaged} differ",
        whole.len(),
        video.streams.len()
    );
    check("players-kept-up", failure, detail)
}
