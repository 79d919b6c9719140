//! The programs that a campaign needs and this host lacks, with OpenSSL's libcrypto for crypto
//! devices: reported before anything is measured.

use crate::error::SessionError;
use crate::reporter::Reporter;
use crate::running::Session;
use lab::programs::{Missing, missing};
use plan::{Adapter, Cell, DeviceKind, DeviceTest, LabPlan, Measurement, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use trial::Done;
use units::human::counted;

/// How a run continues if it needs missing programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// It is refused.
    Refuse,
    /// It is refused, with the option that leaves cells out.
    RefuseOrSkip,
    /// It continues without the cells that need them.
    Skip,
}

impl OnMissing {
    /// By the option `--skip-missing`.
    #[must_use]
    pub const fn by_option(skip: bool) -> Self {
        if skip { Self::Skip } else { Self::RefuseOrSkip }
    }
}

/// Reports the programs that the remaining trials of a plan need and that are missing. Returns the
/// cells to leave out, each with the reason.
///
/// # Errors
/// When programs are missing, unless the run continues without their cells and has others.
pub fn require(
    plan: &Plan,
    done: &Done,
    on_missing: OnMissing,
    reporter: &Reporter,
) -> Result<BTreeMap<String, String>, SessionError> {
    let here = |cells: &[&Cell]| Ok(missing_here(&plan.lab, cells));
    require_where(plan, done, on_missing, reporter, here)
}

/// As [`require`], of the hosts of a lab that is up.
///
/// # Errors
/// As [`require`], and when a host does not answer.
pub fn require_on_hosts(
    session: &Session,
    plan: &Plan,
    done: &Done,
    on_missing: OnMissing,
    reporter: &Reporter,
) -> Result<BTreeMap<String, String>, SessionError> {
    let there = |cells: &[&Cell]| session.missing(&plan.lab, cells);
    require_where(plan, done, on_missing, reporter, there)
}

fn require_where(
    plan: &Plan,
    done: &Done,
    on_missing: OnMissing,
    reporter: &Reporter,
    find: impl FnOnce(&[&Cell]) -> Result<Vec<Missing>, SessionError>,
) -> Result<BTreeMap<String, String>, SessionError> {
    // A resumed run that has finished all trials of a cell no longer needs its programs.
    let is_left = |cell: &&Cell| {
        let mut repeats = 1..=plan.repeats_of(&cell.id);
        repeats.any(|repeat| !done.has(cell, repeat))
    };
    let cells: Vec<&Cell> = plan.cells.iter().filter(is_left).collect();
    let missing = find(&cells)?;
    if missing.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut text = describe(&missing, cells.len());
    let others = cells.len() - without(&missing).len();
    // Without a program of the lab no cell can be measured. The option is not named then, since it
    // would lead to the same refusal.
    if missing.iter().any(|it| it.lab) || others == 0 || on_missing == OnMissing::Refuse {
        text.push_str("help: install what is missing; no trial was run");
        return Err(SessionError::MissingPrograms(text));
    }
    let others = match others {
        1 => "other cell".to_owned(),
        more => format!("other {more} cells"),
    };
    if on_missing == OnMissing::RefuseOrSkip {
        let _ = write!(
            text,
            "help: install what is missing, or measure the {others} with `--skip-missing`; no trial was run"
        );
        return Err(SessionError::MissingPrograms(text));
    }
    reporter.warn(&format!(
        "warning: {text}going on with the {others}; the report names those left out as failed\n"
    ));
    Ok(reasons(&missing))
}

const HELP: &str =
    "help: install them before `run`, which refuses, or leaves cells out with `--skip-missing`";

/// A warning about the missing programs of a campaign with this number of cells, if any.
pub(crate) fn warning(subject: &str, missing: &[Missing], cells: usize) -> Option<String> {
    let text = describe(missing, cells);
    (!missing.is_empty()).then(|| format!("warning: {subject}{text}{HELP}\n"))
}

/// The same of several campaigns: each program once, with the number of campaigns that need it.
/// Empty without any.
pub(crate) fn warning_of_several(campaigns: &[&[Missing]]) -> String {
    // Programs that one command installs are one line.
    let mut all: Vec<(Vec<&str>, &Missing, usize)> = Vec::new();
    for (at, missing) in campaigns.iter().enumerate() {
        for it in *missing {
            if campaigns[..at]
                .iter()
                .copied()
                .flatten()
                .any(|known| known.program == it.program)
            {
                continue;
            }
            let needing = campaigns.iter().filter(|its| {
                let mut its = its.iter();
                its.any(|one| one.program == it.program)
            });
            let needing = needing.count();
            let known = all.iter_mut().find(|(_, known, count)| {
                (how_to_install(known), &known.unfit, *count)
                    == (how_to_install(it), &it.unfit, needing)
            });
            match known {
                Some((names, ..)) => names.push(&it.program),
                None => all.push((vec![&it.program], it, needing)),
            }
        }
    }
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "warning: {} need programs that are not installed here, or not as needed\n",
        counted(campaigns.len() as u64, "campaign")
    );
    for (names, it, needing) in &all {
        let needing = counted(*needing as u64, "campaign");
        let _ = writeln!(
            text,
            "  {}  for {needing}; install: {}",
            names.join(", "),
            how_to_install(it)
        );
        if let Some(why) = &it.unfit {
            let _ = writeln!(text, "    {why}");
        }
    }
    text + HELP + "\n"
}

/// The programs that a plan needs and that are missing.
pub(crate) fn missing_for(plan: &Plan) -> Vec<Missing> {
    missing_here(&plan.lab, &plan.cells.iter().collect::<Vec<_>>())
}

fn missing_here(lab: &LabPlan, cells: &[&Cell]) -> Vec<Missing> {
    let mut all = missing(lab, cells.iter().copied());
    all.extend(missing_libcrypto(cells, || {
        device::libcrypto_version().is_ok()
    }));
    all
}

/// OpenSSL's libcrypto, if cells need it and it is not here. It is looked for only if one does.
fn missing_libcrypto(cells: &[&Cell], is_here: impl FnOnce() -> bool) -> Option<Missing> {
    let needing: Vec<&Cell> = cells
        .iter()
        .copied()
        .filter(|cell| needs_libcrypto(cell))
        .collect();
    if needing.is_empty() || is_here() {
        return None;
    }
    let mut needed_by: Vec<String> = Vec::new();
    for cell in &needing {
        let dut = format!("DUT {}", cell.dut.name);
        if !needed_by.contains(&dut) {
            needed_by.push(dut);
        }
    }
    Some(Missing {
        program: "libcrypto".to_owned(),
        needed_by,
        cells: needing.iter().map(|cell| cell.id.clone()).collect(),
        lab: false,
        install: Some("sudo apt install libssl3".to_owned()),
        unfit: None,
        hosts: Vec::new(),
    })
}

/// Whether a cell measures a device of OpenSSL, or compares our engines with it.
fn needs_libcrypto(cell: &Cell) -> bool {
    let Adapter::Device(devices) = &cell.dut.adapter else {
        return false;
    };
    let compares = matches!(cell.measurement, Measurement::Device(DeviceTest::Kat(_)));
    devices.members.iter().any(|member| match member.kind {
        DeviceKind::OpenSsl { .. } => true,
        DeviceKind::Engine { .. } => compares,
        _ => false,
    })
}

/// Lines for all missing programs: what needs each, and the command that installs it.
fn describe(missing: &[Missing], cells: usize) -> String {
    let place = if missing.iter().all(|it| it.hosts.is_empty()) {
        "here"
    } else {
        "on the hosts"
    };
    let unfit = missing.iter().filter(|it| it.unfit.is_some()).count();
    let or_unfit = match unfit {
        0 => "",
        all if all == missing.len() => ", but not as it needs",
        _ => ", or not as it needs",
    };
    // If every program is there but unfit, "not installed" would send the user to install it once
    // more.
    let not = if or_unfit.starts_with(", but") {
        ""
    } else {
        "not "
    };
    let mut text = match missing {
        [_] => format!("a program that this campaign needs is {not}installed {place}{or_unfit}\n"),
        more => format!(
            "{} programs that this campaign needs are {not}installed {place}{or_unfit}\n",
            more.len()
        ),
    };
    let width = missing.iter().map(|it| it.program.len()).max().unwrap_or(0);
    for it in missing {
        let program = &it.program;
        let by = it.needed_by.join(", ");
        let affected = match it.cells.len() {
            all if all == cells => "all cells".to_owned(),
            some => format!("{some} of {}", counted(cells as u64, "cell")),
        };
        // Writing to a string cannot fail.
        let lacking = match it.hosts[..] {
            [] => String::new(),
            _ => format!(" (not on host {})", it.hosts.join(" and ")),
        };
        let _ = writeln!(text, "  {program:<width$}  for {by}: {affected}{lacking}");
        if let Some(why) = &it.unfit {
            let _ = writeln!(text, "  {:width$}  {why}", "");
        }
        let _ = writeln!(text, "  {:width$}  install: {}", "", how_to_install(it));
    }
    text
}

fn how_to_install(missing: &Missing) -> &str {
    let named = if missing.program.contains('/') {
        "the campaign names this path, and no program is there"
    } else {
        "the campaign names it; its whole path serves too"
    };
    missing.install.as_deref().unwrap_or(named)
}

/// The cells that cannot be measured.
fn without(missing: &[Missing]) -> BTreeSet<&str> {
    let cells = missing.iter().flat_map(|it| &it.cells);
    cells.map(String::as_str).collect()
}

/// For each cell that cannot be measured, the reason that its trials fail with.
fn reasons(missing: &[Missing]) -> BTreeMap<String, String> {
    let reason = |cell: &str| {
        let its: Vec<_> = missing
            .iter()
            .filter(|it| it.cells.iter().any(|id| id == cell))
            .collect();
        let names: Vec<_> = its.iter().map(|it| format!("`{}`", it.program)).collect();
        let mut help: Vec<&str> = its.iter().map(|it| how_to_install(it)).collect();
        // Neighbors with the same remedy, as two programs of one package, show it once.
        help.dedup();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let unfit: Vec<&str> = its.iter().filter_map(|it| it.unfit.as_deref()).collect();
        // As in `describe`: an unfit program is installed, and only its text says why it does not
        // serve.
        if !unfit.is_empty() && unfit.len() == its.len() {
            return format!(
                "left out by `--skip-missing`: {}\nhelp: {}",
                unfit.join("; "),
                help.join("; ")
            );
        }
        format!(
            "left out by `--skip-missing`: {} {verb} not installed here\nhelp: {}",
            names.join(" and "),
            help.join("; ")
        )
    };
    let cells = without(missing).into_iter();
    cells.map(|cell| (cell.to_owned(), reason(cell))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, needed_by: &[&str], cells: &[&str]) -> Missing {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Missing {
            program: name.to_owned(),
            needed_by: owned(needed_by),
            cells: owned(cells),
            lab: false,
            install: Some("make peers".to_owned()),
            unfit: None,
            hosts: Vec::new(),
        }
    }

    #[test]
    fn libcrypto_is_looked_for_only_if_a_device_needs_it() {
        let missing = |devices: &str, trials: &str, is_here: Option<bool>| {
            let text = format!("campaign: c\ndevices: [{devices}]\ntrials: [{trials}]\n");
            let campaign = campaign::from_text("c.yaml", &text).expect("it is right");
            let host = campaign::HostFacts { cores: 64 };
            let plan = campaign.plan(&campaign.usual_lab(), &host).expect("a plan");
            let cells: Vec<&Cell> = plan.cells.iter().collect();
            let look = || is_here.expect("it is not looked for");
            missing_libcrypto(&cells, look).map(|it| (it.needed_by, it.cells))
        };
        let hash = "speed: { operation: [sha-256], size: [16 B] }";
        assert_eq!(missing("engine", hash, None), None);
        assert_eq!(missing("openssl", hash, Some(true)), None);
        let of = |dut: &str, cell: &str| Some((vec![dut.to_owned()], vec![cell.to_owned()]));
        let found = missing(
            "engine, openssl",
            "kat: { devices: [openssl] }",
            Some(false),
        );
        assert_eq!(found, of("DUT openssl", "kat/openssl"));
        let found = missing("engine", "kat", Some(false));
        assert_eq!(found, of("DUT engine", "kat/engine"));
    }

    #[test]
    fn a_program_of_another_maker_is_described_as_what_it_is() {
        let ping = Missing {
            unfit: Some("`ping` is that of BusyBox".to_owned()),
            ..program("ping", &["the lab"], &["tcp/one"])
        };
        let text = describe(std::slice::from_ref(&ping), 1);
        assert_eq!(
            text,
            "a program that this campaign needs is installed here, but not as it needs\n  \
               ping  for the lab: all cells\n        \
                     `ping` is that of BusyBox\n        \
                     install: make peers\n"
        );
        let reason = &reasons(std::slice::from_ref(&ping))["tcp/one"];
        assert!(reason.contains("`ping` is that of BusyBox") && !reason.contains("not installed"));
        let text = describe(&[ping, program("wg", &["DUT"], &["tcp/one"])], 1);
        assert!(
            text.starts_with(
                "2 programs that this campaign needs are not installed here, or not as"
            )
        );
    }

    #[test]
    fn all_programs_are_described_with_what_needs_them_and_what_installs_them() {
        let missing = [
            program("wg", &["DUT one", "DUT two"], &["tcp/one", "tcp/two"]),
            Missing {
                unfit: Some("not used: /home/u/gotatun is not run as root: no".to_owned()),
                ..program("gotatun", &["DUT two"], &["tcp/two"])
            },
        ];
        assert_eq!(
            describe(&missing, 2),
            "2 programs that this campaign needs are not installed here, or not as it needs\n  \
               wg       for DUT one, DUT two: all cells\n           \
                        install: make peers\n  \
               gotatun  for DUT two: 1 of 2 cells\n           \
                        not used: /home/u/gotatun is not run as root: no\n           \
                        install: make peers\n"
        );
        let reasons = reasons(&missing);
        let help = "help: make peers";
        let expected = [
            ("tcp/one", "`wg` is"),
            ("tcp/two", "`wg` and `gotatun` are"),
        ]
        .map(|(cell, which)| {
            let reason =
                format!("left out by `--skip-missing`: {which} not installed here\n{help}");
            (cell.to_owned(), reason)
        });
        assert_eq!(reasons, BTreeMap::from(expected));
    }
}
