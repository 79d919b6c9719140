//! Disturbances in words.

use super::{BaseLoad, Disturbed, Event, Failure, Reset};
use crate::Desync;
use crate::words::{long_time, time};
use units::FrameRate;
use units::human::counted;

impl BaseLoad {
    pub(in crate::procedure) fn in_words(&self) -> String {
        match self {
            Self::Given { frames_per_s } => FrameRate::new(*frames_per_s).to_string(),
            Self::Share { percent, .. } => format!("{percent} % of the throughput"),
        }
    }

    /// A share of the throughput, as a setting of a table. Given loads differ by frame size.
    pub(in crate::procedure) fn setting(&self) -> Option<String> {
        match self {
            Self::Given { .. } => None,
            Self::Share { .. } => Some(format!("load: {}", self.in_words())),
        }
    }
}

impl Disturbed {
    /// The line of a plan.
    pub(super) fn text(&self) -> String {
        let load = self.load.in_words();
        match &self.event {
            Event::Rekey {
                every_ns,
                duration_ns,
                throughput,
            } => format!(
                "{load} for {}, then the same with new keys for all tunnels every {}{}",
                time(*duration_ns),
                time(*every_ns),
                if *throughput {
                    ", then the search once more with them"
                } else {
                    ""
                }
            ),
            Event::Failover {
                failure,
                times,
                down_ns,
                watch_ns,
            } => format!(
                "under {load}, {} {}, for {}, each watched for {} afterwards",
                match failure {
                    Failure::Crash => "the encryptor on gw2 dies",
                    Failure::Link => "the link between the gateways goes down",
                    Failure::Bypass =>
                        "the encryptor on gw1 dies while another route leads past it",
                },
                counted(*times, "time"),
                time(*down_ns),
                time(*watch_ns)
            ),
            Event::Reset {
                kind,
                times,
                watch_ns,
            } => format!(
                "under {load}, {} {}, each watched for {}",
                match kind {
                    Reset::Process => "the encryptor on gw2 is killed and started again",
                    Reset::Orderly => "the encryptor on gw2 is stopped in order and started again",
                    Reset::Command => "the box at B's side restarts by its own command",
                },
                counted(*times, "time"),
                time(*watch_ns)
            ),
            Event::Setup { times, watch_ns } => format!(
                "under {load}, all tunnels taken down and set up {}, each watched for {} afterwards",
                counted(*times, "time"),
                time(*watch_ns)
            ),
            Event::Desync {
                cause,
                times,
                watch_ns,
            } => format!(
                "under {load}, {} {}, each watched for {}",
                match cause {
                    Desync::WrongKeys => "gw2's keys are replaced by wrong ones",
                    Desync::MissedRollover => "gw2 misses a rollover of gw1's keys",
                },
                counted(*times, "time"),
                time(*watch_ns)
            ),
            Event::Hostile {
                attack,
                percents,
                trial_ns,
            } => {
                let percents = percents.iter().map(|percent| format!("{percent} %"));
                format!(
                    "{load} for {}, then the same with hostile packets ({}) at {} of the load",
                    time(*trial_ns),
                    attack.name(),
                    percents.collect::<Vec<_>>().join(", ")
                )
            }
        }
    }

    /// The settings of a table.
    pub(super) fn settings_in_words(&self) -> Vec<String> {
        let watched = |watch_ns| format!("{} watched after each", long_time(watch_ns));
        let of_event = match self.event {
            Event::Rekey {
                every_ns,
                duration_ns,
                ..
            } => [
                format!("a rekey of all tunnels every {}", long_time(every_ns)),
                long_time(duration_ns),
            ],
            Event::Failover {
                times,
                down_ns,
                watch_ns,
                ..
            } => [
                format!("{} of {}", counted(times, "failure"), long_time(down_ns)),
                watched(watch_ns),
            ],
            Event::Reset {
                times, watch_ns, ..
            } => [counted(times, "reset"), watched(watch_ns)],
            Event::Setup { times, watch_ns } => [counted(times, "set-up"), watched(watch_ns)],
            Event::Desync {
                times, watch_ns, ..
            } => [counted(times, "time"), watched(watch_ns)],
            // The shares are columns of the table, so they are not among its settings.
            Event::Hostile { trial_ns, .. } => [
                "sent to gw2 from gw1's end of the link".into(),
                format!("{} per share", long_time(trial_ns)),
            ],
        };
        self.load.setting().into_iter().chain(of_event).collect()
    }
}

impl Event {
    /// The procedure and its kind, as in campaigns: `` `failover` with `failure: crash` ``.
    #[must_use]
    pub fn in_words(&self) -> String {
        let kind = self.kind().name();
        let (key, value) = match self {
            Self::Rekey { .. } | Self::Setup { .. } => return format!("`{kind}`"),
            Self::Failover { failure, .. } => ("failure", failure.name()),
            Self::Reset { kind, .. } => ("kind", kind.name()),
            Self::Desync { cause, .. } => ("cause", cause.name()),
            Self::Hostile { attack, .. } => ("attack", attack.name()),
        };
        format!("`{kind}` with `{key}: {value}`")
    }
}
