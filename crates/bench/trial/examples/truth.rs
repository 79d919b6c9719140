//! Prints how far procedures, profiles and verdicts are from the truth, on simulated devices.
//!
//! ```sh
//! cargo run --release -p cipherbench-trial --example truth [SEEDS [limits]]
//! ```
//!
//! `limits` prints the table of limits alone. `tests/truth` has the devices, and bounds for the
//! same figures.

#[path = "../tests/truth/bench.rs"]
mod bench;
#[path = "../tests/truth/device.rs"]
mod device;
#[path = "../tests/truth/events.rs"]
mod events;
#[path = "../tests/truth/evidence.rs"]
mod evidence;
#[path = "../tests/truth/expect.rs"]
mod expect;
#[path = "../tests/device/lazy.rs"]
mod lazy;
#[path = "../tests/truth/lies.rs"]
mod lies;
#[path = "../tests/truth/procedures.rs"]
mod procedures;
#[path = "../tests/truth/watched.rs"]
mod watched;

use bench::{Agreement, Finding, Truth, agreement, devices, find, plan};
use device::{CAPACITY, Model, TESTER, Tester};
use plan::Plan;
use stats::Limit;
use std::env;
use std::error::Error;
use std::io;
use trial::frames::ProcedureResult;

const SEEDS: u64 = 200;
/// The argument with which this program is the worker of a crypto device.
const WORKER: &str = "worker";
/// The argument that asks for the table of limits alone.
const LIMITS: &str = "limits";
/// Of trials on tokens, which take their time.
const SEEDS_PER_TOKEN: u64 = 40;
/// Of searches whose trials take a minute: more of them are made to the same effect.
const SEEDS_PER_LONG_SEARCH: u64 = 4;
/// Of campaigns of five repeats of rig and device.
const SEEDS_PER_CAMPAIGN: u64 = 4;
/// Of procedures that follow single frames, or minutes under load.
const SEEDS_PER_EVENT: u64 = 4;

/// Profiles and their goals.
const SEARCHES: [(&str, &str); 4] = [
    ("fast", "ndr"),
    ("fast", "pdr"),
    ("rfc2544", "ndr"),
    ("tst009", "ndr"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let seeds = match env::args().nth(1) {
        Some(word) if word == WORKER => return Ok(device_worker()?),
        Some(seeds) => seeds.parse()?,
        None => SEEDS,
    };
    match env::args().nth(2).as_deref() {
        None => {}
        Some(LIMITS) => {
            limits(seeds);
            return Ok(());
        }
        Some(other) => {
            return Err(format!("no table `{other}`: leave it out, or write `{LIMITS}`").into());
        }
    }
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
                bench::bounds(&plan, found, goal)
            })
        });
        println!("| {} | {} |", device.name, cells.join(" | "));
    }
    others(seeds);
    events_and_rates(seeds.div_ceil(SEEDS_PER_EVENT));
    judgements(seeds.div_ceil(SEEDS_PER_EVENT));
    verdicts(seeds.div_ceil(SEEDS_PER_CAMPAIGN));
    limits(seeds);
    short_times(seeds.div_ceil(SEEDS_PER_CAMPAIGN));
    lies_found(seeds);
    honest_devices(seeds.div_ceil(SEEDS_PER_CAMPAIGN));
    verifiers(seeds.div_ceil(SEEDS_PER_TOKEN));
    Ok(())
}

fn device_worker() -> io::Result<()> {
    ::device::serve(io::stdin(), io::stdout())
}

/// How often a token is found that verifies nothing, by the real trial on a real token.
fn verifiers(trials: u64) {
    let Some(token) = lazy::Token::make() else {
        return;
    };
    println!("\n| Token, `ecdsa-p256 verify` | Trials | Found |");
    println!("| --- | --- | --- |");
    for (name, fault) in [
        ("verifies", lazy::NONE),
        ("accepts every signature unseen", "LAZY"),
    ] {
        let found = (0..trials).filter(|_| lazy::is_found(&token.verifies(fault, WORKER)));
        println!("| {name} | {trials} | {} |", found.count());
    }
}

/// Procedures that do something to a device, and rates under an overload.
fn events_and_rates(seeds: u64) {
    // No head: these rows continue the table of `others`, which `main` prints right before.
    for case in procedures::cases() {
        let plan = case.plan();
        let findings: Vec<_> = (0..seeds).map(|seed| case.find(&plan, seed)).collect();
        let has_truth = findings.iter().any(|(truth, _)| truth.is_some());
        let found = bench::agreement_of_each(&findings);
        println!("| {} | {} |", case.name, words(has_truth, &found));
    }
}

/// Verdicts of service tests and soaks.
fn judgements(seeds: u64) {
    println!("\n| Verdict of a procedure | Seeds | Right | Found | False |");
    println!("| --- | --- | --- | --- | --- |");
    for case in procedures::judgements() {
        let plan = case.plan();
        let found: Vec<&str> = (0..seeds).map(|seed| case.find(&plan, seed)).collect();
        let count = |name: &str| found.iter().filter(|found| **found == name).count();
        let names = procedures::VERDICTS.into_iter().chain([procedures::NONE]);
        let counts = names.filter(|name| count(name) > 0);
        let counts: Vec<String> = counts
            .map(|name| format!("{name} {}", count(name)))
            .collect();
        println!(
            "| {} | {seeds} | {} | {} | {} |",
            case.name,
            case.right,
            counts.join(", "),
            found.len() - count(case.right) - inconclusive(case.right, count("inconclusive"))
        );
    }
}

/// A soak that shows nothing either way says nothing false.
fn inconclusive(right: &str, count: usize) -> usize {
    if right == "inconclusive" { 0 } else { count }
}

/// How often the report of a device that throttles names the time for which its rate was held.
fn short_times(seeds: u64) {
    println!("\n| Throttling after 20 s, five repeats | Campaigns | Held for a short time |");
    println!("| --- | --- | --- |");
    let throttling = Model {
        throttles_after_s: 20.0,
        ..Model::default()
    };
    for (profile, seeds) in [("fast", seeds), ("rfc2544", seeds.div_ceil(4))] {
        let plan = plan(&format!(
            "throughput: {{ frame: 64 B, profile: {profile} }}"
        ));
        let warned = (0..seeds).filter(|seed| {
            let results = bench::campaign_of(&plan, throttling, Tester::default(), *seed);
            bench::warns_of_a_short_time(&results)
        });
        println!(
            "| `{profile}` | {seeds} | warned of in {} |",
            warned.count()
        );
    }
}

/// How often evidence speaks against devices that only behave in some way.
fn honest_devices(seeds: u64) {
    println!("\n| Honest device | Seeds | Suspected |");
    println!("| --- | --- | --- |");
    let plan = bench::plan_of("cipherbench", "throughput: { frame: 509 B, profile: fast }");
    let lossy = Tester {
        receiver: 0.9 * CAPACITY,
        ..Tester::default()
    };
    for (name, tester) in [
        ("each of the throughput table", Tester::default()),
        ("each, the receiver loses more", lossy),
    ] {
        let all = devices().into_iter();
        let all = all.flat_map(|device| (0..seeds).map(move |seed| (device.model, seed)));
        let judged = all.map(|(model, seed)| {
            evidence::judge(&plan, (model, tester), watched::Lie::None, seed).suspects()
        });
        let judged: Vec<bool> = judged.collect();
        let suspected = judged.iter().filter(|suspected| **suspected).count();
        println!("| {name} | {} | {suspected} |", judged.len());
    }
}

/// Devices that are not what they seem.
fn lies_found(seeds: u64) {
    println!("\n| Device | Payload | Lie | Found | By | Error of the figure |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for case in lies::cases() {
        let plan = lies::lie_plan(&case);
        let device = (Model::default(), Tester::default());
        let judged: Vec<evidence::Judged> = (0..seeds)
            .map(|seed| evidence::judge(&plan, device, case.lie, seed))
            .collect();
        let found = judged.iter().filter(|judged| match case.found_by {
            Some(name) => judged.is_found_by(name),
            // No check is expected to find this one, so a finding by any of them counts.
            None => judged.found(),
        });
        let found = found.count();
        let mut by: Vec<String> = Vec::new();
        for judged in &judged {
            let warning = judged.warned.then(|| evidence::WARNING.to_owned());
            for name in judged.failed.iter().cloned().chain(warning) {
                if !by.contains(&name) {
                    by.push(name);
                }
            }
        }
        by.sort();
        let by: Vec<String> = by.iter().map(|name| format!("`{name}`")).collect();
        let errors = judged.iter().filter_map(|judged| judged.figure);
        let errors: Vec<f64> = errors
            .map(|figure| 100.0 * (figure / CAPACITY - 1.0))
            .collect();
        let bias = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        println!(
            "| `{}` | {} | {} | {:.1} % | {} | {bias:+.1} % |",
            case.dut,
            case.contents,
            case.name,
            100.0 * found as f64 / judged.len().max(1) as f64,
            by.join(", ")
        );
    }
}

/// The procedures beside throughput.
fn others(seeds: u64) {
    println!("\n| Procedure, device | |");
    println!("| --- | --- |");
    let row = |what: &str,
               trial: &str,
               model: Model,
               truth: Truth,
               finding: fn(&ProcedureResult) -> Finding| {
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
    finding: impl Fn(&ProcedureResult) -> Finding,
) -> String {
    let of = |seed| finding(&find(plan, model, Tester::default(), seed));
    let findings: Vec<Finding> = (0..seeds).map(of).collect();
    words(truth.is_some(), &agreement(truth, &findings))
}

/// An agreement in words: bias, worst error, covered, time.
fn words(has_truth: bool, found: &Agreement) -> String {
    let Agreement {
        seeds: _,
        bias_percent,
        worst_percent,
        covered_percent,
        wrong_percent,
        invalid_percent,
        time_s,
    } = found;
    let errors = if has_truth {
        format!("{bias_percent:+.1} %, {worst_percent:+.1} %")
    } else {
        "no figure".to_owned()
    };
    let share = |name: &str, percent: f64| match percent {
        percent if percent > 0.0 => format!(", {name} {percent:.0} %"),
        _ => String::new(),
    };
    format!(
        "{errors}, {covered_percent:.0} %{}{}, {time_s:.1} s",
        share("wrong", *wrong_percent),
        share("invalid", *invalid_percent)
    )
}

/// How often a limit is decided, and how often falsely.
fn limits(seeds: u64) {
    println!(
        "\n| Two limits | Looks | Runs | Decided | Falsely violated | Falsely met | Mean repeats |"
    );
    println!("| --- | --- | --: | --: | --: | --: | --: |");
    for case in expect::cases() {
        for (repeats, until_decided, looks) in [
            (3, false, "one, 3 repeats"),
            (10, false, "one, 10 repeats"),
            (3, true, "until decided"),
        ] {
            let found = case.count(repeats, until_decided, seeds);
            let runs = f64::from(found.runs.max(1));
            let percent = |count: u32| 100.0 * f64::from(count) / runs;
            println!(
                "| {} | {looks} | {} | {:.1} % | {:.1} % | {:.1} % | {:.1} |",
                case.name,
                found.runs,
                percent(found.decided) / 2.0,
                percent(found.falsely_violated),
                percent(found.falsely_met),
                f64::from(found.repeats) / runs
            );
        }
    }
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
            // A campaign without a verdict says as little as an inconclusive one.
            count(Limit::Inconclusive) + found.iter().filter(|found| found.is_none()).count(),
            count(is_false)
        );
    }
}
