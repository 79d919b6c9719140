//! A service test: each step against the service's limits.

use super::Repeats;
use super::loads::{self, LoadResult};
use super::rates::Lengths;
use crate::counts::was;
use crate::figures::estimate::Estimate;
use crate::figures::repeats::per_second;
use journal::record::{FrameTrial, LatencyTrial, ServiceTrial};
use plan::{ServiceStep, ServiceTest};
use schemars::JsonSchema;
use serde::Serialize;
use units::human::{duration_ns, frame_rate};

/// Tolerated excess of a policed rate as a share of it, for its bursts (the M of ITU-T Y.1564
/// §8.1.2).
const POLICING_MARGIN: f64 = 0.01;

/// The result of a `service` procedure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServiceResult {
    /// Whether every step passed in every repeat.
    pub passed: bool,
    /// The steps, in their order.
    pub steps: Vec<ServiceStepResult>,
}

/// A step of a service test.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ServiceStepResult {
    /// `25 % of CIR` …, `CIR + EIR`, `policing`.
    pub step: String,
    /// Frames offered, received and lost.
    pub load: LoadResult,
    /// Mean delay; `null` when nothing arrived in a repeat.
    pub delay_ns: Option<Estimate>,
    /// 99.9th percentile of the delay less the smallest, of the direction that varies more; `null`
    /// below 1000 frames in a repeat.
    pub variation_ns: Option<Estimate>,
    /// What did not keep to the limits, in sentences; empty: the step passed.
    pub failures: Vec<String>,
}

/// A repeat's number, its step and its counts.
type Step<'a> = (u32, &'a ServiceTrial, &'a FrameTrial);

impl ServiceResult {
    /// `None` when a repeat lacks a step.
    pub(super) fn of(plan: &ServiceTest, lengths: &Lengths, repeats: &Repeats<'_>) -> Option<Self> {
        let steps = plan.steps().map(|step| {
            let found = repeats.iter().map(|(repeat, found)| {
                let own = found.service().iter().find(|own| own.step == step)?;
                Some((*repeat, own, found.trials.get(own.trial)?))
            });
            ServiceStepResult::of(plan, step, lengths, &found.collect::<Option<Vec<_>>>()?)
        });
        // A service passes only if every step was tried: a missing one leaves no verdict.
        let steps: Vec<ServiceStepResult> = steps.collect::<Option<_>>()?;
        Some(Self {
            passed: steps.iter().all(|step| step.failures.is_empty()),
            steps,
        })
    }

    /// The first step that failed.
    #[must_use]
    pub fn first_failed(&self) -> Option<&ServiceStepResult> {
        self.steps.iter().find(|step| !step.failures.is_empty())
    }
}

impl ServiceStepResult {
    fn of(
        plan: &ServiceTest,
        step: ServiceStep,
        lengths: &Lengths,
        found: &[Step<'_>],
    ) -> Option<Self> {
        let counted: Vec<(u32, &FrameTrial)> = found
            .iter()
            .map(|(repeat, _, trial)| (*repeat, *trial))
            .collect();
        let estimate = |value: fn(&LatencyTrial) -> Option<f64>| {
            let found = found.iter();
            Estimate::of_all(found.map(|(repeat, own, _)| (*repeat, value(&own.latency))))
        };
        let failures = found
            .iter()
            .flat_map(|one| failures(plan, step, lengths, one));
        Some(Self {
            step: name(step),
            load: loads::result(lengths, None, &counted)?,
            delay_ns: estimate(mean_delay),
            variation_ns: estimate(variation),
            failures: failures.collect(),
        })
    }
}

/// Returns the criteria that one trial did not meet.
fn failures(
    plan: &ServiceTest,
    step: ServiceStep,
    lengths: &Lengths,
    (repeat, own, trial): &Step<'_>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut fail = |what: String| failures.push(format!("Repeat {repeat}: {what}."));
    if let ServiceStep::Cir(_) = step {
        // Each direction is a separate service.
        for own in trial.each_direction() {
            let most_lost = u128::from(own.sent) * u128::from(plan.loss_ppm);
            if u128::from(own.lost()) * 1_000_000 > most_lost {
                let lost = own.lost();
                fail(format!("{lost} of {} frames {} lost", own.sent, was(lost)));
            }
        }
        let limits = [
            ("mean delay", plan.delay_ns, mean_delay(&own.latency)),
            (
                "delay variation",
                plan.variation_ns,
                variation(&own.latency),
            ),
        ];
        for (what, limit, found) in limits {
            match (limit, found) {
                // A limit that cannot be checked is not kept: otherwise a service that delivers
                // nothing would pass.
                (Some(_), None) => fail(format!("too few frames arrived for the {what}")),
                (Some(limit), Some(found)) if found > limit as f64 => fail(format!(
                    "the {what} was {}, over {}",
                    duration_ns(found),
                    duration_ns(limit as f64)
                )),
                _ => {}
            }
        }
        // Only the committed rate has limits of delay and loss. Above it the frames carry no
        // colour, so none can be attributed to the CIR (ITU-T Y.1564 §8.1.2).
        return failures;
    }
    // Older journals have only the sum of both directions.
    let summed = match trial.directions.len() {
        0 => lengths.directions,
        _ => 1,
    };
    for own in trial.each_direction() {
        let time_ns = own.elapsed_ns.max(own.duration_ns);
        let received = per_second(own.received, time_ns).unwrap_or(0.0) / summed as f64;
        let least = plan.cir as f64 * (1.0 - f64::from(plan.loss_ppm) / 1e6);
        // A frame less is the trial's end.
        if received * time_ns as f64 / 1e9 + 1.0 < least * time_ns as f64 / 1e9 {
            let (received, cir) = (frame_rate(received), frame_rate(plan.cir as f64));
            fail(format!("{received} arrived, less than the CIR of {cir}"));
        }
        let most = plan.cir.saturating_add(plan.eir) as f64;
        if step == ServiceStep::Policing && received > most * (1.0 + POLICING_MARGIN) {
            let (received, most) = (frame_rate(received), frame_rate(most));
            fail(format!(
                "{received} arrived, more than CIR and EIR of {most}"
            ));
        }
    }
    failures
}

fn name(step: ServiceStep) -> String {
    match step {
        ServiceStep::Cir(percent) => format!("{percent} % of CIR"),
        ServiceStep::Eir => "CIR + EIR".to_owned(),
        ServiceStep::Policing => "policing".to_owned(),
    }
}

/// Mean of the buckets' highest values.
fn mean_delay(latency: &LatencyTrial) -> Option<f64> {
    let buckets = latency.histogram.iter();
    let sum = buckets.map(|bucket| bucket.upto_ns as f64 * bucket.frames as f64);
    (latency.frames > 0).then(|| sum.sum::<f64>() / latency.frames as f64)
}

fn variation(latency: &LatencyTrial) -> Option<f64> {
    let directions = latency.variation.iter().map(|found| found.pdv.p99_9_ns);
    let directions = directions.collect::<Option<Vec<_>>>()?;
    directions.into_iter().max().map(|found| found as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{DelayVariation, FrameResult, LatencyBucket, Pdv, ProcedureRecord};
    use plan::{Direction, IpVersion, Ports, Traffic};
    use wire::mix::{Contents, FrameMix, TestFrames};

    fn plan() -> ServiceTest {
        ServiceTest {
            cir: 1000,
            eir: 400,
            loss_ppm: 10_000,
            delay_ns: Some(2_000),
            variation_ns: Some(500),
            policing: true,
            step_ns: 1_000_000_000,
            drain_ns: 0,
        }
    }

    /// The result of a device that passes up to `most` frames/s, with these delays.
    fn found(plan: &ServiceTest, most: u64, delay_ns: u64, variation_ns: u64) -> FrameResult {
        let loads: Vec<u64> = plan.steps().map(|step| plan.load(step)).collect();
        let trials = loads.iter().map(|load| FrameTrial {
            load: *load,
            duration_ns: 1_000_000_000,
            elapsed_ns: 1_000_000_000,
            intended: *load,
            sent: *load,
            received: (*load).min(most),
            ..FrameTrial::default()
        });
        let steps = plan.steps().enumerate().map(|(trial, step)| ServiceTrial {
            step,
            trial,
            latency: LatencyTrial {
                frames: 10,
                histogram: vec![LatencyBucket {
                    upto_ns: delay_ns,
                    frames: 10,
                }],
                variation: vec![DelayVariation {
                    pdv: Pdv {
                        p99_9_ns: Some(variation_ns),
                        ..Pdv::default()
                    },
                    ipdv: None,
                }],
                ..LatencyTrial::default()
            },
        });
        FrameResult {
            trials: trials.collect(),
            found: ProcedureRecord::Service(steps.collect()),
            ..FrameResult::default()
        }
    }

    fn failed(found: &FrameResult) -> Vec<String> {
        let traffic = Traffic {
            frames: TestFrames {
                mix: FrameMix::fixed(64),
                flows: 1,
                tunnels: 1,
                contents: Contents::Fixed,
            },
            ip: IpVersion::V4,
            direction: Direction::Both,
            duplex: false,
            ports: Ports::default(),
        };
        let result = ServiceResult::of(&plan(), &Lengths::of(&traffic), &[(1, found)]).unwrap();
        let failed = result.steps.iter().filter(|step| !step.failures.is_empty());
        let failed: Vec<String> = failed.map(|step| step.step.clone()).collect();
        assert_eq!(result.passed, failed.is_empty());
        failed
    }

    #[test]
    fn each_limit_fails_the_steps_that_it_is_for() {
        let plan = plan();
        // 1500 frames/s are offered to test policing: 1400 may pass, with a margin of 1 %.
        assert!(failed(&found(&plan, 1414, 2_000, 500)).is_empty());
        assert_eq!(failed(&found(&plan, 1415, 2_000, 500)), ["policing"]);
        // A hundredth may be lost at the CIR.
        assert!(failed(&found(&plan, 990, 2_000, 500)).is_empty());
        let committed = ["25 % of CIR", "50 % of CIR", "75 % of CIR", "100 % of CIR"];
        assert_eq!(
            // Less than 990 arrive in each step that offers the CIR or more.
            failed(&found(&plan, 980, 2_000, 500)),
            ["100 % of CIR", "CIR + EIR", "policing"]
        );
        assert_eq!(failed(&found(&plan, 1400, 2_001, 500)), committed);
        assert_eq!(failed(&found(&plan, 1400, 2_000, 501)), committed);
    }
}
