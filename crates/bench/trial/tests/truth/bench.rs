//! Every procedure and profile on every device, with what it finds beside what is true.

use crate::device::{CAPACITY, Model, PATH_S, Simulated, TESTER, Tester};
use campaign::{HostFacts, LabFile, from_text};
use journal::record::{
    End, Environment, FORMAT_VERSION, Figures, Header, Measured, Outcome, TrialRecord,
};
use journal::{Journal, Record};
use plan::{Cell, FrameTest, Measurement, Plan};
use stats::{Limit, Results, WarningKind};
use testbed::{Interrupt, Links};
use trial::evidence::objections;
use trial::frames::{FrameObserved, ProcedureResult, Rig, carry_out, frame_checks, take_evidence};

/// What a figure may be: any value in a range, or none.
pub(crate) type Truth = Option<(f64, f64)>;

/// A device with its truth.
pub(crate) struct Device {
    /// What it is.
    pub(crate) name: &'static str,
    pub(crate) model: Model,
    /// Highest rate without loss that it sustains, in frames/s; `None`: it loses frames at any.
    pub(crate) ndr: Truth,
    /// The same with a loss of half a per cent at most.
    pub(crate) pdr: Truth,
}

const fn exactly(rate: f64) -> Truth {
    Some((rate, rate))
}

/// Half a per cent more may be offered where half a per cent may be lost.
const PDR: f64 = CAPACITY / 0.995;

/// The devices.
#[must_use]
pub(crate) fn devices() -> Vec<Device> {
    let base = Model::default();
    let device = |name, model| Device {
        name,
        model,
        ndr: exactly(CAPACITY),
        pdr: exactly(PDR),
    };
    let queue = |name, queue_s| device(name, Model { queue_s, ..base });
    let between = |name, model, low: f64, high: f64| Device {
        ndr: Some((low * CAPACITY, high * CAPACITY)),
        pdr: Some((low * PDR, high * PDR)),
        ..device(name, model)
    };
    let bucket = |name, burst_s| device(name, Model { burst_s, ..base });
    let shaper = |name, burst_s, queue_s| {
        let model = Model {
            burst_s,
            queue_s,
            ..base
        };
        device(name, model)
    };
    vec![
        device("hard limit", base),
        queue("queue of 10 ms", 0.01),
        queue("queue of 50 ms", 0.05),
        queue("queue of 200 ms", 0.2),
        queue("queue of 1 s", 1.0),
        bucket("bucket of 1 ms", 0.001),
        bucket("bucket of 10 ms", 0.01),
        bucket("bucket of 30 ms", 0.03),
        bucket("bucket of 90 ms", 0.09),
        bucket("bucket of 300 ms", 0.3),
        bucket("bucket of 1 s", 1.0),
        shaper("bucket of 10 ms, queue of 50 ms", 0.01, 0.05),
        shaper("bucket of 90 ms, queue of 20 ms", 0.09, 0.02),
        // A trial in two is within one standard deviation or so.
        between(
            "noise of 1 %",
            Model {
                noise: 0.01,
                ..base
            },
            0.98,
            1.01,
        ),
        between(
            "two bands",
            Model {
                low_band: 0.3,
                ..base
            },
            0.9,
            1.0,
        ),
        between(
            "drift of -0.1 %/min",
            Model {
                drift_per_s: -0.001 / 60.0,
                ..base
            },
            // The longest search takes half an hour.
            0.97,
            1.0,
        ),
        Device {
            ndr: None,
            ..device(
                "one frame lost per trial",
                Model {
                    lost_each_trial: 1,
                    ..base
                },
            )
        },
        // A tenth of the time is lost, and the queue carries what comes meanwhile.
        between(
            "stalls, absorbed",
            Model {
                stalls_s: Some((0.05, 0.005)),
                queue_s: 0.02,
                ..base
            },
            0.9,
            0.9,
        ),
        device(
            "reordering of 1 %",
            Model {
                reordered: 0.01,
                ..base
            },
        ),
        device(
            "slow start of 0.3 s",
            Model {
                slow_start_s: 0.3,
                ..base
            },
        ),
        between(
            "throttling after 20 s",
            Model {
                throttles_after_s: 20.0,
                ..base
            },
            0.8,
            0.8,
        ),
    ]
}

/// A test as campaigns write it, of `straight` and `router`.
#[must_use]
pub(crate) fn plan(trial: &str) -> Plan {
    plan_of("router", trial)
}

/// The same of another device.
#[must_use]
pub(crate) fn plan_of(dut: &str, trial: &str) -> Plan {
    let text = format!("campaign: c\nduts: [{dut}]\nrepeats: 5\ntrials: [{trial}]\n");
    let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let planned = campaign.plan(&LabFile::built_in(), &HostFacts { cores: 8 });
    planned.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The cell of the device.
pub(crate) fn device_cell(plan: &Plan) -> &Cell {
    let cell = plan.cells.iter().find(|cell| !cell.calibration);
    cell.expect("the plan has the device's cell")
}

pub(crate) fn frame_test(cell: &Cell) -> &FrameTest {
    match &cell.measurement {
        Measurement::Frames(test) => test,
        other => panic!("no frame test: {other:?}"),
    }
}

/// Carries a cell out on a rig, with the trial whose evidence is read and those that confirm a
/// throughput.
pub(crate) fn carried_out(cell: &Cell, repeat: u32, rig: &mut dyn Rig) -> ProcedureResult {
    let links = Links {
        mtu: 1500,
        cipher_mtu: 1500,
        offloads: false,
        rate_bps: None,
    };
    let (trial, test) = (trial::Trial::of(cell, repeat, links), frame_test(cell));
    let interrupt = Interrupt::new();
    let mut found = carry_out(&trial, test, rig, &mut |_| (), &interrupt)
        .unwrap_or_else(|error| panic!("{error}"));
    let taken = take_evidence(&mut found, test, rig, &interrupt);
    taken.unwrap_or_else(|error| panic!("{error}"));
    found
}

/// Why a result is invalid by the checks that need no links.
pub(crate) fn invalid(cell: &Cell, found: &ProcedureResult) -> Vec<String> {
    objections(&frame_checks(&FrameObserved {
        test: frame_test(cell),
        result: &found.result,
        strays: &found.strays,
        seen: None,
    }))
}

/// The procedure on a device, with a seed.
#[must_use]
pub(crate) fn find(plan: &Plan, model: Model, tester: Tester, seed: u64) -> ProcedureResult {
    let mut rig = Simulated::new(model, tester, seed);
    carried_out(device_cell(plan), 1, &mut rig)
}

/// A cell's id, a repeat's number, what was found, and why it is invalid.
pub(crate) type Recorded = (String, u32, ProcedureResult, Vec<String>);

/// The figures and warnings of a run with these records.
pub(crate) fn results(plan: &Plan, records: Vec<Recorded>) -> Results {
    let mut journal = empty_journal(plan);
    for record in records {
        accept(&mut journal, record);
    }
    journal.end = Some(End { at_unix_ns: 1 });
    Results::of(&journal)
}

/// A run that has just begun.
pub(crate) fn empty_journal(plan: &Plan) -> Journal {
    Journal::new(Header {
        format: FORMAT_VERSION,
        started_unix_ns: 0,
        command: Vec::new(),
        program: String::new(),
        environment: Environment {
            cpus: 8,
            ..Environment::default()
        },
        plan: plan.clone(),
    })
}

/// Adds a trial of a second to a run.
pub(crate) fn accept(journal: &mut Journal, (cell, repeat, found, reasons): Recorded) {
    let measured = Box::new(Measured {
        figures: Figures::Frames(Box::new(found.result)),
        ..Measured::default()
    });
    let record = TrialRecord {
        cell,
        repeat,
        started_unix_ns: 0,
        duration_ns: 1_000_000_000,
        clock_step_ns: 0,
        commands: Vec::new(),
        outcome: if reasons.is_empty() {
            Outcome::Measured(measured)
        } else {
            Outcome::Invalid { reasons, measured }
        },
    };
    let accepted = journal.accept(Record::Trial(Box::new(record)));
    accepted.unwrap_or_else(|error| panic!("{error}"));
}

/// Agreement with the truth over many seeds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Agreement {
    pub(crate) seeds: u32,
    /// Mean error of the figure, in per cent of the truth: 0 within its range.
    pub(crate) bias_percent: f64,
    /// Largest error, regardless of its sign.
    pub(crate) worst_percent: f64,
    /// Share of the seeds whose bounds contain the truth, but for the
    /// growth of a queue that may be noise, a little over a per cent; of procedures
    /// without bounds, whose figure is within 3 %.
    pub(crate) covered_percent: f64,
    /// Share of the seeds with a figure where there is none, or none where there is one.
    pub(crate) wrong_percent: f64,
    /// Share of the seeds whose result is invalid, since further trials contradict it.
    pub(crate) invalid_percent: f64,
    /// Mean time of the procedure, in seconds.
    pub(crate) time_s: f64,
}

/// What one seed found: the figure with its upper bound, and the time that it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finding {
    pub(crate) figure: Option<f64>,
    pub(crate) upper: Option<f64>,
    pub(crate) time_s: f64,
    /// Whether the instrument itself says that there is no figure.
    pub(crate) is_invalid: bool,
}

/// Compares findings with the truth.
#[must_use]
pub(crate) fn agreement(truth: Truth, findings: &[Finding]) -> Agreement {
    let each: Vec<_> = findings.iter().map(|finding| (truth, *finding)).collect();
    agreement_of_each(&each)
}

/// Compares each finding with its own truth.
#[must_use]
pub(crate) fn agreement_of_each(findings: &[(Truth, Finding)]) -> Agreement {
    let mut sum = Agreement::default();
    let (mut valid, mut compared) = (0.0, 0.0);
    for (truth, finding) in findings {
        sum.seeds += 1;
        sum.time_s += finding.time_s;
        if finding.is_invalid {
            // The instrument withdraws this figure by itself, so it is neither right nor wrong.
            sum.invalid_percent += 1.0;
            continue;
        }
        valid += 1.0;
        let (Some((low, high)), Some(figure)) = (*truth, finding.figure) else {
            let is_right = truth.is_none() && finding.figure.is_none();
            sum.covered_percent += f64::from(u8::from(is_right));
            sum.wrong_percent += f64::from(u8::from(!is_right));
            continue;
        };
        // Any value in the range is right, so the error is the distance to the range.
        let nearest = figure.clamp(low, high);
        let error = match figure - nearest {
            // Without this arm a truth of 0, as of frames lost, divides 0 by 0.
            0.0 => 0.0,
            apart => 100.0 * apart / nearest,
        };
        sum.bias_percent += error;
        compared += 1.0;
        if error.abs() > f64::abs(sum.worst_percent) {
            sum.worst_percent = error;
        }
        let covered = match finding.upper {
            Some(upper) => figure <= 1.0125 * high && low <= upper,
            None => error.abs() <= 3.0,
        };
        sum.covered_percent += f64::from(u8::from(covered));
    }
    let seeds = f64::from(sum.seeds.max(1));
    let valid = f64::max(valid, 1.0);
    sum.bias_percent /= f64::max(compared, 1.0);
    sum.covered_percent *= 100.0 / valid;
    sum.wrong_percent *= 100.0 / valid;
    sum.invalid_percent *= 100.0 / seeds;
    sum.time_s /= seeds;
    sum
}

fn time_s(found: &ProcedureResult) -> f64 {
    let trials = found.result.trials.iter();
    trials.map(|trial| trial.elapsed_ns as f64 / 1e9).sum()
}

/// What the search of a goal found.
#[must_use]
pub(crate) fn bounds(plan: &Plan, found: &ProcedureResult, goal: &str) -> Finding {
    let throughput = found.result.throughput.as_ref().expect("a search");
    let bounds = throughput.goals.iter().find(|bounds| bounds.goal == goal);
    let bounds = bounds.expect("the goal");
    Finding {
        figure: bounds.lower.map(|load| load as f64),
        upper: bounds.upper.map(|load| load as f64),
        time_s: throughput.took_ns as f64 / 1e9,
        is_invalid: !invalid(device_cell(plan), found).is_empty(),
    }
}

/// The median latency at half of the throughput, in seconds.
#[must_use]
pub(crate) fn median_latency(found: &ProcedureResult) -> Finding {
    let mut latency = found.result.latency.iter();
    let half = latency.find(|found| found.percent == Some(50));
    let figure = half.map(|half| {
        let mut left = half.frames.div_ceil(2);
        // Buckets rise, so the one that uses up the first half of the frames has the median.
        let bucket = half.histogram.iter().find(|bucket| {
            left = left.saturating_sub(bucket.frames);
            left == 0
        });
        bucket.map_or(0.0, |bucket| bucket.upto_ns as f64 / 1e9)
    });
    Finding {
        figure,
        upper: None,
        time_s: time_s(found),
        is_invalid: false,
    }
}

/// Where the median latency at half of the throughput is: the path's, and at most twice the jitter
/// and the microsecond of a bucket.
pub(crate) const LATENCY: Truth = Some((PATH_S, PATH_S + 42e-6));

/// The longest burst without loss.
#[must_use]
pub(crate) fn burst(found: &ProcedureResult) -> Finding {
    let passed = found.result.bursts().iter().filter(|burst| burst.lost == 0);
    Finding {
        figure: passed
            .map(|burst| burst.frames as f64)
            .fold(None, |most, frames| {
                Some(most.map_or(frames, |most: f64| most.max(frames)))
            }),
        upper: None,
        time_s: time_s(found),
        is_invalid: false,
    }
}

/// The longest burst that a device behind a queue takes: what does not leave meanwhile.
#[must_use]
pub(crate) fn longest_burst(model: &Model) -> f64 {
    model.queue_s * model.capacity / (1.0 - model.capacity / TESTER)
}

/// The time from the end of an overload to the last loss.
#[must_use]
pub(crate) fn recovery(found: &ProcedureResult) -> Finding {
    let recovery = found.result.recovery();
    Finding {
        figure: recovery.map(|found| found.recovery_ns as f64 / 1e9),
        upper: None,
        time_s: time_s(found),
        is_invalid: false,
    }
}

/// The highest load of a curve without loss.
#[must_use]
pub(crate) fn lossless(found: &ProcedureResult) -> Finding {
    let trials = found.result.trials.iter().enumerate();
    // The first trial at the highest load and the trial with the evidence are no steps of the
    // curve.
    let own = trials.filter(|(place, _)| {
        Some(*place) != found.result.flood_trial && Some(*place) != found.result.evidence_trial
    });
    let clean = own.filter(|(_, trial)| trial.counts().lost() == 0);
    Finding {
        figure: clean
            .map(|(_, trial)| trial.load)
            .max()
            .map(|load| load as f64),
        upper: None,
        time_s: time_s(found),
        is_invalid: false,
    }
}

/// A whole campaign: its repeats of the rig and the device, by the real statistics.
#[must_use]
pub(crate) fn campaign_of(plan: &Plan, model: Model, tester: Tester, seed: u64) -> Results {
    let alone = Model {
        capacity: 100.0 * TESTER,
        ..Model::default()
    };
    let mut records = Vec::new();
    for repeat in 1..=plan.repeats {
        for cell in &plan.cells {
            // A calibration has no device on its path, so that the tester alone limits it.
            let own = if cell.calibration { alone } else { model };
            // Each repeat differs, and differs from the repeats of every other seed.
            let seed = seed.wrapping_mul(1000).wrapping_add(u64::from(repeat));
            let mut rig = Simulated::new(own, tester, seed);
            let found = carried_out(cell, repeat, &mut rig);
            let reasons = invalid(cell, &found);
            records.push((cell.id.clone(), repeat, found, reasons));
        }
    }
    results(plan, records)
}

/// Limit and figure of a whole campaign.
#[must_use]
pub(crate) fn verdict(
    plan: &Plan,
    model: Model,
    tester: Tester,
    seed: u64,
) -> Option<(Limit, f64)> {
    let results = campaign_of(plan, model, tester, seed);
    let cell = results.cell(&device_cell(plan).id)?;
    Some((cell.verdict()?.limit, cell.frame_rate()?.mean))
}

/// Whether the report of a campaign warns that its rate was held for a short time only.
#[must_use]
pub(crate) fn warns_of_a_short_time(results: &Results) -> bool {
    let mut warnings = results.warnings.iter();
    warnings.any(|found| found.kind == WarningKind::HeldShortly)
}
