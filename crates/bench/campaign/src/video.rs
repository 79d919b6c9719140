//! Trials of video: their axes and their points.

use crate::axis::{self, axis};
use crate::grid::Grid;
use plan::{Axis, Picture, Player, VideoTest, VideoTransport, nanos};
use std::time::Duration;
use units::Layer;
use yaml::{Map, Reported, Spanned};

const DURATION_DEFAULT: Duration = Duration::from_secs(10);
/// A clip is kept in memory, and decoded before the first trial.
const DURATION_MAX: Duration = Duration::from_secs(300);
const DURATION_MIN: Duration = Duration::from_secs(1);
const STREAMS_DEFAULT: u16 = 2;
const STREAMS_MAX: u16 = 16;
const RATE_DEFAULT: u64 = 2_000_000;
const RATE_MIN: u64 = 200_000;
const RATE_MAX: u64 = 50_000_000;

/// The axes of video.
#[derive(Debug)]
pub(crate) struct VideoAxes {
    player: Vec<Spanned<Player>>,
    transport: Vec<Spanned<VideoTransport>>,
    streams: Vec<Spanned<u16>>,
    picture: Vec<Spanned<Picture>>,
    rate: Vec<Spanned<u64>>,
    duration: Vec<Spanned<Duration>>,
    pub(crate) cores: Vec<Spanned<u16>>,
}

/// Reads the keys of a `video` trial.
pub(crate) fn read(map: &Map<'_>) -> Result<VideoAxes, Reported> {
    let player = axis(map, "player", Player::default(), |node| {
        node.choice("player")
    });
    let transport = axis(map, "transport", VideoTransport::default(), |node| {
        node.choice("transport")
    });
    let streams = axis(map, "streams", STREAMS_DEFAULT, |node| {
        node.integer(1..=STREAMS_MAX)
    });
    let picture = axis(map, "picture", Picture::default(), |node| {
        node.choice("picture")
    });
    let rate = axis(map, "rate", RATE_DEFAULT, |node| {
        node.bit_rate(Layer::Payload, RATE_MIN..=RATE_MAX)
            .map(|rate| rate.bps())
    });
    let duration = axis(map, "duration", DURATION_DEFAULT, |node| {
        node.duration(DURATION_MIN..=DURATION_MAX)
    });
    let cores = axis(map, "cores", 1, |node| node.integer(1..=axis::CORES_MAX));
    Ok(VideoAxes {
        player: player.all()?,
        transport: transport.all()?,
        streams: streams.all()?,
        picture: picture.all()?,
        rate: rate.all()?,
        duration: duration.all()?,
        cores: cores.all()?,
    })
}

impl VideoAxes {
    /// Multiplies by the values of its axes.
    pub(crate) fn over<'a, T: Clone>(
        &'a self,
        grid: Grid<'a, T>,
        test: fn(&mut T) -> &mut VideoTest,
    ) -> Grid<'a, T> {
        grid.over(Axis::Player, &self.player, |t, it| test(t).player = it)
            .over(Axis::Transport, &self.transport, |t, it| {
                test(t).transport = it
            })
            .over(Axis::Streams, &self.streams, |t, it| test(t).streams = it)
            .over(Axis::Picture, &self.picture, |t, it| test(t).picture = it)
            .over(Axis::Rate, &self.rate, |t, it| test(t).rate_bps = it)
            .over(Axis::Duration, &self.duration, |t, it| {
                test(t).duration_ns = nanos(it)
            })
    }
}
