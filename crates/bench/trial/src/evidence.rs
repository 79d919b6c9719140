//! Proof that a figure is valid: pure checks over the readings of its trial.
//!
//! Each check is a function from [`ToolObserved`], or from the [`ObservedPath`] that trials by
//! tools share with frame tests, to a [`Check`] with the numbers in its detail, or to `None` if it
//! does not apply. One that fails makes the trial invalid, and has an [`Explanation`].
//! docs/checks.md says what each proves. Checks of frame tests alone are in [`crate::frames`].
//! To add one: write the function in the file of its kind, call it in [`checks`] or
//! [`crate::frames::frame_checks`], and describe it in docs/checks.md.

mod asked;
pub(crate) mod bounds;
mod cipher;
mod clock;
mod congestion;
mod contents;
pub(crate) mod crossing;
mod dscp;
pub(crate) mod failure;
pub(crate) mod gateway;
mod http;
pub(crate) mod impaired;
mod link;
pub(crate) mod machine;
pub(crate) mod nat;
pub(crate) mod neighbours;
pub(crate) mod number;
mod overlay;
mod path;
pub(crate) mod places;
pub(crate) mod sealed;
pub(crate) mod settings;
mod tool;
mod video;

pub use asked::{REPLACED_SAS, dut_as_asked};
pub use cipher::CipherTraffic;
pub(crate) use clock::apart_ns;
pub(crate) use contents::{add_contents, must_look_random, recorded};
pub(crate) use failure::{count, percent, then_repeat, then_repeat_or};
pub(crate) use gateway::{IN_FLIGHT_PACKETS, resets};
pub use gateway::{counted_since, gateways_balance};
pub use path::ObservedPath;
pub(crate) use places::Ends;

use crate::command::Commands;
use crate::transfer::Totals;
use journal::record::{Check, Explanation, HttpResult, Latency, Transfer, VideoResult};
use plan::FlowDirection;
use wire::mix::{ETHERNET_HEADER_BYTES, FCS_BYTES};

/// Bytes of a frame around its IP packet.
pub(crate) const ETHERNET_AND_FCS_BYTES: u64 = ETHERNET_HEADER_BYTES as u64 + FCS_BYTES as u64;

/// The readings of a trial by tools.
#[derive(Debug, Clone)]
pub struct ToolObserved<'a> {
    /// Links and DUT.
    pub path: ObservedPath<'a>,
    /// The programs that ran on the stations.
    pub commands: &'a Commands,
    /// The way of the load; for echo requests, the way of the requests.
    pub way: FlowDirection,
    /// The tools' counts.
    pub load: Load<'a>,
    /// In a duplex transfer, the tools' counts of the other way.
    pub beside: Option<Totals>,
    /// Interfaces of the stations, and between the gateways.
    pub interfaces: Interfaces,
    /// Datagrams that the receiving station's sockets dropped in the whole run.
    pub station_lost: u64,
    /// When each client ended, counted from the start of the first.
    pub client_ends_ns: &'a [u64],
}

impl ToolObserved<'_> {
    /// The sending station and the receiving one, in words.
    pub(crate) const fn stations(&self) -> [&'static str; 2] {
        match self.way {
            FlowDirection::AToB => ["A", "B"],
            FlowDirection::BToA => ["B", "A"],
        }
    }

    /// The impaired path's counts of frames of the load; `None` without an impaired path.
    fn impaired(&self) -> Option<&impair::Counts> {
        let impaired = self.path.impaired?;
        Some(impaired.of(self.way == FlowDirection::AToB))
    }

    /// For how long a queue drained after the sender had ended, in this way or in the other one:
    /// the tool waits for both.
    fn drained_most_ns(&self) -> u64 {
        let Load::Transfer { transfer, .. } = &self.load else {
            return 0;
        };
        let own_ns = transfer.drain().map_or(0, |drain| drain.time_ns);
        own_ns.max(self.beside.map_or(0, |beside| beside.drained_ns))
    }

    /// Datagrams of the whole run that arrived as copies which the impaired path made, at most:
    /// they raise no sequence number and count as out of order.
    fn copies_most(&self) -> u64 {
        let Load::Transfer { transfer, .. } = &self.load else {
            return 0;
        };
        let out_of_order = transfer
            .datagrams
            .map_or(0, |datagrams| datagrams.out_of_order);
        // Without an impaired path 0: a device that doubles datagrams is not excused.
        out_of_order.min(self.impaired().map_or(0, |counts| counts.duplicated))
    }

    /// The interfaces of the sending station and of the receiving one.
    const fn ends(&self) -> [&String; 2] {
        let Interfaces { a, b, .. } = &self.interfaces;
        match self.way {
            FlowDirection::AToB => [a, b],
            FlowDirection::BToA => [b, a],
        }
    }

    /// The interface that sends the load to the other gateway.
    fn sealing_end(&self) -> Option<&String> {
        let [of_a, of_b] = self.interfaces.cipher.as_ref()?;
        Some(match self.way {
            FlowDirection::AToB => of_a,
            FlowDirection::BToA => of_b,
        })
    }
}

/// The tools' counts.
#[derive(Debug, Clone)]
pub enum Load<'a> {
    /// A bulk transfer.
    Transfer {
        /// In the measured time.
        transfer: &'a Transfer,
        /// In the whole run.
        totals: Totals,
    },
    /// Echo requests.
    Echo {
        /// Counts and times.
        latency: &'a Latency,
        /// ICMP payload of each.
        payload_bytes: u16,
    },
    /// Transactions over HTTP.
    Http(&'a HttpResult),
    /// Video.
    Video(&'a VideoResult),
}

/// Interfaces of the path, as `node/interface`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces {
    /// Station A's.
    pub a: String,
    /// The interfaces that send traffic from A's side, and from B's, to the other gateway; `None`
    /// if the path between the gateways is not observed.
    pub cipher: Option<[String; 2]>,
    /// Station B's.
    pub b: String,
}

/// Makes every check that applies to a trial by tools, in the order of the path. `each_way`: the
/// readings of each way that carried payload, at least one; the path is the same in all.
#[must_use]
pub fn checks(each_way: &[ToolObserved<'_>]) -> Vec<Check> {
    let [observed, ..] = each_way else {
        return Vec::new();
    };
    // Checks of the tools and their amounts are made for each way; checks of the path, once.
    let of_each = |make: fn(&ToolObserved<'_>) -> Option<Check>| {
        // One check for both ways, which fails if either does.
        let made = each_way.iter().filter_map(make);
        made.reduce(Check::and)
    };
    let path = &observed.path;
    let mut checks = vec![
        link::offloads_as_asked(observed),
        settings::path_unchanged(path.settings),
        path.driver_counters(),
        tool::cores(observed),
        machine::machine_was_ours(path.cpu),
        tool::processes_in_step(observed),
        of_each(clock::tools_kept_time),
        of_each(tool::tool_agrees_with_itself),
        of_each(tool::offered_as_intended),
        of_each(tool::station_kept_up),
        of_each(congestion::congestion_as_asked),
        http::transactions_succeeded(observed),
        http::schedule_kept(observed),
        video::streams_sent_in_time(observed),
        video::video_decoded(observed),
        video::players_kept_up(observed),
        of_each(link::station_interfaces_agree),
        of_each(overlay::overlay_carried),
        dscp::class_arrived(observed),
        crossing::packets_cross_once(observed),
        neighbours::links_not_flooded(observed),
    ];
    checks.extend(path.between_the_gateways());
    checks.extend(impaired::checks(path));
    checks.push(nat::addresses_translated(path));
    checks.extend([
        of_each(link::cipher_link_amount),
        number::cipher_link_frames(observed),
        places::links_lossless(path, &path.lost_at(&Ends::Tools(&observed.interfaces))),
        of_each(link::dut_counters),
        sealed::arrived_as_sent(path),
        gateway::counters_rose(path),
        dut_as_asked(path.cell, path.dut_facts, path.dut_counters, None),
    ]);
    checks.into_iter().flatten().collect()
}

/// Why a trial is invalid: the details of the checks that failed.
#[must_use]
pub fn objections(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter(|check| !check.passed);
    failed
        .map(|check| format!("{}: {}", check.name, check.detail))
        .collect()
}

/// A check that applies; it passed without a failure.
#[expect(
    clippy::unnecessary_wraps,
    reason = "a check that does not apply is `None`"
)]
pub(crate) fn check(
    name: &str,
    failure: impl Into<Option<Explanation>>,
    detail: String,
) -> Option<Check> {
    Some(Check::new(name, failure, detail))
}

#[cfg(test)]
pub(crate) mod tests;
