//! Cost of the generator and the analyser alone: both on one core, joined by a ring in memory.
//!
//! ```text
//! cargo run --release -p cipherbench-traffic --example memory
//! ```
//!
//! Frames of 64 B, each with stamp and check. Cases take turns; the median and the best round are
//! printed.

use port::memory_frame_pair;
use std::net::Ipv4Addr;
use traffic::{Analyser, Generator, KeyUse, Keys, Step};
use traffic_spec::{Addresses, Clock, IkeKeys, KeySource, Monotonic, Part, Peer, Receive, Send};
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const ROUNDS: usize = 9;
const ROUND_NS: u64 = 200_000_000;
const RING_FRAMES: usize = 64;
const TAG: u16 = 0xbeef;

struct Case {
    name: &'static str,
    mix: FrameMix,
    flows: u32,
    tunnels: u32,
    sealed: Option<Sealed>,
}

/// Whose keys the stations seal and open with.
#[derive(Clone, Copy)]
enum Sealed {
    /// Static ones, for this number of lanes.
    Static(u16),
    /// What two strongSwan daemons have agreed on, by their logs.
    Ike,
}

/// Logs of two daemons with the keys of two tunnels, from 198.18.0.1 to .2 and 198.18.1.1 to .2.
const LOGS: [&str; 2] = [
    include_str!("../src/keys/fixtures/gw1-rekeys.log"),
    include_str!("../src/keys/fixtures/gw2-rekeys.log"),
];
/// The last line of both before the first renewal of a key.
const BEFORE_RENEWAL: &str = "c1{2} state change: INSTALLING => INSTALLED";

fn main() {
    let case = |name, flows, tunnels, sealed| Case {
        name,
        mix: FrameMix::fixed(64),
        flows,
        tunnels,
        sealed,
    };
    let cases = [
        case("1 flow", 1, 1, None),
        case("1000 flows", 1000, 1, None),
        case("1000 tunnels", 1000, 1000, None),
        case("65535 flows", 65_535, 1000, None),
        Case {
            mix: FrameMix::named("imix").expect("it is one of the known names"),
            ..case("1 flow, imix", 1, 1, None)
        },
        case("1 SA, 1000 flows", 1000, 1000, Some(Sealed::Static(1))),
        case(
            "1000 SAs, 1000 flows",
            1000,
            1000,
            Some(Sealed::Static(1000)),
        ),
        case("1 SA by IKEv2, 1 flow", 1, 1, Some(Sealed::Ike)),
        case("1 SA by IKEv2, 1000 flows", 1000, 1, Some(Sealed::Ike)),
    ];
    let mut rates = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, rates) in cases.iter().zip(&mut rates) {
            rates.push(run(case));
        }
    }
    println!(
        "{:24} {:>14} {:>14} {:>9}",
        "", "median fps", "best fps", "ns/frame"
    );
    for (case, mut rates) in cases.iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let (median, best) = (rates[ROUNDS / 2], rates[ROUNDS - 1]);
        let name = case.name;
        println!("{name:24} {median:14.0} {best:14.0} {:9.1}", 1e9 / median);
    }
}

/// Frames per second, generated and checked.
fn run(case: &Case) -> f64 {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [a, b] = ["a.key", "b.key"].map(path);
    keying::create_pair(a.as_ref(), b.as_ref()).expect("key files in a new folder");
    let ike = |name: &str, log: &str| {
        let at = log.find(BEFORE_RENEWAL).expect("the log has that line");
        let end = log[at..].find('\n').expect("it is whole");
        std::fs::write(path(name), &log[..=at + end]).expect("a file in a new folder");
        KeySource::Ike(IkeKeys {
            log: path(name),
            sequences: path(&format!("{name}.sequences")),
        })
    };
    let sources = case.sealed.map(|sealed| match sealed {
        Sealed::Static(lanes) => ([a, b].map(KeySource::File), lanes),
        Sealed::Ike => ([ike("gw1", LOGS[0]), ike("gw2", LOGS[1])], 1),
    });
    let peers = sources.map(|(keys, lanes)| {
        keys.map(|keys| Peer {
            keys,
            suite: Suite::Aes256Gcm,
            engine: "auto".to_owned(),
            local: Ipv4Addr::new(192, 0, 2, 1).into(),
            remote: Ipv4Addr::new(192, 0, 2, 2).into(),
            port: Some(4500),
            lanes,
            tunnels: 1,
        })
    });
    let [sealing, opening] = match peers {
        Some(peers) => peers.map(Some),
        None => [None, None],
    };
    let open = |peer: &Option<Peer>, key_use| {
        peer.as_ref()
            .map(|peer| Keys::open(peer, key_use).expect("the keys are new"))
    };
    let send = Send {
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: Ipv4Addr::new(198, 18, 0, 1).into(),
            target: Ipv4Addr::new(198, 18, 0, 2).into(),
        },
        frames: TestFrames {
            mix: case.mix.clone(),
            flows: case.flows,
            tunnels: case.tunnels,
            contents: Contents::Fixed,
        },
        frames_per_s: None,
        duration_ns: ROUND_NS,
        burst_ns: 0,
        peer: sealing,
        keep_rate: false,
        then: None,
        start_ns: None,
    };
    let receive = Receive {
        peer: opening,
        ..Receive::new(send.frames.clone())
    };
    let (send_keys, receive_keys) = (
        open(&send.peer, KeyUse::Seal),
        open(&receive.peer, KeyUse::Open),
    );

    let clock = Monotonic::new();
    let (mut sender, mut receiver) = memory_frame_pair(RING_FRAMES);
    let mut analyser =
        Analyser::new(&receive, TAG, receive_keys.as_ref()).expect("the flows are few enough");
    let mut generator = Generator::new(&send, TAG, Part::WHOLE, send_keys.as_ref())
        .expect("the frames can be made");
    // First creates the SAs, by one unmeasured frame of each flow.
    let mut warm = 0;
    while warm < case.flows as usize {
        generator.step(&mut sender, 1).expect("memory stays");
        warm += analyser.poll(&mut receiver, &clock).expect("memory stays");
    }
    let warm = generator.finish(0).frames;

    let start_ns = clock.now_ns();
    let mut now_ns = start_ns;
    while now_ns < start_ns + ROUND_NS {
        // The generator's own clock begins at 0 and ends with the round.
        let step = generator.step(&mut sender, (now_ns - start_ns).min(ROUND_NS - 1));
        assert_eq!(step.expect("memory stays"), Step::Sent);
        analyser.poll(&mut receiver, &clock).expect("memory stays");
        now_ns = clock.now_ns();
    }
    let sent = generator.finish(now_ns);
    let received = analyser.received();
    assert_eq!(received.frames, sent.frames);
    assert_eq!(received.frame_bytes, sent.frame_bytes);
    (sent.frames - warm) as f64 * 1e9 / (now_ns - start_ns) as f64
}
