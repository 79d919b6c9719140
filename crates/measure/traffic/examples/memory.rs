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
use std::path::Path;
use traffic::spec::{Addresses, KeySource, Peer, Receive, Send};
use traffic::{Analyser, Clock, Generator, KeyUse, Keys, Monotonic, Part, Step};
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
    lanes: Option<u16>,
}

fn main() {
    let case = |name, flows, tunnels, lanes| Case {
        name,
        mix: FrameMix::fixed(64),
        flows,
        tunnels,
        lanes,
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
        case("1 SA, 1000 flows", 1000, 1000, Some(1)),
        case("1000 SAs, 1000 flows", 1000, 1000, Some(1000)),
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
    let [a, b] = ["a.key", "b.key"].map(|name| folder.path().join(name));
    keying::create_pair(&a, &b).expect("key files in a new folder");
    let esp = |key_file: &Path| {
        case.lanes.map(|lanes| Peer {
            keys: KeySource::File(key_file.display().to_string()),
            suite: Suite::Aes256Gcm,
            engine: "auto".to_owned(),
            local: Ipv4Addr::new(192, 0, 2, 1).into(),
            remote: Ipv4Addr::new(192, 0, 2, 2).into(),
            port: 4500,
            lanes,
            tunnels: 1,
        })
    };
    let open = |esp: &Option<Peer>| {
        esp.as_ref()
            .map(|esp| Keys::open(esp, KeyUse::Seal).expect("the keys are new"))
    };
    let send = Send {
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: Ipv4Addr::new(10, 1, 0, 1).into(),
            target: Ipv4Addr::new(10, 2, 0, 1).into(),
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
        peer: esp(&a),
        keep_rate: false,
        then: None,
        start_ns: None,
    };
    let receive = Receive {
        frames: send.frames.clone(),
        expected: None,
        peer: esp(&b),
        first_frames: None,
        bins: None,
        periods: None,
        variation: false,
        sender_clock: None,
    };
    let (send_keys, receive_keys) = (open(&send.peer), open(&receive.peer));

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
