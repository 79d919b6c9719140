//! A service test: whether a device keeps to a service's rates and limits (ITU-T Y.1564).

use super::{Procedure, ProcedureKind, ProcedurePlan};
use crate::words::{long_time, time};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use units::{FrameRate, Ratio};

/// The rates and limits of a service, and how they are tested (ITU-T Y.1564 §8.1). Frames have no
/// colour: above the CIR, any of them may be dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceTest {
    /// Committed information rate, in frames/s: all limits hold up to it.
    pub cir: u64,
    /// Excess information rate, in frames/s on top of the CIR; 0: none.
    pub eir: u64,
    /// Highest frame loss ratio at or below the CIR, in parts per million.
    pub loss_ppm: u32,
    /// Highest mean delay at or below the CIR (Y.1563: frame transfer delay); `None`: no limit.
    pub delay_ns: Option<u64>,
    /// Highest delay variation at or below the CIR: 99.9th percentile less the smallest delay
    /// (Y.1563); `None`: no limit.
    pub variation_ns: Option<u64>,
    /// Whether a load above CIR plus EIR is also offered; the excess must not pass.
    pub policing: bool,
    /// Each step's time.
    pub step_ns: u64,
    /// Time to wait for late frames after the last frame is sent.
    pub drain_ns: u64,
}

/// A step of a service test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceStep {
    /// This share of the CIR, in per cent.
    Cir(u8),
    /// CIR and EIR.
    Eir,
    /// More than both.
    Policing,
}

/// Shares of the CIR, in per cent.
const CIR_STEPS: [u8; 4] = [25, 50, 75, 100];
/// The EIR below which the CIR is exceeded instead, in per cent of the CIR (Y.1564 §8.1.2).
const SMALL_EIR_PERCENT: u64 = 20;

impl ServiceTest {
    /// The steps in order.
    pub fn steps(&self) -> impl Iterator<Item = ServiceStep> {
        let excess = (self.eir > 0).then_some(ServiceStep::Eir);
        let policing = self.policing.then_some(ServiceStep::Policing);
        let committed = CIR_STEPS.into_iter().map(ServiceStep::Cir);
        committed.chain(excess).chain(policing)
    }

    /// The load of a step, in frames/s: at least 1. Policing is tested at CIR and 125 % of the EIR,
    /// or at 125 % of the CIR and the EIR if the EIR is less than a fifth of the CIR.
    #[must_use]
    pub fn load(&self, step: ServiceStep) -> u64 {
        // In 128 bits: a journal may have any rate.
        let share = |rate: u64, percent: u64| {
            let share = u128::from(rate) * u128::from(percent) / 100;
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let load = match step {
            ServiceStep::Cir(percent) => share(self.cir, percent.into()),
            ServiceStep::Eir => self.cir.saturating_add(self.eir),
            // A quarter more of a small EIR would hardly be more than the service allows.
            ServiceStep::Policing if self.eir < share(self.cir, SMALL_EIR_PERCENT) => {
                share(self.cir, 125).saturating_add(self.eir)
            }
            ServiceStep::Policing => self.cir.saturating_add(share(self.eir, 125)),
        };
        load.max(1)
    }
}

impl ProcedurePlan for ServiceTest {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Service
    }

    fn load(&self) -> Option<u64> {
        Some(self.cir)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Service(Self {
            cir: 0,
            eir: 0,
            ..self.clone()
        })
    }

    // Limits of a service are met or not; how much more a device carries is not measured.
    fn finds_capacity(&self) -> bool {
        false
    }

    fn drain(&self) -> Duration {
        Duration::from_nanos(self.drain_ns)
    }

    /// Steps × duration.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, _searches: u32) -> Duration {
        // A handful of steps.
        trial(self.step_ns) * self.steps().count() as u32
    }

    fn in_words(&self) -> Option<String> {
        let limit = |what: &str, ns: Option<u64>| {
            ns.map_or_else(String::new, |ns| format!(", {what} {}", time(ns)))
        };
        let steps = self.steps();
        let loads = steps.map(|step| FrameRate::new(self.load(step)).to_string());
        Some(format!(
            "{}, {} each, drain {}; up to the CIR of {} at most {} lost{}{}",
            loads.collect::<Vec<_>>().join(", "),
            time(self.step_ns),
            time(self.drain_ns),
            FrameRate::new(self.cir),
            Ratio::from_ppm(self.loss_ppm.into()),
            limit("mean delay", self.delay_ns),
            limit("delay variation", self.variation_ns)
        ))
    }

    fn settings(&self) -> Vec<String> {
        vec![format!("{} per step", long_time(self.step_ns))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(eir: u64, policing: bool) -> Vec<u64> {
        let test = ServiceTest {
            cir: 1000,
            eir,
            loss_ppm: 0,
            delay_ns: None,
            variation_ns: None,
            policing,
            step_ns: 1,
            drain_ns: 0,
        };
        test.steps().map(|step| test.load(step)).collect()
    }

    #[test]
    fn steps_rise_to_the_cir_and_beyond_what_the_service_allows() {
        assert_eq!(loads(0, false), [250, 500, 750, 1000]);
        assert_eq!(loads(400, true), [250, 500, 750, 1000, 1400, 1500]);
        assert_eq!(loads(100, true)[4..], [1100, 1350]);
        assert_eq!(loads(0, true)[4..], [1250]);
    }
}
