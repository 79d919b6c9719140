//! The key `capture` of a campaign.

use campaign::{HostFacts, LabFile, from_text};
use plan::{Capture, CapturePoint, Keep, Plan, text::to_text};

const HOST: HostFacts = HostFacts { cores: 2 };

fn text(capture: &str) -> String {
    format!(
        "campaign: c\nduts: [direct]\ntrials:\n  - load: {{ frame: 64 B, rate: 1 kpps }}\ncapture: {capture}\n"
    )
}

fn plan(capture: &str) -> Plan {
    let campaign = from_text("c.yaml", &text(capture)).unwrap();
    campaign.plan(&LabFile::built_in(), &HOST).unwrap()
}

fn mistakes(capture: &str) -> String {
    from_text("c.yaml", &text(capture)).unwrap_err().to_string()
}

#[test]
fn a_place_alone_has_the_defaults() {
    let expected = Capture {
        at: vec![CapturePoint::Cipher],
        keep: Keep::First,
        bytes_max: 4 << 20,
        snap_bytes: 256,
        secrets: false,
        evidence: false,
    };
    for text in ["cipher", "[cipher]", "{ at: cipher }"] {
        assert_eq!(plan(text).capture, Some(expected.clone()), "{text}");
    }
    assert_eq!(plan("cipher\nlab: namespaces").capture, Some(expected));
}

#[test]
fn every_key_is_in_the_plan_and_keys_need_whole_packets() {
    let plan =
        plan("{ at: [station-b, cipher], keep: sampled, size: 1 MiB, secrets: on, evidence: on }");
    let capture = plan.capture.clone().unwrap();
    assert_eq!(capture.at, [CapturePoint::StationB, CapturePoint::Cipher]);
    assert_eq!(capture.keep, Keep::Sampled { one_in: 100 });
    assert_eq!(
        (capture.bytes_max, capture.snap_bytes),
        (1 << 20, Capture::SNAP_BYTES_MAX)
    );
    assert!(capture.secrets && capture.evidence);
    let printed = to_text(&plan, |_| Vec::new());
    let line = "capture: 1 in 100 frames at station-b and cipher, whole, up to 1024 KiB a trial, with the tunnel's keys";
    assert!(printed.contains(line), "{printed}");
}

#[test]
fn what_makes_no_sense_is_refused_at_its_place() {
    for (capture, words) in [
        ("gw1", "cipher"),
        ("[cipher, cipher]", "given twice"),
        ("{ keep: ring }", "at"),
        ("{ at: cipher, keep: newest }", "ring"),
        ("{ at: cipher, one_in: 10 }", "only `keep: sampled`"),
        ("{ at: cipher, snap: 20 B }", "78 B"),
        ("{ at: cipher, size: 1 GiB }", "256 MiB"),
        ("{ at: cipher, files: 3 }", "files"),
    ] {
        let found = mistakes(capture);
        assert!(
            found.contains(words) && found.contains("c.yaml:5"),
            "{capture}: {found}"
        );
    }
    let memory = LabFile::built_in_named("memory").unwrap();
    let text = text("cipher").replace("direct", "cipherbench");
    let refused = from_text("c.yaml", &text).unwrap().plan(&memory, &HOST);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("only a lab of namespaces"), "{refused}");
}
