//! The procedures of frame tests.
//!
//! | Procedure | Trials | Source |
//! | --- | --- | --- |
//! | load | one | |
//! | throughput | a search ([`super::throughput`]) | RFC 9971, RFC 2544 §26.1 |
//! | mrr | several at the highest load ([`super::mrr`]) | CSIT |
//! | service | steps up to a service's rates and above ([`super::service`]) | ITU-T Y.1564 |
//! | loss-curve | falling loads until two in a row lose nothing | RFC 2544 §26.3 |
//! | back-to-back | bursts by bisection, then repeats of the longest lossless one | RFC 9004 |
//! | latency | a search, then shares of it | RFC 2544 §26.2, RFC 8219 §7.2, §7.3, RFC 8762 |
//! | recovery | a search, then an overload and relief in one trial | RFC 2544 §26.5 |
//! | rekey, failover, reset, setup, desync, hostile | a [disturbed](super::disturbed) load | |
//! | soak | one load for hours, in segments ([`super::soak`]) | |
//!
//! Latency is timed one way, or there and back.
//!
//! Each procedure returns the load of its figures, for the trial with samples and CPU time. That
//! trial follows the procedure; in a search for throughput it is the last one, which confirms the
//! result.

use super::basis::{Basis, search, searched, share};
use super::disturbed::disturbed;
use super::mrr::mrr;
use super::service::service;
use super::soak::soak;
use super::throughput::Confirm;
use super::trials::{DRAIN_NS, EVIDENCE_NS, Trials, latency_trial};
use super::{ProcedureResult, Rig, RigLoad, Strays};
use crate::error::TrialError;
use crate::event::EventSink;
use crate::measurer::Trial;
use journal::record::{
    BurstTrial, DisturbedTrials, FrameFound, FrameResult, LatencyTrial, RecoveryTrial,
};
use lab::Interrupt;
use plan::{BackToBack, FrameTest, LatencyPath, LatencyTest, Load, LossCurve, Procedure, Recovery};
use search::{BurstStep, Step};
use traffic::spec::Then;

/// Load of that trial, in per cent of the highest load, if a procedure finds no load: bursts.
const EVIDENCE_PERCENT_OF_MAX: u64 = 10;
/// Last part of the time after an overload, which must be free of loss, in per cent.
const RECOVERED_PERCENT: u64 = 10;

/// Carries out the procedure of a frame test, on a path that is up. A soak resumes after the
/// trial's checkpoints; other procedures begin anew.
///
/// # Errors
/// When a frame trial cannot be made, or the run is interrupted.
pub fn carry_out(
    trial: &Trial<'_>,
    test: &FrameTest,
    rig: &mut dyn Rig,
    events: EventSink<'_>,
    interrupt: &Interrupt,
) -> Result<ProcedureResult, TrialError> {
    let mut trials = Trials {
        trial,
        rig,
        events,
        interrupt,
        result: FrameResult::default(),
        disturbed: DisturbedTrials::default(),
        segments: Vec::new(),
        strays: Strays::default(),
        bounds: Vec::new(),
        reflected: false,
    };
    let basis = match &test.procedure {
        Procedure::Load(plan) => load(&mut trials, plan)?,
        Procedure::Throughput(plan) => search(&mut trials, plan, Confirm::Sampled)?,
        Procedure::Mrr(plan) => mrr(&mut trials, plan)?,
        Procedure::Service(plan) => service(&mut trials, plan)?,
        Procedure::LossCurve(plan) => loss_curve(&mut trials, plan)?,
        Procedure::BackToBack(plan) => back_to_back(&mut trials, plan)?,
        Procedure::Latency(plan) => latency(&mut trials, plan)?,
        Procedure::Recovery(plan) => recovery(&mut trials, plan)?,
        Procedure::Disturbed(plan) => disturbed(&mut trials, plan)?,
        Procedure::Soak(plan) => soak(&mut trials, plan)?,
    };
    Ok(ProcedureResult {
        result: trials.result,
        strays: trials.strays,
        evidence_load: RigLoad {
            reflected: trials.reflected,
            ..RigLoad::new(basis.load, EVIDENCE_NS, basis.drain_ns).with_samples()
        },
        objection: basis.objection,
    })
}

fn load(trials: &mut Trials<'_>, plan: &Load) -> Result<Basis, TrialError> {
    let load = RigLoad::new(plan.frames_per_s, plan.duration_ns, DRAIN_NS).with_variation();
    let mut latency = latency_trial(None, &trials.make(&load)?);
    // An unpaced load there would be another one back.
    if latency.is_inexact() && plan.frames_per_s.is_some() && trials.rig.reflects() {
        trials.reflected = true;
        latency = latency_trial(None, &trials.make(&load)?);
        trials.reflected = false;
    }
    trials.result.latency.push(latency);
    Ok(Basis {
        load: plan.frames_per_s,
        drain_ns: DRAIN_NS,
        objection: None,
    })
}

fn loss_curve(trials: &mut Trials<'_>, plan: &LossCurve) -> Result<Basis, TrialError> {
    let (max_load, _) = trials.highest_load(plan.max_load)?;
    let mut curve = search::LossCurve::new(max_load, plan.step_percent, plan.trial_ns)?;
    let (mut basis, mut lossless) = (max_load, None);
    while let Step::Measure(trial) = curve.next() {
        let load = RigLoad::new(Some(trial.load), trial.duration_ns, plan.drain_ns);
        let counts = trials.make(&load)?.trial.counts();
        curve.record(trial, counts);
        basis = trial.load;
        if counts.lost() == 0 {
            lossless = lossless.or(Some(trial.load));
        }
    }
    Ok(Basis::on(lossless.unwrap_or(basis), plan.drain_ns))
}

fn back_to_back(trials: &mut Trials<'_>, plan: &BackToBack) -> Result<Basis, TrialError> {
    let (max_load, _) = trials.highest_load(None)?;
    let longest = RigLoad::new(Some(max_load), plan.burst_ns_max, 0).intended();
    let mut lengths = search::BackToBack::new(longest, plan.bursts)?;
    let mut bursts = Vec::new();
    while let BurstStep::Send { frames, confirming } = lengths.next() {
        let run = trials.make(&RigLoad::burst(frames, max_load, plan.drain_ns))?;
        let lost = run.trial.counts_at_last().lost();
        lengths.record(lost);
        bursts.push(BurstTrial {
            frames,
            lost,
            confirming,
        });
    }
    trials.result.found = FrameFound::Bursts(bursts);
    let load = max_load * EVIDENCE_PERCENT_OF_MAX / 100;
    Ok(Basis::on(load.max(1), plan.drain_ns))
}

/// Times one way, if that is asked for and the clocks of the stations agree well enough; otherwise
/// round trips, also if the clocks stop agreeing in the middle.
fn latency(trials: &mut Trials<'_>, plan: &LatencyTest) -> Result<Basis, TrialError> {
    trials.reflected = plan.path == LatencyPath::RoundTrip || is_inexact_one_way(trials, plan)?;
    loop {
        let basis = latency_on_path(trials, plan)?;
        let inexact = trials.result.latency.iter().any(LatencyTrial::is_inexact);
        if !inexact || !trials.rig.reflects() {
            return Ok(basis);
        }
        trials.result.latency.clear();
        trials.reflected = true;
    }
}

/// Whether a first trial, at a low load, shows that the clocks of two hosts agree too little for
/// latencies one way, and there is another way to time.
fn is_inexact_one_way(trials: &mut Trials<'_>, plan: &LatencyTest) -> Result<bool, TrialError> {
    if !trials.rig.reflects() || !trials.rig.has_two_clocks() {
        return Ok(false);
    }
    let load = RigLoad::new(
        Some(plan.search.min_load),
        EVIDENCE_NS,
        plan.search.drain_ns,
    );
    let run = trials.make_unrecorded(&load)?;
    Ok(latency_trial(None, &run).is_inexact())
}

/// Searches for the throughput, and times frames at shares of it.
fn latency_on_path(trials: &mut Trials<'_>, plan: &LatencyTest) -> Result<Basis, TrialError> {
    let throughput = match searched(trials, &plan.search)? {
        Ok(throughput) => throughput,
        Err(basis) => return Ok(basis),
    };
    for &percent in &plan.percents {
        let load = match percent {
            0 => plan.search.min_load.min(throughput),
            _ => share(throughput, percent.into()),
        };
        let load = RigLoad::new(Some(load), plan.trial_ns, plan.search.drain_ns).with_variation();
        for _ in 0..plan.trials {
            let run = trials.make(&load)?;
            let timed = latency_trial(Some(percent), &run);
            trials.result.latency.push(timed);
        }
    }
    Ok(Basis::on(throughput, plan.search.drain_ns))
}

fn recovery(trials: &mut Trials<'_>, plan: &Recovery) -> Result<Basis, TrialError> {
    let throughput = match searched(trials, &plan.search)? {
        Ok(throughput) => throughput,
        Err(basis) => return Ok(basis),
    };
    // RFC 2544 §26.5: at most the line's rate.
    let overload = share(throughput, plan.overload_percent.into());
    let overload = trials
        .rig
        .line_rate()
        .map_or(overload, |line| overload.min(line));
    let relief = share(throughput, plan.relief_percent.into());
    let run = trials.make(&RigLoad {
        then: Some(Then {
            frames_per_s: relief,
            duration_ns: plan.relief_ns,
        }),
        ..RigLoad::new(Some(overload), plan.overload_ns, plan.search.drain_ns)
    })?;
    let after = run.relief.unwrap_or_default();
    let relief_lost = after.sent.saturating_sub(after.received);
    let quiet_from_ns = plan.relief_ns - plan.relief_ns / 100 * RECOVERED_PERCENT;
    trials.result.found = FrameFound::Recovery(RecoveryTrial {
        overload,
        relief,
        // Gaps that reordering leaves and fills are no loss; gaps of the overload were noticed
        // later.
        recovery_ns: if relief_lost > 0 {
            after.last_loss_ns
        } else {
            0
        },
        recovered: relief_lost == 0
            || after.last_loss_ns < quiet_from_ns && after.last_received_ns >= quiet_from_ns,
        overload_lost: run.trial.lost().saturating_sub(relief_lost),
        relief_lost,
    });
    Ok(Basis::on(throughput, plan.search.drain_ns))
}
