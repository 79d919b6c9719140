//! Contradictions of a trial of video.

use super::Contradictions;
use crate::record::VideoResult;

/// `most_ns`: the time that the whole trial took.
pub(super) fn of_result(video: &VideoResult, most_ns: u64, found: &mut Contradictions) {
    found.part(
        (video.duration_ns, "ns of video"),
        (most_ns, "ns of the trial"),
    );
    for stream in &video.streams {
        found.measurable("bytes", [stream.sent_bytes, stream.received_bytes]);
        let frames = &stream.frames;
        let shown = (frames.shown, "frames shown");
        found.part(shown, (frames.expected, "frames of the clip"));
        found.part(shown, (frames.decoded, "frames decoded"));
        found.part((frames.damaged, "damaged frames"), shown);
        // Only RTP numbers its packets; of other transports bytes are all that is known.
        if let Some(rtp) = &stream.rtp {
            let sent = (rtp.sent, "packets sent");
            // Copies are counted apart from `received`.
            let accounted = rtp.received.saturating_add(rtp.lost);
            found.part((accounted, "packets received and lost"), sent);
            let received = rtp.received.saturating_add(rtp.duplicated);
            let received = (received, "packets received");
            found.part((rtp.late, "late packets"), received);
            found.part((rtp.out_of_order, "packets out of order"), received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{FramesSeen, RtpCounts, VideoStream};

    fn contradictions(change: fn(&mut VideoResult)) -> Vec<String> {
        let rtp = RtpCounts {
            sent: 100,
            received: 98,
            lost: 2,
            late: 1,
            out_of_order: 1,
            duplicated: 0,
        };
        let frames = FramesSeen {
            decoded: 60,
            expected: 50,
            shown: 49,
            damaged: 2,
            ..FramesSeen::default()
        };
        let stream = VideoStream {
            sent_bytes: 132_800,
            received_bytes: 130_144,
            rtp: Some(rtp),
            frames,
            ..VideoStream::default()
        };
        let mut video = VideoResult {
            duration_ns: 2_000_000_000,
            streams: vec![stream],
        };
        change(&mut video);
        let mut found = Contradictions::default();
        of_result(&video, 5_000_000_000, &mut found);
        found.into_reasons()
    }

    #[test]
    fn more_than_was_sent_decoded_or_shown_is_impossible() {
        assert_eq!(contradictions(|_| {}), Vec::<String>::new());
        type Change = fn(&mut VideoResult);
        let changes: [(Change, &str); 5] = [
            (|video| video.duration_ns *= 3, "ns of video"),
            (
                |video| video.streams[0].frames.shown = 51,
                "frames of the clip",
            ),
            (|video| video.streams[0].frames.damaged = 50, "damaged"),
            (
                |video| video.streams[0].rtp.as_mut().unwrap().lost = 3,
                "packets sent",
            ),
            (
                |video| video.streams[0].rtp.as_mut().unwrap().late = 99,
                "late packets",
            ),
        ];
        for (change, what) in changes {
            let found = contradictions(change);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(what), "{found:?}");
        }
    }
}
