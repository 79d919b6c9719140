//! Procedures of frame tests.
//!
//! A procedure is one file here: its settings, and its [`ProcedurePlan`]. This file registers it:
//! `mod`, `pub use`, its [`ProcedureKind`], its variant of [`Procedure`] and its arm in
//! [`Procedure::plan`]. Its keys are in `campaign`, its trials in `trial`, its figures in `stats`.

mod back_to_back;
mod disturbed;
mod latency;
mod load;
mod loss_curve;
mod mrr;
mod recovery;
mod service;
mod soak;
mod throughput;
mod time;

pub use back_to_back::BackToBack;
pub use disturbed::{Attack, BaseLoad, Disturbed, Event, Failure, LEAD_RUN, Reset};
pub use latency::{LatencyPath, LatencyTest};
pub use load::Load;
pub use loss_curve::LossCurve;
pub use mrr::Mrr;
pub use recovery::Recovery;
pub use service::{ServiceStep, ServiceTest};
pub use soak::{DriftBounds, Soak};
pub use time::{EVIDENCE_RUN, FLOOD_RUN, FRAMES_AROUND, NOISY_SEARCHES};

use crate::ThroughputSearch;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};
use time::{DRAIN, search_time};

/// The procedure of a frame test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "procedure")]
pub enum Procedure {
    /// One load for one time.
    Load(Load),
    /// Search for the highest load that meets each goal (RFC 9971; RFC 2544 §26.1).
    Throughput(ThroughputSearch),
    /// Forwarding rate at the highest load (CSIT).
    Mrr(Mrr),
    /// Steps up to a service's rates, against its limits (ITU-T Y.1564).
    Service(ServiceTest),
    /// Loss at falling loads (RFC 2544 §26.3).
    LossCurve(LossCurve),
    /// Longest burst at line rate without loss (RFC 9004).
    BackToBack(BackToBack),
    /// Latency at shares of the throughput, which is searched first (RFC 2544 §26.2).
    Latency(LatencyTest),
    /// Time from the end of an overload to the end of loss (RFC 2544 §26.5).
    Recovery(Recovery),
    /// A constant load with a disturbance of the DUT.
    Disturbed(Disturbed),
    /// A constant load for minutes to hours, recorded as a timeline.
    Soak(Soak),
}

/// The kind of a procedure, as campaigns name it, in the order of the documents. Each disturbance
/// is a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ProcedureKind {
    /// [`Procedure::Load`].
    Load,
    /// [`Procedure::Throughput`].
    Throughput,
    /// [`Procedure::Mrr`].
    Mrr,
    /// [`Procedure::Service`].
    Service,
    /// [`Procedure::LossCurve`].
    LossCurve,
    /// [`Procedure::BackToBack`].
    BackToBack,
    /// [`Procedure::Latency`].
    Latency,
    /// [`Procedure::Recovery`].
    Recovery,
    /// [`Event::Rekey`].
    Rekey,
    /// [`Event::Failover`].
    Failover,
    /// [`Event::Reset`].
    Reset,
    /// [`Event::Setup`].
    Setup,
    /// [`Event::Desync`].
    Desync,
    /// [`Event::Hostile`].
    Hostile,
    /// [`Procedure::Soak`].
    Soak,
}

/// The properties of a procedure that do not depend on a lab.
pub trait ProcedurePlan {
    /// Its kind.
    fn kind(&self) -> ProcedureKind;

    /// The constant load under which it observes the DUT, if that is what it does.
    fn base_load(&self) -> Option<&BaseLoad> {
        None
    }

    /// The search in it, if there is one.
    fn search(&self) -> Option<&ThroughputSearch> {
        self.base_load()?.search()
    }

    /// The disturbance of the DUT, if there is one.
    fn event(&self) -> Option<&Event> {
        None
    }

    /// The load that the campaign sets, or the highest load to try, in frames/s; `None` if the
    /// campaign leaves it open.
    fn load(&self) -> Option<u64> {
        match self.base_load() {
            // A share of the throughput leaves it open: the limit of its search is another load.
            Some(load) => load.frames_per_s(),
            None => self.search()?.max_load,
        }
    }

    /// The procedure without its loads. A load given as a bit rate is a different number of frames
    /// for each frame size, so it does not distinguish the tests of a table.
    fn without_loads(&self) -> Procedure;

    /// How long a trial holds the rate that is its figure; `None` if it has no such figure, or the
    /// search decides.
    fn held_ns(&self) -> Option<u64> {
        None
    }

    /// Whether it offers one load, not several up to it.
    fn is_at_one_load(&self) -> bool {
        self.base_load().is_some()
    }

    /// Whether its figure rises with the resources of the DUT, as that of a load that is given does
    /// not.
    fn is_at_its_most(&self) -> bool {
        false
    }

    /// Whether its figure is how much the DUT carries, so that something limits it.
    fn finds_capacity(&self) -> bool {
        self.base_load().is_none()
    }

    /// Whether its figure is compared with the tester's limit without a device. Trials of
    /// disturbances and of stability are not: each includes a control.
    fn has_ceiling(&self) -> bool {
        self.base_load().is_none()
    }

    /// Whether it offers the highest load that the tester reaches.
    fn needs_highest_load(&self) -> bool {
        false
    }

    /// Time for late frames after each trial.
    fn drain(&self) -> Duration {
        let search = self.search();
        // All trials of a procedure with a search have its drain, so that their losses compare.
        search.map_or(DRAIN, |search| Duration::from_nanos(search.drain_ns))
    }

    /// Estimated time of its trials, if a search takes `searches` times its usual time. `trial`
    /// adds the drain and the preparation to the nanoseconds of a trial.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration;

    /// The settings besides those of the search, in one line of the printed plan.
    fn in_words(&self) -> Option<String>;

    /// The settings next to its figures, except loads, in a few words each.
    fn settings(&self) -> Vec<String>;
}

impl Procedure {
    /// The properties of the procedure.
    #[must_use]
    pub fn plan(&self) -> &dyn ProcedurePlan {
        match self {
            Self::Load(plan) => plan,
            Self::Throughput(plan) => plan,
            Self::Mrr(plan) => plan,
            Self::Service(plan) => plan,
            Self::LossCurve(plan) => plan,
            Self::BackToBack(plan) => plan,
            Self::Latency(plan) => plan,
            Self::Recovery(plan) => plan,
            Self::Disturbed(plan) => plan,
            Self::Soak(plan) => plan,
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ProcedureKind {
        self.plan().kind()
    }

    /// The search in it, if there is one.
    #[must_use]
    pub fn search(&self) -> Option<&ThroughputSearch> {
        self.plan().search()
    }

    /// The disturbance of the DUT, if there is one.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        self.plan().event()
    }

    /// The plan of `latency`; `None` for other procedures.
    #[must_use]
    pub const fn latency(&self) -> Option<&LatencyTest> {
        match self {
            Self::Latency(test) => Some(test),
            _ => None,
        }
    }

    /// Estimated time with the trials before and after it, drains included, if a search takes
    /// `searches` times its usual time.
    pub(crate) fn time(&self, searches: u32) -> Duration {
        time::whole(self.plan(), searches)
    }
}

impl ProcedureKind {
    /// Name in campaigns, cell ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Name for readers.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Load => "Load",
            Self::Throughput => "Throughput",
            Self::Mrr => "Maximum receive rate",
            Self::Service => "Service test",
            Self::LossCurve => "Frame loss",
            Self::BackToBack => "Back-to-back frames",
            Self::Latency => "Latency under load",
            Self::Recovery => "Recovery",
            Self::Rekey => "Rekeys",
            Self::Failover => "Failover",
            Self::Reset => "Reset",
            Self::Setup => "Tunnel set-up",
            Self::Desync => "Keys out of step",
            Self::Hostile => "Hostile packets",
            Self::Soak => "Soak",
        }
    }

    /// Whether there are events at the DUT, which need both of its ends.
    #[must_use]
    pub const fn is_disturbed(self) -> bool {
        matches!(
            self,
            Self::Rekey | Self::Failover | Self::Reset | Self::Setup | Self::Desync | Self::Hostile
        )
    }
}
