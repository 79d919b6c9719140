//! Trials of video as people read them.

use crate::{VideoTest, VideoTransport};
use std::time::Duration;
use units::human::counted;
use units::time::print;
use units::{BitRate, Layer};

/// A trial of video in words, without cores and path.
#[must_use]
pub fn in_words(test: &VideoTest) -> String {
    let transport = match test.transport {
        VideoTransport::Rtp => "RTP",
        VideoTransport::Http => "HTTP",
    };
    format!(
        "{} of {} video at {} over {transport}, played by {}, {} counted",
        counted(test.streams, "stream"),
        test.picture.name(),
        BitRate::new(test.rate_bps, Layer::Payload),
        test.player.name(),
        print(Duration::from_nanos(test.duration_ns)),
    )
}
