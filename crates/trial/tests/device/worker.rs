//! The programs that work on devices: the real one, and some that do what no device should.

use device::Facts;
use device::report::{Fatigue, KatRow, Line, Outcome, Speed};
use device::spec::{Spec, Work};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

/// Dies in the middle of everything, after some right results.
pub(crate) const DIES: &str = "worker-that-dies";
/// Prints what is no line, and says that it did what its counter knows nothing of.
pub(crate) const CHATTERS: &str = "worker-that-chatters";
/// The real one.
pub(crate) const REAL: &str = "worker";

pub(crate) fn is_one(kind: &str) -> bool {
    [DIES, CHATTERS, REAL].contains(&kind)
}

pub(crate) fn work(kind: &str) -> ExitCode {
    match kind {
        DIES => die(),
        CHATTERS => chatter(),
        _ => device::serve(io::stdin(), io::stdout()).expect("somebody listens"),
    }
    ExitCode::SUCCESS
}

fn say(line: &Line) {
    println!("{}", serde_json::to_string(line).expect("JSON"));
    io::stdout().flush().expect("somebody listens");
}

fn told() -> String {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).expect("a line");
    line
}

fn open() -> Spec {
    let spec = serde_json::from_str(&told()).expect("a spec");
    say(&Line::Open(Facts {
        name: "false".to_owned(),
        version: "1".to_owned(),
        more: Vec::new(),
    }));
    spec
}

fn die() {
    match open().work {
        Work::Kat { algorithms } => {
            say(&Line::Kat(KatRow {
                algorithm: algorithms[0].clone(),
                case: "vectors".to_owned(),
                tried: 1,
                outcome: Outcome::Pass,
            }));
        }
        _ => {
            say(&Line::Ready);
            told();
            say(&Line::Fatigue(Fatigue {
                elapsed_ns: 1_000_000,
                right: 0,
                wrong: 0,
                failed: 0,
                refused: 0,
                passed_invalid: 0,
                restarts: 0,
                rounds: Some(0),
                failures_ns: Vec::new(),
                restarts_ns: Vec::new(),
                reasons: Vec::new(),
                resident_bytes_max: 1,
            }));
        }
    }
    eprintln!("the driver is on fire");
    std::process::abort();
}

fn chatter() {
    open();
    println!("driver: initialised");
    say(&Line::Ready);
    told();
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
        wrong: 0,
        latency_ns: [1, 2, 3],
        device_operations: Some(0),
    }));
    say(&Line::End);
}
