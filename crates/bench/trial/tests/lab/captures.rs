//! Captures beside trials, read back by tshark as an independent implementation.

use crate::trials::{TestLab, cell, encrypting, lab_plan, ping, plan};
use journal::record::{Captured, Measured, Outcome, ProtocolCount};
use plan::{Adapter, Capture, CapturePoint, Keep, Measurement, Plan};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use trial::{Trial, links, measure};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "tshark_reads_what_was_captured_and_opens_it_with_the_keys",
        tshark_reads_what_was_captured_and_opens_it_with_the_keys,
    ),
    (
        "a_capture_decides_about_a_trial_only_as_evidence",
        a_capture_decides_about_a_trial_only_as_evidence,
    ),
];

/// Everything, on the cipher link and at station A.
fn capture() -> Capture {
    Capture {
        at: vec![CapturePoint::Cipher, CapturePoint::StationA],
        keep: Keep::First,
        bytes_max: 4 << 20,
        snap_bytes: Capture::SNAP_BYTES_MAX,
        secrets: true,
        evidence: false,
    }
}

/// Reasons and measurements of a ping, also if the machine was too busy for a valid one.
fn pinged(adapter: Adapter, capture: &Capture, folder: &Path) -> (Vec<String>, Measured) {
    let mut lab = TestLab::build();
    let mut measurement = ping();
    if let Measurement::Ping { count, .. } = &mut measurement {
        *count = 50;
    }
    let cell = cell(adapter, 1, false, measurement);
    let lab_plan = lab_plan();
    let links = links(
        &Plan {
            lab: lab_plan,
            ..plan(&cell)
        },
        &cell,
    );
    let trial = Trial {
        capture: Some(capture),
        folder: Some(folder),
        ..Trial::of(&cell, 1, links)
    };
    match measure(&mut lab.lab, &trial, &lab.interrupt)
        .unwrap()
        .outcome
    {
        Outcome::Measured(measured) => (Vec::new(), *measured),
        Outcome::Invalid { reasons, measured } => (reasons, *measured),
        Outcome::Failed { reason } => panic!("{reason}"),
    }
}

const BY_TSHARK: &str = "captures as read by tshark";

fn tshark(file: &Path, options: &[&str]) -> String {
    let output = testing::tshark(BY_TSHARK, |tshark| {
        tshark.arg("-r").arg(file).args(options);
    });
    output.expect("it was there before")
}

/// The frames and bytes of each protocol in `tshark -z io,phs`, whose names are indented.
fn hierarchy(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let text = tshark(file, &["-q", "-z", "io,phs"]);
    let mut path: Vec<&str> = Vec::new();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(" frames:") else {
            continue;
        };
        let (frames, bytes) = rest.split_once(" bytes:").unwrap();
        // Each level is indented by two blanks more.
        path.truncate((name.len() - name.trim_start().len()) / 2);
        path.push(name.trim());
        let counts = (
            frames.trim().parse().unwrap(),
            bytes.trim().parse().unwrap(),
        );
        found.insert(path.join(":"), counts);
    }
    found
}

fn tshark_reads_what_was_captured_and_opens_it_with_the_keys() {
    let version = testing::tshark(BY_TSHARK, |tshark| {
        tshark.arg("-v");
    });
    if version.is_none() {
        return;
    }
    let folder = testing::folder().unwrap();
    let (_, measured) = pinged(encrypting(), &capture(), folder.path());
    let [cipher, station] = &measured.captures[..] else {
        panic!("{:?}", measured.captures);
    };
    for captured in [cipher, station] {
        assert!(captured.is_complete(), "{captured:?}");
        let file = folder.path().join(captured.file.as_ref().unwrap());
        let tsharks = hierarchy(&file);
        for ProtocolCount {
            path,
            frames,
            bytes,
        } in &captured.contents.protocols
        {
            assert_eq!(
                tsharks.get(path),
                Some(&(*frames, *bytes)),
                "{path}: {tsharks:?}"
            );
        }
        // Their kernel's drop count, and our names of the interface.
        let about = Command::new("capinfos").arg(&file).output().unwrap();
        let about = String::from_utf8(about.stdout).unwrap();
        let name = format!("Name = {}", captured.interface);
        assert!(
            about.contains(&name) && about.contains("nanoseconds"),
            "{about}"
        );
    }
    let esp = |captured: &Captured| {
        let mut paths = captured.contents.protocols.iter();
        paths.any(|it| it.path == "eth:ip:udp:udpencap:esp")
    };
    assert!(esp(cipher) && !esp(station), "{:?}", measured.captures);
    assert_eq!(
        (&*cipher.interface, &*station.interface),
        ("gw1/w0", "a/a0")
    );
    assert_eq!(station.secrets, None);
    let table = folder.path().join(cipher.secrets.as_ref().unwrap());
    assert_eq!(
        fs::metadata(&table).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let file = folder.path().join(cipher.file.as_ref().unwrap());
    let echoes = |options: &[&str]| {
        let filter = [
            "-Y",
            "icmp.type == 8 && ip.src == 10.1.0.2 && ip.dst == 10.2.0.2",
        ];
        tshark(&file, &[&filter[..], options].concat())
            .lines()
            .count()
    };
    // Without the keys, no echo request is readable.
    assert_eq!(echoes(&[]), 0);
    let sas = fs::read_to_string(table).unwrap();
    let sas: Vec<String> = sas.lines().map(|sa| format!("uat:esp_sa:{sa}")).collect();
    assert_eq!(sas.len(), 2, "one in each direction");
    let mut options = vec!["-o", "esp.enable_encryption_decode:TRUE"];
    options.extend(sas.iter().flat_map(|sa| ["-o", sa]));
    assert!(echoes(&options) >= 50, "{}", echoes(&options));
}

fn a_capture_decides_about_a_trial_only_as_evidence() {
    let folder = testing::folder().unwrap();
    let is_ours = |reason: &String| reason.starts_with("captured: ");
    for (evidence, blocked) in [(false, true), (true, true), (true, false)] {
        let folder = folder.path().join(format!("{evidence}-{blocked}"));
        fs::create_dir(&folder).unwrap();
        if blocked {
            // Where the files' folder should be.
            fs::write(folder.join("captures"), "").unwrap();
        }
        let asked = Capture {
            evidence,
            ..capture()
        };
        let (reasons, measured) = pinged(Adapter::Direct, &asked, &folder);
        assert_eq!(
            reasons.iter().any(is_ours),
            evidence && blocked,
            "{reasons:?}"
        );
        assert_eq!(measured.captures.len(), 2);
        for captured in &measured.captures {
            assert_eq!(captured.is_complete(), !blocked, "{captured:?}");
            assert_eq!(captured.problem.is_some(), blocked);
            assert_eq!(captured.contents.frames > 0, !blocked);
        }
    }
}
