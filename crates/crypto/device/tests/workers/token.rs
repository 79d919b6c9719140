//! Trials on tokens of SoftHSM2.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use catalog::device::{DeviceKind, DeviceTest, KatOutcome};
use catalog::worker::Line;
use device::SoftHsm;

use crate::worker::{Worker, endless, kat, loops, speed};

pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "its_algorithms_pass_or_are_not_offered",
        its_algorithms_pass_or_are_not_offered,
    ),
    ("its_speed_is_measured", its_speed_is_measured),
    ("its_operations_are_verified", its_operations_are_verified),
    (
        "a_created_token_is_removed_with_its_trial",
        a_created_token_is_removed_with_its_trial,
    ),
    (
        "a_vanished_token_is_a_counted_failure",
        a_vanished_token_is_a_counted_failure,
    ),
    (
        "a_token_that_does_not_come_back_ends_the_trial",
        a_token_that_does_not_come_back_ends_the_trial,
    ),
    ("an_absent_token_has_no_speed", an_absent_token_has_no_speed),
    ("a_wrong_pin_is_reported", a_wrong_pin_is_reported),
    (
        "a_pin_that_others_can_read_is_refused",
        a_pin_that_others_can_read_is_refused,
    ),
    (
        "a_missing_module_or_token_is_reported",
        a_missing_module_or_token_is_reported,
    ),
];

const MIXED: [&str; 7] = [
    "sha-256",
    "hmac-sha-256",
    "aes-128-cbc encrypt",
    "aes-256-gcm decrypt",
    "rsa-2048-pkcs1 sign",
    "rsa-2048-oaep decrypt",
    "ecdsa-p256 verify",
];

/// Starts a worker on a token that the test owns.
fn start(token: &SoftHsm, device: DeviceKind, work: DeviceTest) -> Worker {
    let (name, value) = token.environment();
    Worker::start_with(device, work, |command| _ = command.env(name, value))
}

fn its_algorithms_pass_or_are_not_offered() {
    let names = [
        "md5",
        "sha-1",
        "sha-256",
        "sha-512",
        "hmac-sha-1",
        "hmac-sha-256",
        "aes-128-ecb",
        "aes-192-cbc",
        "aes-256-cbc-pad",
        "aes-128-ctr",
        "aes-256-gcm",
        "aes-128-cmac",
        "des-ede3-cbc",
        "rsa-1024-pkcs1",
        "rsa-2048-oaep",
        "rsa-2048-oaep-sha-256",
        "rsa-2048-pss",
        "rsa-4096-pkcs1",
        "ecdsa-p256",
        "ecdsa-secp256k1",
        "ed25519",
        "ml-kem-768",
        "kuznyechik-ctr",
    ];
    let rows = Worker::start(DeviceKind::SoftHsm, kat(&names)).kat();
    let mut offered: Vec<&str> = Vec::new();
    for row in &rows {
        match &row.outcome {
            KatOutcome::Pass => offered.push(&row.algorithm),
            KatOutcome::NotOffered(_) | KatOutcome::NonePublished => {}
            wrong => panic!("{}, {}: {wrong:?}", row.algorithm, row.case),
        }
    }
    for name in [
        "sha-256",
        "aes-128-ecb",
        "aes-128-ctr",
        "rsa-4096-pkcs1",
        "ecdsa-secp256k1",
    ] {
        assert!(offered.contains(&name), "{name} is not offered: {rows:?}");
    }
    for name in ["ml-kem-768", "kuznyechik-ctr", "md5"] {
        assert!(!offered.contains(&name), "{name}: {rows:?}");
    }
}

fn its_speed_is_measured() {
    let speed = Worker::start(
        DeviceKind::SoftHsm,
        speed("aes-256-gcm encrypt", 1024, 4, 100),
    )
    .speed();
    assert!(speed.operations > 0 && speed.checked > 0, "{speed:?}");
    assert_eq!((speed.failed, speed.wrong), (0, 0), "{speed:?}");
    assert_eq!(speed.bytes, speed.operations * 1024);
}

fn its_operations_are_verified() {
    let mut work = loops(&MIXED, 10, 6);
    if let DeviceTest::Fatigue(test) = &mut work {
        test.invalid_every = 4;
    }
    let fatigue = Worker::start(DeviceKind::SoftHsm, work).go().fatigue();
    assert_eq!(
        fatigue.counts.right + fatigue.counts.refused,
        10 * 6 * MIXED.len() as u64,
        "{fatigue:?}"
    );
    assert_eq!(
        (
            fatigue.counts.wrong,
            fatigue.counts.failed,
            fatigue.counts.passed_invalid
        ),
        (0, 0, 0),
        "{fatigue:?}"
    );
    assert!(fatigue.counts.refused > 20, "{fatigue:?}");
}

fn a_created_token_is_removed_with_its_trial() {
    let folder = tempfile::tempdir().unwrap();
    let within = |command: &mut std::process::Command| _ = command.env("TMPDIR", folder.path());
    let mut worker =
        Worker::start_with(DeviceKind::SoftHsm, endless(&["sha-256"], 1, false), within).go();
    assert_ne!(entries(folder.path()), 0);
    worker.send("stop");
    worker.fatigue();
    assert_eq!(entries(folder.path()), 0);
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

fn unplug(token: &SoftHsm) {
    for entry in fs::read_dir(token.tokens()).unwrap() {
        let folder = entry.unwrap().path();
        // Its user may write a file there meanwhile.
        while let Err(error) = fs::remove_dir_all(&folder) {
            assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty);
        }
    }
}

fn a_vanished_token_is_a_counted_failure() {
    let reasons = vanish(false);
    assert!(!reasons.contains("cannot be reopened"), "{reasons}");
}

fn a_token_that_does_not_come_back_ends_the_trial() {
    let reasons = vanish(true);
    assert!(reasons.contains("cannot be reopened"), "{reasons}");
}

/// Removes a token during a fatigue trial, which then ends by itself. Returns the reasons of
/// failures.
fn vanish(restart: bool) -> String {
    let token = SoftHsm::make().unwrap();
    let mut worker = start(&token, token.spec(), endless(&MIXED, 5, restart)).go();
    match worker.line() {
        Some(Line::Fatigue(fatigue)) => assert_eq!(fatigue.counts.failed, 0, "{fatigue:?}"),
        other => panic!("{other:?}"),
    }
    unplug(&token);
    let fatigue = worker.fatigue();
    assert!(fatigue.counts.failed >= 1, "{fatigue:?}");
    assert_eq!(
        (fatigue.failures_ns.len(), fatigue.counts.restarts),
        (1, 0),
        "{fatigue:?}"
    );
    assert!(
        fatigue.reasons[0].contains("no longer present"),
        "{fatigue:?}"
    );
    fatigue.reasons.concat()
}

fn an_absent_token_has_no_speed() {
    let token = SoftHsm::make().unwrap();
    let worker = start(&token, token.spec(), speed("sha-256", 64, 2, 300)).go();
    unplug(&token);
    let text = worker.refusal();
    assert!(text.contains("no longer present"), "{text}");
}

/// Returns the token with a changed PIN file, mode and module.
fn changed(
    token: &SoftHsm,
    change: impl FnOnce(&mut PathBuf, &mut PathBuf, &mut Option<String>),
) -> DeviceKind {
    let mut spec = token.spec();
    if let DeviceKind::Pkcs11 {
        module,
        pin_file,
        token,
        ..
    } = &mut spec
    {
        change(module, pin_file, token);
    }
    spec
}

fn a_wrong_pin_is_reported() {
    let token = SoftHsm::make().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pin");
    fs::write(&file, "00000000\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let spec = changed(&token, |_, pin, _| pin.clone_from(&file));
    let text = match start(&token, spec, kat(&["sha-256"])).lines().pop() {
        Some(Line::PinRefused(text)) => text,
        other => panic!("it was not refused: {other:?}"),
    };
    let shown = file.display();
    assert!(
        text.starts_with(&format!(
            "the PIN in {shown} is not that of token \"cipherbench\""
        )),
        "{text}"
    );
}

fn a_pin_that_others_can_read_is_refused() {
    let token = SoftHsm::make().unwrap();
    let spec = changed(&token, |_, pin, _| {
        fs::set_permissions(&*pin, Permissions::from_mode(0o640)).unwrap();
    });
    let text = start(&token, spec, kat(&["sha-256"])).refusal();
    assert!(text.contains("can be read by others (mode 640)"), "{text}");
    let spec = changed(&token, |_, pin, _| pin.push("nothing"));
    let text = start(&token, spec, kat(&["sha-256"])).refusal();
    assert!(text.starts_with("cannot read the PIN in "), "{text}");
}

fn a_missing_module_or_token_is_reported() {
    let token = SoftHsm::make().unwrap();
    let spec = changed(&token, |module, _, _| *module = "/nowhere/module.so".into());
    let text = start(&token, spec, kat(&["sha-256"])).refusal();
    assert!(
        text.starts_with("/nowhere/module.so is no PKCS#11 module"),
        "{text}"
    );
    let spec = changed(&token, |_, _, label| *label = Some("other".to_owned()));
    let text = start(&token, spec, kat(&["sha-256"])).refusal();
    assert!(
        text.starts_with("there is no token \"other\"; there are: \"cipherbench\" in slot "),
        "{text}"
    );
}
