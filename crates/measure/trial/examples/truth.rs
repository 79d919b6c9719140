//! Prints how far procedures, profiles and verdicts are from the truth, on simulated devices.
//!
//! ```sh
//! cargo run --release -p cipherbench-trial --example truth [SEEDS]
//! ```
//!
//! `tests/truth` has the devices, and bounds for the same figures.

#[path = "../tests/truth/bench.rs"]
mod bench;
#[path = "../tests/truth/device.rs"]
mod device;

use bench::{Agreement, Finding, Truth, agreement, devices, find, plan};
use campaign::plan::Plan;
use device::{CAPACITY, Model, TESTER, Tester};
use stats::Limit;
use std::env;
use std::error::Error;
use trial::frames::Found;

const SEEDS: u64 = 200;
/// Of searches whose trials take a minute: more of them are made to the same effect.
const SEEDS_PER_LONG_SEARCH: u64 = 4;
/// Of campaigns of five repeats of rig and device.
const SEEDS_PER_CAMPAIGN: u64 = 4;

/// Profiles and their goals.
const SEARCHES: [(&str, &str); 4] = [
    ("fast", "ndr"),
    ("fast", "pdr"),
    ("rfc2544", "ndr"),
    ("tst009", "ndr"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let seeds = match env::args().nth(1) {
        Some(seeds) => seeds.parse()?,
        None => SEEDS,
    };
    let long = seeds.div_ceil(SEEDS_PER_LONG_SEARCH);
    println!(
        "Bias, worst error, covered, time; {seeds} seeds, of `rfc2544` and `tst009` {long}.\n"
    );
    println!("| Throughput | `fast`, NDR | `fast`, PDR | `rfc2544` | `tst009` |");
    println!("| --- | --- | --- | --- | --- |");
    for device in devices() {
        let cells = SEARCHES.map(|(profile, goal)| {
            let plan = plan(&format!(
                "throughput: {{ frame: 64 B, profile: {profile} }}"
            ));
            let truth = if goal == "ndr" {
                device.ndr
            } else {
                device.pdr
            };
            let seeds = if profile == "fast" { seeds } else { long };
            cell(&plan, device.model, truth, seeds, |found| {
                bench::bounds(found, goal)
            })
        });
        println!("| {} | {} |", device.name, cells.join(" | "));
    }
    others(seeds);
    verdicts(seeds.div_ceil(SEEDS_PER_CAMPAIGN));
    Ok(())
}

/// The procedures beside throughput.
fn others(seeds: u64) {
    println!("\n| Procedure, device | |");
    println!("| --- | --- |");
    let row =
        |what: &str, trial: &str, model: Model, truth: Truth, finding: fn(&Found) -> Finding| {
            println!(
                "| {what} | {} |",
                cell(&plan(trial), model, truth, seeds, finding)
            );
        };
    let recovers = Model {
        queue_s: 0.01,
        recovers_in_s: 0.3,
        ..Model::default()
    };
    row(
        "recovery: loses all for 0.3 s after an overload",
        "recovery: { frame: 64 B }",
        recovers,
        Some((0.3, 0.3)),
        bench::recovery,
    );
    for queue_s in [0.01, 0.2] {
        let queue = Model {
            queue_s,
            ..Model::default()
        };
        let ms = 1000.0 * queue_s;
        let longest = bench::longest_burst(&queue);
        let longest = Some((longest, longest));
        row(
            &format!("latency, median at 50 %: queue of {ms} ms"),
            "latency: { frame: 64 B }",
            queue,
            bench::LATENCY,
            bench::median_latency,
        );
        row(
            &format!("back-to-back, drain of 100 ms: queue of {ms} ms"),
            "back-to-back: { frame: 64 B }",
            queue,
            longest,
            bench::burst,
        );
        row(
            &format!("back-to-back, drain of 2 s: queue of {ms} ms"),
            "back-to-back: { frame: 64 B, drain: 2 s }",
            queue,
            longest,
            bench::burst,
        );
        row(
            &format!("loss-curve, steps of 1 %, last step without loss: queue of {ms} ms"),
            "loss-curve: { frame: 64 B, step: 1 % }",
            queue,
            // The next step below the capacity.
            Some((CAPACITY - TESTER / 100.0, CAPACITY)),
            bench::lossless,
        );
    }
}

/// What a procedure finds over many seeds, beside the truth.
fn cell(
    plan: &Plan,
    model: Model,
    truth: Truth,
    seeds: u64,
    finding: impl Fn(&Found) -> Finding,
) -> String {
    let of = |seed| finding(&find(plan, model, Tester::default(), seed));
    let findings: Vec<Finding> = (0..seeds).map(of).collect();
    let Agreement {
        seeds: _,
        bias_percent,
        worst_percent,
        covered_percent,
        wrong_percent,
        time_s,
    } = agreement(truth, &findings);
    let errors = match truth {
        None => "no figure".to_owned(),
        Some(_) => format!("{bias_percent:+.1} %, {worst_percent:+.1} %"),
    };
    let wrong = match wrong_percent {
        wrong if wrong > 0.0 => format!(", wrong {wrong:.0} %"),
        _ => String::new(),
    };
    format!("{errors}, {covered_percent:.0} %{wrong}, {time_s:.1} s")
}

/// False verdicts: of a device that is slower than the tester, of one that is faster, and with a
/// tester of which neither can be said.
fn verdicts(seeds: u64) {
    let fast = plan("throughput: { frame: 64 B, profile: fast }");
    println!(
        "\n| Campaign of five repeats | Campaigns | dut-limited | tester-limited | inconclusive | False |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    let slow = Model::default();
    let queue = Model {
        queue_s: 1.0,
        ..slow
    };
    let stalls = Tester {
        stalls: (0.2, 0.05),
        ..Tester::default()
    };
    let lossy = Tester {
        receiver: 0.9 * CAPACITY,
        ..Tester::default()
    };
    let faster = Model {
        capacity: 2.0 * TESTER,
        ..slow
    };
    let bands = Model {
        low_band: 0.3,
        ..slow
    };
    let sound = Tester::default();
    for (name, model, tester, is_false) in [
        ("slower than the tester", slow, sound, Limit::TesterLimited),
        ("slower, queue of 1 s", queue, sound, Limit::TesterLimited),
        ("slower, two bands", bands, sound, Limit::TesterLimited),
        (
            "slower, sender stalls 50 ms in one trial of five",
            slow,
            stalls,
            Limit::TesterLimited,
        ),
        ("faster than the tester", faster, sound, Limit::DutLimited),
        (
            "slower, the receiver loses more",
            slow,
            lossy,
            Limit::DutLimited,
        ),
    ] {
        let found = (0..seeds).map(|seed| bench::verdict(&fast, model, tester, seed));
        let found: Vec<Option<Limit>> = found.map(|found| found.map(|(limit, _)| limit)).collect();
        let count = |limit| found.iter().filter(|found| **found == Some(limit)).count();
        println!(
            "| {name} | {seeds} | {} | {} | {} | {} |",
            count(Limit::DutLimited),
            count(Limit::TesterLimited),
            count(Limit::Inconclusive) + found.iter().filter(|found| found.is_none()).count(),
            count(is_false)
        );
    }
}
