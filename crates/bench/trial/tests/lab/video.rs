//! Trials of video with real players, every check passing, and with losses on the path.

use crate::frames::passes;
use crate::impaired::{counted, counts, impaired_lab};
use crate::trials::{TestLab, cell, encrypting};
use impair::{Impairment, Loss, Profile};
use journal::record::{FramesSeen, Outcome, RtpCounts, VideoResult};
use plan::{Adapter, Cell, Measurement, Player, VideoTest, VideoTransport};
use std::process::ExitCode;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Bench, NodeId};

const PATIENCE: Duration = Duration::from_secs(30);

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    (
        "players_show_the_whole_clip_over_rtp_and_http",
        players_show_the_whole_clip_over_rtp_and_http,
    ),
    (
        "a_clip_that_cannot_be_decoded_gives_no_figure",
        a_clip_that_cannot_be_decoded_gives_no_figure,
    ),
    (
        "as_many_packets_are_missing_as_the_path_lost",
        as_many_packets_are_missing_as_the_path_lost,
    ),
];

/// The program on the stations.
pub(crate) fn play() -> ExitCode {
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match video::play(&spec, std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn video_cell(adapter: Adapter, player: Player, transport: VideoTransport) -> Cell {
    let test = VideoTest {
        player,
        transport,
        streams: 2,
        rate_bps: 1_000_000,
        duration_ns: 1_000_000_000,
        ..VideoTest::default()
    };
    cell(adapter, 1, true, Measurement::Video(test))
}

/// Frames expected, shown and damaged.
fn frames(found: &VideoResult) -> [u64; 3] {
    let of = |count: fn(&FramesSeen) -> u64| found.sum(|stream| count(&stream.frames));
    [of(|it| it.expected), of(|it| it.shown), of(|it| it.damaged)]
}

fn packets(found: &VideoResult, count: fn(&RtpCounts) -> u64) -> u64 {
    found.sum(|stream| count(&stream.rtp.unwrap()))
}

fn players_show_the_whole_clip_over_rtp_and_http() {
    let mut lab = TestLab::build();
    let over_rtp = video_cell(encrypting(), Player::Vlc, VideoTransport::Rtp);
    let over_http = video_cell(encrypting(), Player::Ffmpeg, VideoTransport::Http);
    for cell in [over_rtp, over_http] {
        let measured = lab.measured(&cell);
        let found = measured.video().unwrap();
        // Two streams of a second, at 25 frames per second.
        assert_eq!(frames(found), [50, 50, 0], "{found:#?}");
        for name in [
            "video-decoded",
            "players-kept-up",
            "cipher-link-amount",
            "cipher-link-encrypted",
        ] {
            assert!(passes(&measured, name), "{name}");
        }
        match &cell.measurement {
            Measurement::Video(test) if test.transport == VideoTransport::Rtp => {
                assert_eq!(packets(found, |rtp| rtp.lost + rtp.duplicated), 0);
                assert!(packets(found, |rtp| rtp.received) > 500, "{found:#?}");
            }
            _ => assert!(found.streams.iter().all(|stream| stream.rtp.is_none())),
        }
        assert!(measured.cpu.station_a_ns > 0, "{:?}", measured.cpu);
    }
}

/// Station B serves a file of the clip's name and length that is no video.
fn a_clip_that_cannot_be_decoded_gives_no_figure() {
    let mut lab = TestLab::build();
    let broken = "cd /run/cipherbench-video && for clip in *.ts; do \
                  head -c $(stat -c %s $clip) /dev/urandom > $clip; done";
    for player in [Player::Ffmpeg, Player::Vlc] {
        let over_http = video_cell(Adapter::Direct, player, VideoTransport::Http);
        // The first trial prepares the clip for those that follow.
        counted(&mut lab, &over_http);
        let program = Program::new(["sh", "-c", broken]);
        let ended = lab.lab.node(NodeId::B).run(program, PATIENCE).unwrap();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let Outcome::Invalid { reasons, measured } = lab.record(&over_http).outcome else {
            panic!("{player:?}: a figure of a clip that cannot be decoded")
        };
        let decoded = reasons.iter().find(|it| it.starts_with("video-decoded: "));
        assert!(decoded.is_some(), "{reasons:?}");
        let checks = &measured.evidence.checks;
        let decoded = checks.iter().find(|it| it.name == "video-decoded");
        let explanation = decoded.unwrap().explanation.as_ref().unwrap();
        let words = &explanation.difference;
        assert!(
            words.contains("B arrived, and the player decoded no frame of them"),
            "{words}"
        );
        // ffmpeg on B sends no such file as a stream.
        let over_rtp = video_cell(Adapter::Direct, player, VideoTransport::Rtp);
        let Outcome::Failed { reason } = lab.record(&over_rtp).outcome else {
            panic!("{player:?}: a figure of a clip that cannot be sent")
        };
        assert!(reason.contains("cannot send the clip"), "{reason}");
        // The next trial prepares a whole clip again.
        let whole = Program::new(["sh", "-c", "rm -r /run/cipherbench-video"]);
        lab.lab.node(NodeId::B).run(whole, PATIENCE).unwrap();
    }
    let again = video_cell(Adapter::Direct, Player::Ffmpeg, VideoTransport::Http);
    assert_eq!(frames(counted(&mut lab, &again).video().unwrap())[2], 0);
}

/// Every packet that the receiver misses is one that the path says it lost.
fn as_many_packets_are_missing_as_the_path_lost() {
    let mut lab = impaired_lab();
    let profile = Profile {
        name: "test".to_owned(),
        b_to_a: Impairment {
            loss: Some(Loss::Random { ppm: 20_000 }),
            ..Impairment::default()
        },
        ..Profile::none()
    };
    let cell = Cell {
        impair: Some(profile),
        ..video_cell(Adapter::Direct, Player::Ffmpeg, VideoTransport::Rtp)
    };
    let measured = counted(&mut lab, &cell);
    let found = measured.video().unwrap();
    let path = counts(&measured).b_to_a;
    let [sent, lost] = [
        packets(found, |rtp| rtp.sent),
        packets(found, |rtp| rtp.lost),
    ];
    assert!(lost > 0, "{found:#?}");
    // What else the path carried to A, such as acknowledgements, may have been lost too.
    let others = path.received - sent;
    assert!(others < 64, "{path:?}");
    assert!(
        (lost..=lost + others).contains(&path.lost_by_model),
        "{lost} lost, {path:?}"
    );
    let [expected, shown, damaged] = frames(found);
    assert!(damaged > 0 || shown < expected, "{found:#?}");
    let psnr = found
        .streams
        .iter()
        .filter_map(|it| it.frames.psnr_least_millidb);
    assert!(
        psnr.into_iter().all(|psnr| (3_000..70_000).contains(&psnr)),
        "{found:#?}"
    );
}
