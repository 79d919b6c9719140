//! Which offload breaks or slows a path of a lab.

use crate::error::SessionError;
use crate::planning::{host_facts, load_lab};
use crate::programs::{OnMissing, require};
use crate::reporter::Reporter;
use campaign::LabFile;
use lab::{NamespaceLab, Setup, privilege};
use offloads::{OnNodes, PathUnderTest, Place, Report, Subject, examine};
use plan::{Direction, LabKind, Plan};
use std::path::Path;
use std::time::{Duration, Instant};
use testbed::{Bench, DIRECT, Interrupt, Links, NodeId, PATH};
use trial::Done;

/// DUTs that a path can lead through, by their names in campaigns.
pub const THROUGH: [&str; 7] = [
    "cipherbench",
    "direct",
    "wireguard",
    "strongswan",
    "openvpn",
    "xfrm",
    "l2tpv3",
];

/// An examination as texts.
#[derive(Debug)]
pub struct Offloads {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: String,
    /// Whether nothing in force breaks or slows the path.
    pub is_fit: bool,
}

/// Examines the path from A to B of a lab, through one of [`THROUGH`], within a time. The lab is
/// the built-in one on this machine if none is named. The process must have one thread.
///
/// # Errors
/// When the lab cannot be built, or was interrupted; all settings are restored in any case.
pub fn examine_offloads(
    (lab, through): (Option<&Path>, &str),
    time: Duration,
    interrupt: &Interrupt,
    reporter: &Reporter,
) -> Result<Offloads, SessionError> {
    let lab = lab.map_or_else(|| Ok(LabFile::built_in()), load_lab)?;
    let plan = plan(&lab, through)?;
    require(&plan, &Done::default(), OnMissing::Refuse, reporter)?;
    let elsewhere = plan.lab.hosts.as_ref();
    let privilege = match elsewhere.filter(|hosts| !hosts.include_this_machine()) {
        Some(_) => privilege::current(),
        None => Some(privilege::acquire()?),
    };
    let setup = Setup::new(privilege, interrupt.clone())?;
    let begin = Instant::now();
    let mut bench = NamespaceLab::build(&plan.lab, &setup)?;
    let cell = &plan.cells[0];
    let links = Links {
        offloads: true,
        ..trial::links(&plan, cell)
    };
    let path = format!("path through `{through}` in the lab `{}`", plan.lab.name);
    reporter.notice(&format!("{path}: looking at its settings\n"));
    bench.configure(links)?;
    let running = bench.start_dut(&cell.dut, links, Direction::Both)?;
    let examined = look(&bench, (&path, time, begin), reporter);
    // Also after an error, which matters more.
    let stopped = bench.stop_dut(running);
    let examined = examined.map_err(|error| match error {
        testbed::LabError::Interrupted => SessionError::Interrupted(
            "interrupted; the lab is removed, and every setting is as it was found".to_owned(),
        ),
        error => error.into(),
    })?;
    stopped?;
    Ok(examined)
}

/// The plan of one cell, which has the DUT, the links for it and the programs that it needs.
fn plan(lab: &LabFile, through: &str) -> Result<Plan, SessionError> {
    let refuse = |what: &str| Err(SessionError::NoOffloads(what.to_owned()));
    match lab.plan() {
        lab if matches!(lab.kind, LabKind::Memory | LabKind::Device) => {
            return refuse("has no network interfaces: a lab in memory, or of crypto devices");
        }
        lab if lab.external.is_some() => {
            return refuse("leads through boxes outside, which only a campaign can set up");
        }
        _ => {}
    }
    let text = format!(
        "campaign: offloads\nrepeats: 1\nduts: [{through}]\ntrials:\n  - ping: {{ mtu: 1500 B, count: 1 }}\n"
    );
    let campaign = campaign::from_text("doctor --offloads", &text)?;
    Ok(campaign.plan(lab, &host_facts())?)
}

fn look(
    bench: &NamespaceLab,
    (path, time, begin): (&str, Duration, Instant),
    reporter: &Reporter,
) -> testbed::Result<Offloads> {
    let place = |(node, interface): testbed::End| Place {
        node,
        interface: interface.to_owned(),
    };
    let under_test = PathUnderTest {
        target: bench.target(),
        beside: DIRECT.map(place).to_vec(),
        links: [[PATH[0], PATH[1]], [PATH[5], PATH[4]]]
            .map(|ends| ends.map(place))
            .to_vec(),
    };
    let path_nodes = [NodeId::A, NodeId::Gw1].into_iter();
    let path_nodes = path_nodes
        .chain(bench.elements())
        .chain([NodeId::Gw2, NodeId::B])
        .map(|id| bench.node(id));
    let mut subject = OnNodes::new(path_nodes.collect(), under_test)?;
    let left = time.saturating_sub(begin.elapsed());
    let result = examine(&mut subject, left, &mut |line| {
        reporter.notice(&format!("{line}\n"));
    })?;
    let report = Report {
        path,
        settings: subject.settings(),
        refused: subject.refused(),
        result: &result,
        took: begin.elapsed(),
    };
    Ok(Offloads {
        text: report.text(),
        json: report.json(),
        is_fit: report.is_fit(),
    })
}
