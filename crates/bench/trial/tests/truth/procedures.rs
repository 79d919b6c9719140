//! Procedures other than searches, each on devices of known truth: the figure of the report, by the
//! real statistics.

use crate::bench::{Finding, Truth, carried_out, device_cell, invalid, plan_of, results};
use crate::device::{CAPACITY, Model, Simulated, Tester};
use crate::events::{Events, Happened};
use plan::Plan;
use stats::{EventTimes, FrameFigures, SoakVerdict};

/// A procedure on a device, with a figure and its truth.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    dut: &'static str,
    trial: &'static str,
    model: Model,
    truth: fn(&Simulated) -> Truth,
    figure: fn(&FrameFigures) -> Option<f64>,
}

impl Case {
    /// Its campaign.
    pub(crate) fn plan(&self) -> Plan {
        plan_of(self.dut, self.trial)
    }

    /// What one seed finds, and what is true.
    pub(crate) fn find(&self, plan: &Plan, seed: u64) -> (Truth, Finding) {
        let (found, rig) = figures(plan, self.model, seed, self.figure);
        // The truth is read from the device afterwards: it depends on the events that this seed
        // drew.
        ((self.truth)(&rig), found)
    }
}

/// Carries a procedure out once and returns a figure of the report, with the device afterwards.
fn figures(
    plan: &Plan,
    model: Model,
    seed: u64,
    figure: impl Fn(&FrameFigures) -> Option<f64>,
) -> (Finding, Simulated) {
    let cell = device_cell(plan);
    let mut rig = Simulated::new(model, Tester::default(), seed);
    let found = carried_out(cell, 1, &mut rig);
    let time_s = rig.clock_s;
    let reasons = invalid(cell, &found);
    let is_invalid = !reasons.is_empty();
    let results = results(plan, vec![(cell.id.clone(), 1, found, reasons)]);
    let figures = results.cell(&cell.id).and_then(|cell| cell.frames());
    let finding = Finding {
        figure: figures.and_then(figure),
        upper: None,
        time_s,
        is_invalid,
    };
    (finding, rig)
}

fn mean(rig: &Simulated, of: fn(&Happened) -> f64) -> f64 {
    let sum: f64 = rig.happened.iter().map(of).sum();
    sum / rig.happened.len().max(1) as f64
}

/// Times are known to a bin of a millisecond, and end with it.
fn to_a_bin(time_s: f64) -> Truth {
    Some((time_s, time_s + 0.001))
}

const REKEY: &str = "rekey: { frame: 64 B, load: 20 kpps, every: 500 ms, duration: 10 s }";
const REKEYED_PER_S: f64 = 20_000.0;
const CRASH: &str = "failover: { frame: 64 B, load: 2 kpps, failure: crash, times: 5, watch: 2 s }";
const LINK: &str = "failover: { frame: 64 B, load: 2 kpps, failure: link, times: 5, watch: 2 s }";
const SET_UP: &str = "setup: { frame: 64 B, load: 16 kpps, times: 5, watch: 500 ms }";
const DESYNC: &str =
    "desync: { frame: 64 B, load: 2 kpps, cause: missed-rollover, times: 5, watch: 3 s }";
/// Hostile packets as work: at 200 % of half the capacity it is 150 % of it.
const HOSTILE: &str = "hostile: { frame: 64 B, load: 150 kpps, attack: bad-icv, duration: 1 s, shares: [10 %, 50 %, 100 %, 200 %] }";
const TUNNELS: &str = "cipherbench: { tunnels: 16 }";

/// The cases.
pub(crate) fn cases() -> Vec<Case> {
    let base = Model::default();
    let events = |events| Model { events, ..base };
    let none = Events::default();
    let case = |name, dut, trial, model, truth, figure| Case {
        name,
        dut,
        trial,
        model,
        truth,
        figure,
    };
    let ours = "cipherbench";
    let agreed = "cipherbench: { keys: pqc }";
    let rekeyed = |rekey_s, loses_one_in| {
        events(Events {
            rekey_s,
            spread: 0.2,
            loses_one_in,
            ..none
        })
    };
    let spread = events(Events {
        spread: 0.2,
        ..none
    });
    let attacked = events(Events {
        hostile_cost: 2.0,
        lets_through_one_in: Some(1000),
        ..none
    });
    vec![
        case(
            "rekey, frames lost by each: loses all for 5 ms",
            ours,
            REKEY,
            rekeyed(0.005, None),
            |rig| {
                let lost = REKEYED_PER_S * mean(rig, |one| one.outage_s);
                Some((lost, lost))
            },
            |found| Some(found.disturbance()?.rekey()?.lost_frames.as_ref()?.mean),
        ),
        case(
            "rekey, longest gap: loses all for 5 ms",
            ours,
            REKEY,
            rekeyed(0.005, None),
            |rig| to_a_bin(mean(rig, |one| one.outage_s)),
            |found| ended(&found.disturbance()?.rekey()?.outage_ns),
        ),
        case(
            "rekey, frames lost by each: loses none",
            ours,
            REKEY,
            rekeyed(0.0, None),
            |_| Some((0.0, 0.0)),
            |found| Some(found.disturbance()?.rekey()?.lost_frames.as_ref()?.mean),
        ),
        case(
            "rekey, clean repeats: loses one frame in 10 000 at any time",
            ours,
            REKEY,
            rekeyed(0.0, Some(10_000.0)),
            |_| Some((0.0, 0.0)),
            |found| Some(found.disturbance()?.rekey()?.clean.repeats as f64),
        ),
        case(
            "failover by a crash, outage: down for 1 s, carries 0.25 s after the restart",
            ours,
            CRASH,
            spread,
            |rig| to_a_bin(mean(rig, |one| one.outage_s)),
            |found| ended(&found.disturbance()?.failover()?.outage_ns),
        ),
        case(
            "failover of the link, outage: down for 1 s, carries 0.25 s after it",
            ours,
            LINK,
            spread,
            |rig| to_a_bin(mean(rig, |one| one.outage_s)),
            |found| ended(&found.disturbance()?.failover()?.outage_ns),
        ),
        case(
            "failover by a crash, outage: does not recover in the time watched",
            ours,
            CRASH,
            events(Events {
                recovers_s: 5.0,
                ..none
            }),
            |_| None,
            |found| ended(&found.disturbance()?.failover()?.outage_ns),
        ),
        case(
            "setup, tunnels/s: 16 tunnels, one after the other in 0.2 s",
            TUNNELS,
            SET_UP,
            events(Events {
                tunnels: 16,
                spread: 0.2,
                ..none
            }),
            |rig| {
                // To a bin of a millisecond, as a mean over the set-ups.
                let rates = rig.happened.iter().map(|one| one.after_s);
                let rate = |more: f64| {
                    let rates = rates.clone().map(|after_s| 16.0 / (after_s + more));
                    rates.sum::<f64>() / rig.happened.len().max(1) as f64
                };
                Some((rate(0.001), rate(-0.001)))
            },
            |found| Some(found.disturbance()?.setup()?.tunnels_per_s.as_ref()?.mean),
        ),
        case(
            "desync, outage: finds it after 0.8 s",
            agreed,
            DESYNC,
            spread,
            |rig| to_a_bin(mean(rig, |one| one.outage_s)),
            |found| ended(&found.disturbance()?.desync()?.outage_ns),
        ),
        case(
            "hostile, forwarded at 200 %: a hostile packet is the work of two frames",
            ours,
            HOSTILE,
            attacked,
            // Of 150 k frames and 600 k of work for hostile packets it does 300 k.
            |_| Some((0.4, 0.4)),
            |found| {
                Some(
                    found
                        .disturbance()?
                        .hostile()?
                        .shares
                        .last()?
                        .forwarded_ratio
                        .mean,
                )
            },
        ),
        case(
            "hostile, suffers from: the same",
            ours,
            HOSTILE,
            attacked,
            |_| Some((100.0, 100.0)),
            |found| {
                found
                    .disturbance()?
                    .hostile()?
                    .suffers_from_percent
                    .map(f64::from)
            },
        ),
        case(
            "hostile, suffers from: a hostile packet is no work",
            ours,
            HOSTILE,
            base,
            |_| None,
            |found| {
                found
                    .disturbance()?
                    .hostile()?
                    .suffers_from_percent
                    .map(f64::from)
            },
        ),
        case(
            "hostile, came through: one hostile packet in 1000",
            ours,
            HOSTILE,
            attacked,
            // One in 1000 of all hostile packets: 10 + 50 + 100 + 200 % of 150 k frames/s in a
            // second.
            |_| Some((540.0, 540.0)),
            |found| Some(found.disturbance()?.hostile()?.delivered as f64),
        ),
        case(
            "load of 400 k frames/s, forwarding rate: hard limit",
            "router",
            "load: { frame: 64 B, rate: 400 kpps }",
            base,
            |_| Some((CAPACITY, CAPACITY)),
            rate,
        ),
        case(
            "mrr: hard limit",
            "router",
            "mrr: { frame: 64 B }",
            base,
            |_| Some((CAPACITY, CAPACITY)),
            rate,
        ),
        case(
            "mrr: queue of 200 ms",
            "router",
            "mrr: { frame: 64 B }",
            Model {
                queue_s: 0.2,
                ..base
            },
            |_| Some((CAPACITY, CAPACITY)),
            rate,
        ),
        case(
            "mrr: throttling after 20 s",
            "router",
            "mrr: { frame: 64 B }",
            Model {
                throttles_after_s: 20.0,
                ..base
            },
            |_| Some((0.8 * CAPACITY, 0.8 * CAPACITY)),
            rate,
        ),
    ]
}

/// Mean of the events that ended, in seconds.
fn ended(times: &EventTimes) -> Option<f64> {
    Some(times.ended_ns.as_ref()?.mean / 1e9)
}

fn rate(found: &FrameFigures) -> Option<f64> {
    Some(found.frame_rate()?.mean)
}

/// A procedure with a verdict, and the right one.
pub(crate) struct Judgement {
    pub(crate) name: &'static str,
    trial: &'static str,
    model: Model,
    pub(crate) right: &'static str,
}

/// What a verdict is where there is none, or an invalid one.
pub(crate) const NONE: &str = "no verdict";

impl Judgement {
    pub(crate) fn plan(&self) -> Plan {
        plan_of("router", self.trial)
    }

    /// The verdict for a seed.
    pub(crate) fn find(&self, plan: &Plan, seed: u64) -> &'static str {
        let verdict = |found: &FrameFigures| {
            // A figure is a number, so each verdict is one here.
            let passed = found
                .service()
                .map(|service| if service.passed { 0.0 } else { 1.0 });
            let stable = found.soak().map(|soak| match soak.verdict {
                SoakVerdict::Stable => 2.0,
                SoakVerdict::Inconclusive => 3.0,
                SoakVerdict::Unstable => 4.0,
            });
            passed.or(stable)
        };
        let (found, _) = figures(plan, self.model, seed, verdict);
        match found.figure {
            Some(number) => VERDICTS[number as usize],
            None => NONE,
        }
    }
}

/// Verdicts of service tests and soaks.
pub(crate) const VERDICTS: [&str; 5] = ["passed", "failed", "stable", "inconclusive", "unstable"];

const SOAK: &str = "soak: { frame: 64 B, load: 150 kpps, duration: 10 min }";
const SOAK_AT_FAST: &str =
    "soak: { frame: 64 B, load: 100 %, profile: fast, duration: 2 min, segment: 30 s }";

/// The procedures with a verdict.
pub(crate) fn judgements() -> Vec<Judgement> {
    let base = Model::default();
    let case = |name, trial, model, right| Judgement {
        name,
        trial,
        model,
        right,
    };
    let queue = Model {
        queue_s: 1.0,
        ..base
    };
    vec![
        case(
            "service of 250 k frames/s",
            "service: { frame: 64 B, cir: 250 kpps }",
            base,
            "passed",
        ),
        case(
            "service of 310 k frames/s",
            "service: { frame: 64 B, cir: 310 kpps }",
            base,
            "failed",
        ),
        case(
            "service of 310 k frames/s, mean delay of 10 ms: queue of 1 s",
            "service: { frame: 64 B, cir: 310 kpps, delay: 10 ms }",
            queue,
            "failed",
        ),
        case("soak at half its capacity", SOAK, base, "stable"),
        case(
            "soak: capacity scatters by 1 %",
            SOAK,
            Model {
                noise: 0.01,
                ..base
            },
            "stable",
        ),
        case(
            "soak: queue of 50 ms",
            SOAK,
            Model {
                queue_s: 0.05,
                ..base
            },
            "stable",
        ),
        case(
            "soak: capacity falls by 4 %/min",
            SOAK,
            Model {
                drift_per_s: -0.04 / 60.0,
                ..base
            },
            "unstable",
        ),
        case(
            "soak: memory grows by 3 %/min",
            SOAK,
            Model {
                leaks_per_s: 0.03 / 60.0,
                ..base
            },
            "unstable",
        ),
        case(
            "soak: stands still for 150 ms every 2 min",
            SOAK,
            Model {
                stalls_s: Some((120.0, 0.15)),
                ..base
            },
            "unstable",
        ),
        case(
            "soak: finds its keys out of step, once",
            SOAK,
            Model {
                desyncs_at_s: 300.0,
                ..base
            },
            "unstable",
        ),
        case(
            "soak at what `fast` found: hard limit",
            SOAK_AT_FAST,
            base,
            "stable",
        ),
        case(
            "soak at what `fast` found: throttling after 20 s",
            SOAK_AT_FAST,
            Model {
                throttles_after_s: 20.0,
                ..base
            },
            "unstable",
        ),
    ]
}
