//! Disturbances of a DUT under a constant load: keys renewed or out of step, parts that fail,
//! restarts, tunnels set up, hostile packets.
//!
//! After the methodology that the IETF's BMWG had begun for IPsec devices
//! (draft-ietf-bmwg-ipsec-meth, expired), updated for IKEv2 and AEADs:
//! `docs/methodology/events.md` lists the adopted and the omitted parts.

mod words;

use super::{Procedure, ProcedureKind, ProcedurePlan, search_time};
use crate::{Ability, Desync, ThroughputSearch};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};

/// Load before the first event, to record the normal state.
pub const LEAD_RUN: Duration = Duration::from_secs(1);
/// Tunnels taken down and set up once.
const SETUP_RUN: Duration = Duration::from_millis(500);

/// A constant load, and the disturbance under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbed {
    /// The load.
    pub load: BaseLoad,
    /// The disturbance.
    pub event: Event,
}

/// The load during a disturbance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "load")]
pub enum BaseLoad {
    /// Frames per second.
    Given {
        /// In each direction.
        frames_per_s: u64,
    },
    /// A share of the throughput, which is searched first; its first goal counts.
    Share {
        /// In per cent, 1 to 100.
        percent: u8,
        /// How the throughput is found.
        search: ThroughputSearch,
    },
}

impl BaseLoad {
    /// The search for the throughput that the load is a share of.
    #[must_use]
    pub const fn search(&self) -> Option<&ThroughputSearch> {
        match self {
            Self::Given { .. } => None,
            Self::Share { search, .. } => Some(search),
        }
    }

    /// The load, if it is given. The upper limit of a search is not the load.
    pub(super) const fn frames_per_s(&self) -> Option<u64> {
        match self {
            Self::Given { frames_per_s } => Some(*frames_per_s),
            Self::Share { .. } => None,
        }
    }

    /// The same without loads, which may depend on the frame size.
    pub(super) fn at_any_load(&self) -> Self {
        match self {
            Self::Given { .. } => Self::Given { frames_per_s: 0 },
            Self::Share { percent, search } => Self::Share {
                // The share is the same for every frame size.
                percent: *percent,
                search: search.at_any_load(),
            },
        }
    }

    /// Time until the load is known.
    pub(super) fn time(&self, searches: u32) -> Duration {
        let search = self.search();
        search.map_or(Duration::ZERO, |search| search_time(search, searches))
    }
}

impl ProcedurePlan for Disturbed {
    fn kind(&self) -> ProcedureKind {
        self.event.kind()
    }

    fn base_load(&self) -> Option<&BaseLoad> {
        Some(&self.load)
    }

    fn event(&self) -> Option<&Event> {
        Some(&self.event)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Disturbed(Self {
            load: self.load.at_any_load(),
            ..self.clone()
        })
    }

    /// Search, for a share, + that of the event, + the search again for a rekey with `throughput`.
    fn time(&self, trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        let found = self.load.time(searches);
        // Only a share has a search to repeat: for a given load `found` is zero.
        let again = match self.event {
            Event::Rekey {
                throughput: true, ..
            } => found,
            _ => Duration::ZERO,
        };
        found + self.event.time(trial) + again
    }

    fn in_words(&self) -> Option<String> {
        Some(self.text())
    }

    fn settings(&self) -> Vec<String> {
        self.settings_in_words()
    }
}

/// A disturbance of a DUT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// The keys of all tunnels are renewed on demand, repeatedly; a control without rekeys comes
    /// first.
    Rekey {
        /// From one to the next; one that takes longer delays the next.
        every_ns: u64,
        /// Time of each of the two trials.
        duration_ns: u64,
        /// Whether the throughput is searched again while keys are renewed, if the load is a share
        /// of it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        throughput: bool,
    },
    /// A part of the path fails and comes back.
    Failover {
        /// The part.
        failure: Failure,
        /// The number of times.
        times: u32,
        /// From the failure to the recovery action.
        down_ns: u64,
        /// Time watched after the recovery action.
        watch_ns: u64,
    },
    /// The encryptor on gw2 is restarted (RFC 2544 §26.6, RFC 6201).
    Reset {
        /// How.
        kind: Reset,
        /// The number of times.
        times: u32,
        /// From one reset to the next, or to the end of the load.
        watch_ns: u64,
    },
    /// All tunnels are taken down in order, and set up again.
    Setup {
        /// The number of times.
        times: u32,
        /// Time watched after they were set up.
        watch_ns: u64,
    },
    /// The keys of one side are put out of step with the other's, which the DUT must detect and
    /// repair by itself.
    Desync {
        /// The cause.
        cause: Desync,
        /// The number of times.
        times: u32,
        /// Time watched after each.
        watch_ns: u64,
    },
    /// Hostile packets at rising shares of the load; a control without them comes first.
    Hostile {
        /// Their kind.
        attack: Attack,
        /// Their rates in per cent of the load's, rising.
        percents: Vec<u16>,
        /// Time of each trial.
        trial_ns: u64,
    },
}

/// The part that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Failure {
    /// The encryptor on gw2 dies (SIGKILL) and is started again.
    Crash,
    /// The link between the gateways goes down.
    Link,
    /// The encryptor on gw1 dies while a default route of that gateway leads past it, and is
    /// started again: packets in clear on the link show that it fails open.
    Bypass,
}

/// How an encryptor is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Reset {
    /// Its processes are killed (SIGKILL), and started again immediately with the same
    /// configuration: the process reset of RFC 6201 §4.2.2, unplanned.
    Process,
    /// Its processes are asked to end (SIGTERM), and started again as soon as they have ended, as
    /// in a reset planned by an operator.
    Orderly,
    /// A configured command restarts a box, and decides the scope of the reset: a process, the
    /// operating system, the power.
    Command,
}

/// Hostile packets, made from packets captured between the gateways. They are sent to gw2 from
/// gw1's end of that link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Attack {
    /// Sealed packets with a new sequence number and a wrong integrity check value.
    BadIcv,
    /// Copies of sealed packets.
    Replay,
    /// Random bytes behind the outer headers of sealed packets.
    Garbage,
}

impl Event {
    /// The procedure that causes it.
    #[must_use]
    pub const fn kind(&self) -> ProcedureKind {
        match self {
            Self::Rekey { .. } => ProcedureKind::Rekey,
            Self::Failover { .. } => ProcedureKind::Failover,
            Self::Reset { .. } => ProcedureKind::Reset,
            Self::Setup { .. } => ProcedureKind::Setup,
            Self::Desync { .. } => ProcedureKind::Desync,
            Self::Hostile { .. } => ProcedureKind::Hostile,
        }
    }

    /// Time of its trials:
    ///
    /// - rekey: 2 × duration
    /// - failover: [`LEAD_RUN`] + times × (down + watch)
    /// - reset, desync: [`LEAD_RUN`] + times × watch
    /// - setup: [`LEAD_RUN`] + times × (0.5 s + watch) + 0.5 s
    /// - hostile: (1 + shares) × duration
    fn time(&self, trial: &dyn Fn(u64) -> Duration) -> Duration {
        let lead_ns = LEAD_RUN.as_nanos() as u64;
        let setup_ns = SETUP_RUN.as_nanos() as u64;
        // Saturates: of a changed journal any number of events may be planned.
        let events =
            |times: u32, each_ns: u64| lead_ns.saturating_add(each_ns.saturating_mul(times.into()));
        match *self {
            // The control without rekeys, then the trial with them.
            Self::Rekey { duration_ns, .. } => trial(duration_ns) * 2,
            // All events are in one trial, after a lead without any.
            Self::Failover {
                times,
                down_ns,
                watch_ns,
                ..
            } => trial(events(times, down_ns.saturating_add(watch_ns))),
            Self::Reset {
                times, watch_ns, ..
            }
            | Self::Desync {
                times, watch_ns, ..
            } => trial(events(times, watch_ns)),
            Self::Setup { times, watch_ns } => {
                // Once before, to learn its duration.
                SETUP_RUN + trial(events(times, watch_ns.saturating_add(setup_ns)))
            }
            Self::Hostile {
                ref percents,
                trial_ns,
                ..
            // The control without hostile packets is one more.
            } => trial(trial_ns) * (percents.len() as u32 + 1),
        }
    }

    /// Whether a route leads past the DUT during the event, so that packets in clear are the
    /// result.
    #[must_use]
    pub const fn opens_bypass(&self) -> bool {
        matches!(
            self,
            Self::Failover {
                failure: Failure::Bypass,
                ..
            }
        )
    }

    /// The ability that a DUT needs.
    #[must_use]
    pub const fn ability(&self) -> Ability {
        match self {
            Self::Rekey { .. } => Ability::Rekey,
            Self::Failover { failure, .. } => match failure {
                // For a bypass the encryptor dies as well, while another route leads past it.
                Failure::Crash | Failure::Bypass => Ability::Crash,
                Failure::Link => Ability::Cut,
            },
            Self::Reset { kind, .. } => match kind {
                Reset::Process | Reset::Orderly => Ability::Crash,
                Reset::Command => Ability::Reset,
            },
            Self::Setup { .. } => Ability::SetUp,
            Self::Desync { .. } => Ability::Desync,
            Self::Hostile { .. } => Ability::Attack,
        }
    }
}

impl Failure {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Reset {
    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BadIcv, Self::Replay, Self::Garbage];

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
