//! Rules for results, each over all back ends that compute elsewhere and over all trials: a token
//! of PKCS#11 and an engine of OpenSSL with the same faults. And tokens with peculiarities.

use std::path::{Path, PathBuf};
use std::process::Command;

use catalog::device::{DeviceKind, DeviceTest, KatOutcome, KatRow};
use catalog::worker::{Fatigue, Line, Speed};
use device::SoftHsm;

use crate::worker::{Worker, endless, kat, loops, speed};

pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "devices_without_a_fault_pass_all_trials",
        devices_without_a_fault_pass_all_trials,
    ),
    ("wrong_results_are_found", wrong_results_are_found),
    (
        "results_longer_than_the_buffer_are_found",
        results_longer_than_the_buffer_are_found,
    ),
    (
        "a_token_that_writes_behind_its_buffer_is_found",
        a_token_that_writes_behind_its_buffer_is_found,
    ),
    (
        "a_token_that_asks_for_all_memory_is_found",
        a_token_that_asks_for_all_memory_is_found,
    ),
    (
        "a_device_that_accepts_every_signature_is_found",
        a_device_that_accepts_every_signature_is_found,
    ),
    (
        "a_token_that_chooses_its_iv_is_not_wrong",
        a_token_that_chooses_its_iv_is_not_wrong,
    ),
    (
        "a_token_that_refuses_keys_with_two_usages_offers_its_operations",
        a_token_that_refuses_keys_with_two_usages_offers_its_operations,
    ),
    (
        "a_token_that_refuses_keys_gives_its_reason",
        a_token_that_refuses_keys_gives_its_reason,
    ),
    (
        "texts_padded_with_zero_bytes_are_trimmed",
        texts_padded_with_zero_bytes_are_trimmed,
    ),
    (
        "a_limit_of_sessions_is_named_by_whatever_code",
        a_limit_of_sessions_is_named_by_whatever_code,
    ),
];

/// A device with the fault that a macro selects, compiled for a test.
struct Compiled {
    token: SoftHsm,
    folder: tempfile::TempDir,
}

/// A back end, the name of its algorithm with signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Back {
    Token,
    Engine,
}

/// The back ends that can be compiled here.
fn back_ends() -> &'static [Back] {
    if testing::has_header(
        "engines of OpenSSL",
        "openssl/engine.h",
        "apt install libssl-dev",
    ) {
        &[Back::Token, Back::Engine]
    } else {
        &[Back::Token]
    }
}

impl Back {
    const fn signatures(self) -> &'static str {
        match self {
            Self::Token => "ecdsa-p256",
            Self::Engine => "ed25519",
        }
    }
}

impl Compiled {
    fn new() -> Self {
        Self {
            token: SoftHsm::make().expect("a token"),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// The device of a back end with this fault; without one if it is empty.
    fn device(&self, back: Back, fault: &str) -> DeviceKind {
        let compile = |source: &str, flags: &[String], libraries: &str| -> PathBuf {
            let module = self.folder.path().join(format!("{source}-{fault}.so"));
            let source = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/data")
                .join(format!("{source}.c"));
            let mut cc = Command::new("cc");
            cc.args(flags)
                .args(["-shared", "-fPIC", "-o"])
                .args([&module, &source])
                .arg(libraries);
            assert!(cc.status().expect("cc").success(), "{cc:?}");
            module
        };
        let mut flags = match fault {
            "" => Vec::new(),
            fault => vec![format!("-D{fault}")],
        };
        match (back, self.token.spec()) {
            (
                Back::Token,
                DeviceKind::Pkcs11 {
                    module,
                    slot,
                    token,
                    pin_file,
                },
            ) => {
                flags.push(format!("-DREAL=\"{}\"", module.display()));
                DeviceKind::Pkcs11 {
                    module: compile("token", &flags, "-ldl"),
                    slot,
                    token,
                    pin_file,
                }
            }
            (Back::Engine, _) => DeviceKind::OpenSsl {
                provider: None,
                engine: Some(
                    match fault {
                        "LIES" => "liar",
                        "LONG" => "long",
                        "LAZY" => "lazy",
                        _ => "trial",
                    }
                    .to_owned(),
                ),
                module: Some(compile("engine", &flags, "-lcrypto")),
            },
            (Back::Token, other) => panic!("{other:?}"),
        }
    }

    fn start(&self, device: DeviceKind, test: DeviceTest) -> Worker {
        let (name, value) = self.token.environment();
        Worker::start_with(device, test, |command| _ = command.env(name, value))
    }
}

/// The results of the three trials on one device. Without one, the reason why it cannot be
/// measured.
struct Trials {
    kat: Vec<KatRow>,
    speed: Result<Speed, String>,
    fatigue: Result<Fatigue, String>,
}

fn trials(back: Back, fault: &str, action: &str) -> Trials {
    let compiled = Compiled::new();
    let device = compiled.device(back, fault);
    let name = back.signatures();
    let operation = format!("{name} {action}");
    let rows = compiled.start(device.clone(), kat(&[name])).kat();
    let outcome = |test: DeviceTest| -> Result<Line, String> {
        let mut worker = compiled.start(device.clone(), test);
        let mut last = None;
        while let Some(line) = worker.line() {
            match line {
                Line::Ready => worker.send("go"),
                Line::Failed(text) => return Err(text),
                Line::Open(_) | Line::End => {}
                line => last = Some(line),
            }
        }
        Ok(last.expect("a result"))
    };
    let speed = outcome(speed(&operation, 64, 2, 300)).map(|line| match line {
        Line::Speed(speed) => speed,
        other => panic!("{other:?}"),
    });
    let mut work = loops(&[&operation], 2, 40);
    if let DeviceTest::Fatigue(test) = &mut work {
        test.invalid_every = 4;
    }
    let fatigue = outcome(work).map(|line| match line {
        Line::Fatigue(fatigue) => fatigue,
        other => panic!("{other:?}"),
    });
    Trials {
        kat: rows,
        speed,
        fatigue,
    }
}

impl Trials {
    /// Whether each trial found a fault.
    fn found(&self) -> [bool; 3] {
        let speed = self.speed.as_ref();
        let fatigue = self.fatigue.as_ref();
        [
            self.kat.iter().any(|row| row.outcome.is_bad()),
            speed.is_ok_and(|one| one.wrong + one.accepted > 0) || speed.is_err(),
            fatigue.is_ok_and(|one| one.counts.bad() > 0) || fatigue.is_err(),
        ]
    }

    fn describe(&self) -> String {
        let bad = self.kat.iter().filter(|row| row.outcome.is_bad());
        let bad: Vec<_> = bad.collect();
        format!("{bad:?}\n{:?}\n{:?}", self.speed, self.fatigue)
    }
}

fn devices_without_a_fault_pass_all_trials() {
    for &back in back_ends() {
        for action in ["sign", "verify"] {
            let trials = trials(back, "", action);
            assert_eq!(trials.found(), [false; 3], "{}", trials.describe());
            let speed = trials.speed.as_ref().expect("a speed");
            assert_eq!(speed.failed, 0, "{back:?}: {speed:?}");
            assert!(speed.checked > 0, "{back:?}: {speed:?}");
            assert_eq!(speed.invalid > 0, action == "verify", "{back:?}: {speed:?}");
        }
    }
}

fn wrong_results_are_found() {
    for &back in back_ends() {
        let trials = trials(back, "LIES", "sign");
        assert_eq!(trials.found(), [true; 3], "{}", trials.describe());
    }
}

/// The buffer has the right result, and a longer one is announced.
fn results_longer_than_the_buffer_are_found() {
    for &back in back_ends() {
        let trials = trials(back, "LONG", "sign");
        let shown = trials.describe();
        assert_eq!(trials.found(), [true; 3], "{back:?}: {shown}");
        let text = "it announced a result of 80 B in a buffer of 64 B";
        assert!(shown.matches(text).count() >= 2, "{back:?}: {shown}");
    }
}

fn a_token_that_writes_behind_its_buffer_is_found() {
    let trials = trials(Back::Token, "OVERRUN", "sign");
    let shown = trials.describe();
    assert_eq!(trials.found(), [true; 3], "{shown}");
    assert!(
        shown.contains("it wrote behind its buffer of 64 B"),
        "{shown}"
    );
}

fn a_token_that_asks_for_all_memory_is_found() {
    let trials = trials(Back::Token, "HUGE", "sign");
    let shown = trials.describe();
    assert_eq!(trials.found(), [true; 3], "{shown}");
    assert!(
        shown
            .contains("it asked for a buffer of 9223372036854775807 B for a result of an input of"),
        "{shown}"
    );
}

fn a_device_that_accepts_every_signature_is_found() {
    for &back in back_ends() {
        let trials = trials(back, "LAZY", "verify");
        assert_eq!(trials.found(), [true; 3], "{back:?}: {}", trials.describe());
        let speed = trials.speed.expect("a speed");
        // Enough to find one false acceptance in a thousand, and all were accepted.
        assert!(speed.invalid >= 4603, "{back:?}: {speed:?}");
        assert_eq!(speed.accepted, speed.invalid, "{back:?}: {speed:?}");
        // Few of the operations that it was fast with.
        assert_eq!((speed.failed, speed.wrong), (0, 0), "{back:?}: {speed:?}");
    }
}

fn a_token_that_chooses_its_iv_is_not_wrong() {
    let compiled = Compiled::new();
    let device = compiled.device(Back::Token, "OWN_IV");
    let rows = compiled.start(device, kat(&["aes-128-gcm"])).kat();
    assert!(rows.iter().all(|row| !row.outcome.is_bad()), "{rows:?}");
    let encrypt = rows.iter().find(|row| row.case == "encrypt");
    match &encrypt.expect("a row").outcome {
        KatOutcome::NotOffered(why) => assert!(
            why.starts_with("the token ignores the IV that it is given for CKM_AES_GCM"),
            "{why}"
        ),
        other => panic!("{other:?}"),
    }
    // It decrypts with the given one.
    let passed = rows.iter().filter(|row| row.outcome == KatOutcome::Pass);
    assert!(passed.count() >= 3, "{rows:?}");
}

fn a_token_that_refuses_keys_with_two_usages_offers_its_operations() {
    let compiled = Compiled::new();
    let device = compiled.device(Back::Token, "ONE_USAGE");
    let names = [
        "aes-128-cbc",
        "hmac-sha-256",
        "rsa-2048-pkcs1",
        "ecdsa-p256",
    ];
    let rows = compiled.start(device, kat(&names)).kat();
    for row in &rows {
        let is_good = matches!(row.outcome, KatOutcome::Pass | KatOutcome::NonePublished);
        assert!(is_good, "{row:?}");
    }
    for name in names {
        assert!(rows.iter().any(|row| row.algorithm == name), "{name}");
    }
}

fn a_token_that_refuses_keys_gives_its_reason() {
    let compiled = Compiled::new();
    let device = compiled.device(Back::Token, "NO_KEYS");
    let text = "the token does not accept the key for aes-128-cbc: C_CreateObject returned \
                AttributeValueInvalid";
    let rows = compiled.start(device.clone(), kat(&["aes-128-cbc"])).kat();
    match &rows[..] {
        [row] => assert_eq!(row.outcome, KatOutcome::NotOffered(text.to_owned())),
        other => panic!("{other:?}"),
    }
    let work = speed("aes-128-cbc encrypt", 64, 1, 50);
    let last = compiled.start(device, work).lines().pop();
    assert_eq!(last, Some(Line::NotOffered(text.to_owned())));
}

fn texts_padded_with_zero_bytes_are_trimmed() {
    let compiled = Compiled::new();
    // The spec names the token by its label.
    let device = compiled.device(Back::Token, "NUL");
    let lines = compiled.start(device, kat(&["sha-256"])).lines();
    let Some(Line::Open(facts)) = lines.first() else {
        panic!("{lines:?}");
    };
    let token = ("token".to_owned(), "cipherbench".to_owned());
    assert!(facts.more.contains(&token), "{facts:?}");
    assert!(!format!("{facts:?}").contains("\\0"), "{facts:?}");
}

fn a_limit_of_sessions_is_named_by_whatever_code() {
    let compiled = Compiled::new();
    let device = compiled.device(Back::Token, "FEW_SESSIONS");
    let text = compiled
        .start(device, endless(&["sha-256"], 8, false))
        .refusal();
    assert!(
        text.starts_with("the token has no more sessions (C_OpenSession returned ArgumentsBad"),
        "{text}"
    );
    assert!(text.contains("use fewer threads"), "{text}");
}
