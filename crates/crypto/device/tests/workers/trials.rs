//! Trials on our own engines.

use std::process::Command;

use catalog::device::{DeviceKind, DeviceTest};
use catalog::worker::Line;

use crate::worker::{CPU, Worker, endless, kat, loops, speed};

pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "speed_counts_completed_operations",
        speed_counts_completed_operations,
    ),
    (
        "operations_without_a_size_have_a_speed",
        operations_without_a_size_have_a_speed,
    ),
    (
        "every_operation_of_every_thread_is_verified",
        every_operation_of_every_thread_is_verified,
    ),
    ("invalid_inputs_are_refused", invalid_inputs_are_refused),
    (
        "a_thousand_threads_take_little_memory",
        a_thousand_threads_take_little_memory,
    ),
    (
        "a_fatigue_trial_ends_on_request",
        a_fatigue_trial_ends_on_request,
    ),
    ("fatigue_ends_in_time", fatigue_ends_in_time),
    (
        "a_stopped_speed_trial_has_no_figure",
        a_stopped_speed_trial_has_no_figure,
    ),
    ("invalid_specs_are_refused", invalid_specs_are_refused),
    (
        "without_libcrypto_all_else_is_measured",
        without_libcrypto_all_else_is_measured,
    ),
];

const MIXED: [&str; 8] = [
    "sha-256",
    "hmac-sha-256",
    "aes-128-cbc encrypt",
    "aes-256-gcm decrypt",
    "rsa-2048-oaep encrypt",
    "ecdsa-p256 sign",
    "ed25519 verify",
    "magma-ctr encrypt",
];

fn speed_counts_completed_operations() {
    let speed = Worker::start(CPU, speed("aes-128-gcm decrypt", 1000, 2, 400)).speed();
    assert!(speed.operations > 0, "{speed:?}");
    // Of plaintext, without the tag.
    assert_eq!(speed.bytes, speed.operations * 1000);
    assert_eq!(speed.slices.len(), 4);
    assert_eq!(speed.slices.iter().sum::<u64>(), speed.operations);
    assert_eq!((speed.failed, speed.wrong), (0, 0));
    assert!(speed.checked >= 4603.min(speed.operations), "{speed:?}");
    assert!(
        (400_000_000..9_000_000_000).contains(&speed.elapsed_ns),
        "{speed:?}"
    );
    assert!(speed.cpu_ns > 0 && speed.began_unix_ns > 0, "{speed:?}");
    let [middle, late, last] = speed.latency_ns;
    assert!(0 < middle && middle <= late && late <= last, "{speed:?}");
    assert_eq!(speed.device_operations, None);
}

fn operations_without_a_size_have_a_speed() {
    let speed = Worker::start(CPU, speed("ecdsa-p256 sign", 1000, 1, 400)).speed();
    assert!(speed.operations > 0, "{speed:?}");
    assert_eq!((speed.bytes, speed.failed, speed.wrong), (0, 0, 0));
}

fn every_operation_of_every_thread_is_verified() {
    let fatigue = Worker::start(CPU, loops(&MIXED, 10, 20)).go().fatigue();
    assert_eq!(
        fatigue.counts.right,
        10 * 20 * MIXED.len() as u64,
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
    assert_eq!((fatigue.counts.refused, fatigue.counts.restarts), (0, 0));
    assert!(
        fatigue.failures_ns.is_empty() && fatigue.reasons.is_empty(),
        "{fatigue:?}"
    );
}

fn invalid_inputs_are_refused() {
    let mut work = loops(&MIXED, 4, 50);
    if let DeviceTest::Fatigue(test) = &mut work {
        test.invalid_every = 3;
    }
    let fatigue = Worker::start(CPU, work).go().fatigue();
    assert_eq!(
        fatigue.counts.right + fatigue.counts.refused,
        4 * 50 * MIXED.len() as u64,
        "{fatigue:?}"
    );
    assert!(fatigue.counts.refused > 200, "{fatigue:?}");
    assert_eq!(fatigue.counts.passed_invalid, 0, "{fatigue:?}");
}

fn a_thousand_threads_take_little_memory() {
    let fatigue = Worker::start(CPU, loops(&MIXED, 1000, 1)).go().fatigue();
    assert_eq!(
        fatigue.counts.right,
        1000 * MIXED.len() as u64,
        "{fatigue:?}"
    );
    let most = fatigue.resident_bytes_max;
    assert!(most > 0, "the kernel reports no VmHWM");
    assert!(most < 1_000_000_000, "{most} bytes");
}

fn a_fatigue_trial_ends_on_request() {
    for word in ["stop", ""] {
        let mut worker = Worker::start(CPU, endless(&MIXED, 3, true)).go();
        match worker.line() {
            Some(Line::Fatigue(fatigue)) => assert!(fatigue.counts.right > 0, "{fatigue:?}"),
            other => panic!("{other:?}"),
        }
        if word.is_empty() {
            worker.hang_up();
        } else {
            worker.send(word);
        }
        let fatigue = worker.fatigue();
        assert_eq!(
            (fatigue.counts.wrong, fatigue.counts.failed),
            (0, 0),
            "{fatigue:?}"
        );
    }
}

fn fatigue_ends_in_time() {
    let mut work = endless(&MIXED, 2, false);
    if let DeviceTest::Fatigue(test) = &mut work {
        test.duration_ns = Some(300_000_000);
    }
    let fatigue = Worker::start(CPU, work).go().fatigue();
    assert!(fatigue.elapsed_ns >= 300_000_000, "{fatigue:?}");
    assert!(fatigue.counts.right > 0, "{fatigue:?}");
}

fn a_stopped_speed_trial_has_no_figure() {
    let mut worker = Worker::start(CPU, speed("sha-256", 64, 2, 600_000)).go();
    worker.send("stop");
    assert_eq!(worker.lines(), []);
}

fn invalid_specs_are_refused() {
    let refused = |work| Worker::start(CPU, work).refusal();
    assert_eq!(
        refused(speed("aes128-cbc encrypt", 64, 1, 10)),
        "there is no algorithm \"aes128-cbc\"; did you mean aes-128-cbc?"
    );
    assert_eq!(
        refused(loops(&["sha-256"], 1001, 1)),
        "a process works with 1 to 1000 threads, not with 1001"
    );
    assert_eq!(refused(loops(&[], 1, 1)), "no operation is named");
    let text = Worker::start_text("{}", |_| {}).refusal();
    assert!(
        text.starts_with("the first line of standard input is not the spec"),
        "{text}"
    );
}

/// The library's names lead to files that are none.
fn without_libcrypto_all_else_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libcrypto.so.3", "libcrypto.so.4", "libcrypto.so"] {
        std::fs::write(folder.path().join(name), "none\n").expect("a file");
    }
    let start = |device: DeviceKind, test: DeviceTest| {
        let how = |command: &mut Command| _ = command.env("LD_LIBRARY_PATH", folder.path());
        Worker::start_with(device, test, how)
    };
    let hash = || speed("sha-256", 64, 1, 100);
    assert!(start(CPU, hash()).speed().operations > 0);
    let openssl = |engine: Option<&str>| DeviceKind::OpenSsl {
        provider: None,
        engine: engine.map(str::to_owned),
        module: None,
    };
    for refused in [
        start(openssl(None), hash()),
        start(openssl(Some("dynamic")), hash()),
        // It has no other reference.
        start(CPU, kat(&["sha-256"])),
        start(CPU, speed("rsa-1024-pkcs1 sign", 0, 1, 100)),
    ] {
        let why = refused.refusal();
        assert!(why.contains("OpenSSL's libcrypto is needed here"), "{why}");
        assert!(why.contains("sudo apt install libssl3"), "{why}");
    }
}
