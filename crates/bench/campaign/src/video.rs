//! Trials of video: their axes and their points.

use crate::axis::Axes;
use crate::grid::Grid;
use crate::keys::{CORES, MTU, OF_ALL, OFFLOADS, seconds};
use plan::{Axis, Picture, Player, VideoTest, VideoTransport, nanos};
use std::time::Duration;
use units::Layer;
use yaml::Absent::Default as Usual;
use yaml::{Key, Map, Reported, Spanned, Value};

#[rustfmt::skip]
pub(crate) const KEYS: &[Key] = &[
    OF_ALL,
    MTU,
    CORES,
    Key::new("player", Value::Axis(&Value::Name(Value::variants::<Player>)), Usual("vlc"),
        "Player. VLC refuses to run as root, so it is started as `nobody`, which needs root, not \
         only a user namespace"),
    Key::new("transport", Value::Axis(&Value::Name(Value::variants::<VideoTransport>)),
        Usual("rtp"),
        "An MPEG transport stream in RTP over UDP, sent by ffmpeg at the clip's rate; or a file, \
         fetched as the player needs it from Python's `http.server`"),
    Key::new("streams", Value::Axis(&Value::Integer(1, 16)), Usual("2"),
        "Concurrent streams, each with a separate player"),
    Key::new("picture", Value::Axis(&Value::Name(Value::variants::<Picture>)), Usual("360p"),
        "Size of the picture; 25 frames/s"),
    Key::new("rate", Value::Axis(&Value::BitRate(Layer::Payload, 200_000, 50_000_000)),
        Usual("2 Mbit/s"), "Rate of the encoder (H.264)"),
    // A clip is kept in memory, and decoded before the first trial.
    Key::new("duration", Value::Axis(&Value::Time(seconds(1), seconds(300))), Usual("10 s"),
        "The part of the clip that counts; 2 s before it and 1 s after it do not")
        .range("1 s to 300 s"),
    OFFLOADS,
];

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
    let axes = Axes::of(map);
    let read = VideoAxes {
        player: axes.read("player", |node| node.choice("player")),
        transport: axes.read("transport", |node| node.choice("transport")),
        streams: axes.get("streams"),
        picture: axes.read("picture", |node| node.choice("picture")),
        rate: axes.get("rate"),
        duration: axes.get("duration"),
        cores: axes.get("cores"),
    };
    axes.done().map(|()| read)
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
