//! The programs that work on devices: the real one, and some that do what no device should.

use catalog::device::{Facts, FatigueCounts};
use catalog::worker::{Fatigue, Line, Spec, Speed};
use journal::record::{KatOutcome, KatRow};
use plan::{DeviceKind, DeviceTest};
use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

/// Dies in the middle of everything, after some right results.
pub(crate) const DIES: &str = "worker-that-dies";
/// Prints what is no line, and says that it did what its counter knows nothing of.
pub(crate) const CHATTERS: &str = "worker-that-chatters";
/// Repeats its progress report without progress.
pub(crate) const HANGS: &str = "worker-that-hangs";
/// Has a token that rejects the PIN, and records each attempt in the file in place of its module.
pub(crate) const REFUSED: &str = "worker-that-is-refused";
/// Dies of the second algorithm after it has reported it.
pub(crate) const TRIES: &str = "worker-that-tries";
/// The real one.
pub(crate) const REAL: &str = "worker";

pub(crate) fn is_one(kind: &str) -> bool {
    [DIES, CHATTERS, HANGS, REFUSED, TRIES, REAL].contains(&kind)
}

pub(crate) fn work(kind: &str) -> ExitCode {
    match kind {
        DIES => die(),
        CHATTERS => chatter(),
        HANGS => hang(),
        REFUSED => be_refused(),
        TRIES => try_and_die(),
        _ => device::serve(io::stdin(), io::stdout()).expect("a reader"),
    }
    ExitCode::SUCCESS
}

fn say(line: &Line) {
    println!("{}", serde_json::to_string(line).expect("JSON"));
    io::stdout().flush().expect("a reader");
}

fn read_line() -> String {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).expect("a line");
    line
}

fn open() -> Spec {
    let spec = serde_json::from_str(&read_line()).expect("a spec");
    say(&Line::Open(Facts {
        name: "false".to_owned(),
        version: "1".to_owned(),
        more: Vec::new(),
    }));
    spec
}

fn die() {
    match open().test {
        DeviceTest::Kat(kat) => {
            say(&Line::Kat(KatRow {
                device: 0,
                algorithm: kat.algorithms[0].clone(),
                case: "vectors".to_owned(),
                tried: 1,
                outcome: KatOutcome::Pass,
            }));
        }
        _ => {
            say(&Line::Ready);
            read_line();
            say(&fatigue(1_000_000, 0));
        }
    }
    eprintln!("the driver is on fire");
    std::process::abort();
}

fn chatter() {
    open();
    println!("driver: initialised");
    say(&Line::Ready);
    read_line();
    // Also JSON, but no line of a worker.
    println!("{{\"driver\": \"says something\"}}");
    say(&Line::Speed(Speed {
        operations: 1_000,
        bytes: 0,
        began_unix_ns: 1,
        elapsed_ns: 1_000_000,
        cpu_ns: 1_000_000_000,
        slices: vec![1_000],
        failed: 0,
        checked: 1,
        checked_measured: 1,
        wrong: 0,
        invalid: 0,
        accepted: 0,
        latency_ns: [1, 2, 3],
        device_operations: Some(0),
    }));
    say(&Line::End);
}

fn fatigue(elapsed_ns: u64, right: u64) -> Line {
    Line::Fatigue(Fatigue {
        elapsed_ns,
        counts: FatigueCounts {
            right,
            ..FatigueCounts::default()
        },
        rounds: Some(right),
        failures_ns: Vec::new(),
        restarts_ns: Vec::new(),
        reasons: Vec::new(),
        resident_bytes_max: 1,
    })
}

fn hang() {
    open();
    say(&Line::Ready);
    read_line();
    // The reports differ in their time only, which is no progress.
    for tick in 1.. {
        say(&fatigue(tick * 20_000_000, 5));
        thread::sleep(Duration::from_millis(20));
    }
}

fn be_refused() {
    let spec: Spec = serde_json::from_str(&read_line()).expect("a spec");
    let DeviceKind::Pkcs11 { module, .. } = spec.device else {
        panic!("{spec:?}");
    };
    let file = OpenOptions::new().append(true).open(module);
    file.expect("a file").write_all(b"x").expect("room");
    say(&Line::PinRefused("it is not that of the token".to_owned()));
}

fn try_and_die() {
    let DeviceTest::Kat(kat) = open().test else {
        panic!("only kat is tried");
    };
    let pass = |algorithm: &String| {
        say(&Line::Trying(algorithm.clone()));
        say(&Line::Kat(KatRow {
            device: 0,
            algorithm: algorithm.clone(),
            case: "vectors".to_owned(),
            tried: 1,
            outcome: KatOutcome::Pass,
        }));
    };
    pass(&kat.algorithms[0]);
    if let Some(second) = kat.algorithms.get(1) {
        say(&Line::Trying(format!("{second}, empty")));
        std::process::abort();
    }
    say(&Line::End);
}
