//! The captures of a trial: programs that keep frames of its links while it runs.
//!
//! They decide nothing about a trial, unless its campaign asks for them as evidence: if a capture
//! cannot start or write its file, the reason is recorded.

mod secrets;

use crate::command::sub_command;
use crate::error::TrialError;
use crate::tools::{READY_LIMIT, report_of};
use ::capture::{CaptureReport, CaptureSpec};
use journal::record::{Captured, Check, Explanation, Measured};
use plan::{Adapter, Capture, CapturePoint, Cell, Measurement, Role};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use testbed::protocol::{Program, Ready};
use testbed::{Bench, NodeId, RunningDut, path_interfaces};
use traffic_spec::READY;

/// Name of the subcommand that runs a [`CaptureSpec`].
const SUB_COMMAND: &str = "capture";
/// Folder of the files, in the run's folder.
const FOLDER: &str = "captures";
/// Time to write the file between SIGTERM and SIGKILL.
const END_GRACE: Duration = Duration::from_secs(20);

/// Captures that run.
pub(crate) struct Captures<'a> {
    asked: Option<(&'a Capture, &'a Path)>,
    running: Vec<Running>,
}

/// One of them.
struct Running {
    at: CapturePoint,
    node: NodeId,
    interface: String,
    /// From the run's folder.
    file: String,
    /// Its process, or the reason why it did not start.
    process: Result<u64, String>,
}

impl<'a> Captures<'a> {
    /// Starts the captures that the trial's campaign asks for. The tester's limit is measured
    /// without any.
    pub(crate) fn begin(
        bench: &dyn Bench,
        (cell, repeat): (&Cell, u32),
        asked: Option<(&'a Capture, &'a Path)>,
        dut: &RunningDut,
    ) -> Self {
        let is_rig = cell.dut.adapter.profile().role == Role::Rig;
        // A program that copies frames takes time from the generator and the analyzer, and the
        // calibration is to show their limit.
        let asked = asked.filter(|_| !is_rig);
        let mut running = Vec::new();
        if let Some((capture, folder)) = asked {
            for &at in &capture.at {
                if let Some((node, interface)) = place(bench, cell, dut, at) {
                    let file = file_name(&cell.id, repeat, at);
                    let process = start(bench, capture, folder, (node, &interface, &file), dut);
                    running.push(Running {
                        at,
                        node,
                        interface,
                        file,
                        process,
                    });
                }
            }
        }
        Self { asked, running }
    }

    /// Ends them, and writes the keys that were asked for.
    pub(crate) fn end(self, bench: &dyn Bench, dut: &RunningDut) -> Recorded {
        let Some((asked, folder)) = self.asked else {
            return Recorded::default();
        };
        let captures = self.running.into_iter();
        Recorded {
            captures: captures
                .map(|running| running.end(bench, dut, asked, folder))
                .collect(),
            evidence_of: asked.evidence.then_some(asked.at.len()),
        }
    }
}

/// The results of a trial's captures.
#[derive(Default)]
pub(crate) struct Recorded {
    captures: Vec<Captured>,
    /// Number of captures that the campaign asks for as evidence; `None`: they are none.
    evidence_of: Option<usize>,
}

impl Recorded {
    /// Adds them to the trial's measurements, and their check if they are evidence.
    pub(crate) fn add_to(self, measured: &mut Measured) {
        if let Some(asked) = self.evidence_of {
            measured.evidence.checks.push(check(&self.captures, asked));
        }
        measured.captures = self.captures;
    }

    /// Adds the locations of its captures to the reason of a failed trial.
    pub(crate) fn explain(self, error: TrialError) -> TrialError {
        let files: Vec<_> = self.captures.into_iter().filter_map(|it| it.file).collect();
        if files.is_empty() || error.is_interrupt() {
            error
        } else {
            TrialError::frames(format!("{error}; captured in {}", files.join(", ")))
        }
    }
}

/// Checks that all captures that were asked for exist and are complete.
fn check(captures: &[Captured], asked: usize) -> Check {
    let mut missing: Vec<String> = captures
        .iter()
        .filter(|captured| !captured.is_complete())
        .map(|captured| {
            let why = match (&captured.file, &captured.problem) {
                (None, Some(problem)) => problem.clone(),
                _ => format!("frames dropped: {}", captured.contents.dropped),
            };
            format!("{}: {why}", captured.at.name())
        })
        .collect();
    // A point without a place on this path was left out at the beginning.
    if captures.len() < asked {
        missing.push("the path has no link between gateways to capture".to_owned());
    }
    let (name, frames) = ("captured", captures.iter().map(|it| it.contents.frames));
    let detail = if missing.is_empty() {
        format!(
            "captures have {} frames, none was dropped",
            frames.sum::<u64>()
        )
    } else {
        missing.join("; ")
    };
    Check {
        name: name.to_owned(),
        passed: missing.is_empty(),
        explanation: (!missing.is_empty()).then(|| {
            Explanation::new(
                format!("the capture is incomplete: {detail}"),
                "no core was idle to read the frames, or the disk has no room",
                "make room, then `cipherbench resume RUN --invalid`; or capture less (`keep: sampled`, a smaller \
                 `snap`) in a new run",
            )
        }),
        detail,
    }
}

/// The node and interface that capture a point. `None` if nothing can be seen.
///
/// The sending end's kernel does not show frames sent past its queue, nor frames that a station's
/// AF_XDP port takes: so test frames are captured at the gateway's ends of the links.
fn place(
    bench: &dyn Bench,
    cell: &Cell,
    dut: &RunningDut,
    at: CapturePoint,
) -> Option<(NodeId, String)> {
    let is_outside = matches!(cell.dut.adapter, Adapter::External(_));
    let of_frames = matches!(cell.measurement, Measurement::Frames(_)) && !is_outside;
    let stations = bench.station_interfaces();
    let [_, a1, .., b1, _] = path_interfaces();
    let own = |end: &str| {
        end.split_once('/')
            .map(|(_, interface)| interface.to_owned())
    };
    match at {
        CapturePoint::Cipher => {
            let source = dut.frame_path.as_ref().map(|path| path.source.node);
            let [first, second] = bench.cipher_ends()?;
            let (node, interface) = match source {
                // A station in gw1's place sends past its kernel, so the other end captures.
                Some(NodeId::Gw1) => second,
                _ => first,
            };
            Some((node, interface.to_owned()))
        }
        CapturePoint::StationA if of_frames => Some((NodeId::Gw1, own(&a1)?)),
        CapturePoint::StationB if of_frames => Some((NodeId::Gw2, own(&b1)?)),
        CapturePoint::StationA => Some((NodeId::A, stations.0.to_owned())),
        CapturePoint::StationB => Some((NodeId::B, stations.1.to_owned())),
    }
}

/// Starts the program of a capture.
fn start(
    bench: &dyn Bench,
    capture: &Capture,
    folder: &Path,
    (node, interface, file): (NodeId, &str, &str),
    dut: &RunningDut,
) -> Result<u64, String> {
    let file = absolute(folder, file)?;
    if let Some(parent) = file.parent() {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o755);
        folders
            .create(parent)
            .map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
    }
    let spec = CaptureSpec {
        interface: interface.to_owned(),
        name: format!("{}/{interface}", node.name()),
        keep: capture.keep,
        bytes_max: capture.bytes_max,
        snap_bytes: capture.snap_bytes,
        esp_ports: secrets::esp_ports(dut),
        file,
    };
    let program = Program {
        ready: Ready::Line(READY.to_owned()),
        ..sub_command(SUB_COMMAND, &spec)
    };
    let started = bench.node(node).start(program, READY_LIMIT);
    started.map_err(|error| error.to_string())
}

impl Running {
    fn end(self, bench: &dyn Bench, dut: &RunningDut, asked: &Capture, folder: &Path) -> Captured {
        let interface = format!("{}/{}", self.node.name(), self.interface);
        let nothing = |problem| Captured {
            at: self.at,
            interface: interface.clone(),
            file: None,
            secrets: None,
            problem: Some(problem),
            contents: journal::record::CaptureContents::default(),
        };
        let process = match self.process {
            Ok(process) => process,
            Err(problem) => return nothing(problem),
        };
        // SIGTERM makes it write the file's end and report.
        let ended = bench.node(self.node).stop(process, END_GRACE);
        let report: Result<CaptureReport, String> =
            ended.map_err(|error| error.to_string()).and_then(|ended| {
                report_of(SUB_COMMAND, self.node, &ended).map_err(|error| error.to_string())
            });
        let report = match report {
            Ok(report) => report,
            Err(problem) => return nothing(problem),
        };
        let mut captured = Captured {
            file: report.problem.is_none().then(|| self.file.clone()),
            problem: report.problem,
            contents: report.contents,
            ..nothing(String::new())
        };
        // Keys are written only for SAs that are in the capture: without any there is nothing to
        // open.
        let sealed = !report.flows.is_empty();
        if asked.secrets && sealed && captured.file.is_some() {
            let table = format!("{}.esp_sa", self.file.trim_end_matches(".pcapng"));
            let written = secrets::table(dut, &report.flows)
                .and_then(|text| secrets::write(&folder.join(&table), &text));
            match written {
                Ok(()) => captured.secrets = Some(table),
                Err(problem) => captured.problem = Some(problem),
            }
        }
        captured
    }
}

/// A station may have another working folder.
fn absolute(folder: &Path, file: &str) -> Result<PathBuf, String> {
    std::path::absolute(folder.join(file)).map_err(|error| error.to_string())
}

/// The name of a capture's file, from the run's folder: unique in a plan, and a plain word for
/// shells and links.
fn file_name(cell: &str, repeat: u32, at: CapturePoint) -> String {
    let plain: String = cell
        .chars()
        .map(|char| match char {
            '/' => ',',
            ' ' => '~',
            char if char.is_ascii_alphanumeric() || "-_.+=".contains(char) => char,
            _ => '@',
        })
        .collect();
    format!("{FOLDER}/{plain},{repeat},{}.pcapng", at.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::CaptureContents;

    #[test]
    fn a_files_name_is_one_plain_word() {
        let name = file_name("tcp/mtu=1500/cores=1/four lanes", 2, CapturePoint::StationA);
        assert_eq!(
            name,
            "captures/tcp,mtu=1500,cores=1,four~lanes,2,station-a.pcapng"
        );
    }

    #[test]
    fn as_evidence_a_capture_must_have_its_file_and_all_frames() {
        let whole = Captured {
            at: CapturePoint::Cipher,
            interface: "gw1/w0".to_owned(),
            file: Some("captures/x.pcapng".to_owned()),
            secrets: None,
            problem: None,
            contents: CaptureContents {
                frames: 7,
                selected: 7,
                ..CaptureContents::default()
            },
        };
        assert!(check(std::slice::from_ref(&whole), 1).passed);
        let mut dropped = whole.clone();
        dropped.contents.dropped = 3;
        let mut missing = whole.clone();
        (missing.file, missing.problem) = (None, Some("No space left on device".to_owned()));
        for (bad, word) in [(dropped, "frames dropped: 3"), (missing, "No space left")] {
            let failed = check(&[whole.clone(), bad], 2);
            assert!(!failed.passed && failed.detail.contains(word), "{failed:?}");
            assert!(failed.explanation.is_some());
        }
        assert!(!check(&[], 1).passed);
    }
}
