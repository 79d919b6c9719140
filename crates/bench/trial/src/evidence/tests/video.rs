//! Trials of video, whose packets go from B to A.

use super::*;
use journal::record::{VideoResult, VideoStream};

fn fails(spoil: impl FnOnce(&mut Fixture, &mut VideoResult)) -> Vec<String> {
    let mut fixture = Fixture::video(Adapter::Direct);
    let mut video = fixture.video.take().unwrap();
    spoil(&mut fixture, &mut video);
    fixture.video = Some(video);
    fixture.failing()
}

/// A stream of which every packet arrived in time.
fn make_whole(stream: &mut VideoStream) {
    let rtp = stream.rtp.as_mut().unwrap();
    (rtp.lost, rtp.received) = (0, rtp.sent);
    (stream.frames.shown, stream.frames.damaged) = (stream.frames.expected, 0);
}

#[test]
fn lost_packets_and_the_frames_that_they_spoil_are_a_result() {
    assert_eq!(fails(|_, _| {}), Vec::<String>::new());
    let fixture = Fixture::video(encrypting());
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("cipher-link-amount");
    assert!(detail.contains("gw2/w1 sent"), "{detail}");
}

#[test]
fn bytes_that_no_player_received_are_found_between_the_gateways() {
    let found = fails(|fixture, _| fixture.counter("gw2/w1").tx_bytes /= 2);
    assert_eq!(found, ["cipher-link-amount"]);
    let found = fails(|_, video| video.streams[0].received_bytes *= 2);
    assert!(
        found.contains(&"cipher-link-amount".to_owned()),
        "{found:?}"
    );
    assert!(
        found.contains(&"station-interfaces-agree".to_owned()),
        "{found:?}"
    );
}

#[test]
fn a_video_that_was_never_shown_is_named() {
    let never = |change: fn(&mut VideoStream)| {
        let mut fixture = Fixture::video(Adapter::Direct);
        let stream = &mut fixture.video.as_mut().unwrap().streams[1];
        (stream.frames.shown, stream.frames.damaged) = (0, 0);
        change(stream);
        assert_eq!(fixture.failing(), ["video-decoded"]);
        fixture.explanation("video-decoded").difference.clone()
    };
    let late = never(|_| {});
    assert!(
        late.contains("stream 2") && late.contains("90 frames"),
        "{late}"
    );
    let undecoded = never(|stream| {
        stream.frames.decoded = 0;
        stream.player_words = "no suitable decoder module".to_owned();
    });
    assert!(undecoded.contains("decoded no frame"), "{undecoded}");
    assert!(undecoded.contains("no suitable decoder"), "{undecoded}");
}

#[test]
fn a_sender_that_lost_or_delayed_packets_gives_no_figure() {
    let found = fails(|_, video| video.streams[0].sender_lost = 1);
    assert_eq!(found, ["offered-as-intended"]);
    let late = |late| fails(|_, video| video.streams[0].sender_late = late);
    assert_eq!(late(40), Vec::<String>::new());
    assert_eq!(late(41), ["offered-as-intended"]);
}

#[test]
fn frames_that_the_players_lost_are_not_blamed_on_the_path() {
    assert_eq!(
        fails(|_, video| make_whole(&mut video.streams[0])),
        Vec::<String>::new()
    );
    let spoilt: [fn(&mut VideoStream); 2] = [
        |stream| stream.frames.damaged = 1,
        |stream| stream.frames.shown -= 1,
    ];
    for spoil in spoilt {
        let found = fails(|_, video| {
            make_whole(&mut video.streams[0]);
            spoil(&mut video.streams[0]);
        });
        assert_eq!(found, ["players-kept-up"]);
    }
    assert_eq!(
        fails(|fixture, _| fixture.station_lost = 1),
        ["players-kept-up"]
    );
}
