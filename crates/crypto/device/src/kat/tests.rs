//! Complete functional trials and the faults that they must find.

use super::*;
use crate::faulty::{Faulty, How};
use crate::model::Modelled;
use crate::{cpu, openssl};
use catalog::device::Facts;
use catalog::device::{DeviceFault, DeviceModel};
use std::path::Path;

/// All rows of a device.
fn rows(device: &dyn Device, algorithms: &[&str]) -> Vec<KatRow> {
    let cpu = cpu::open(None).expect("our own engines");
    let mut rows = Vec::new();
    let algorithms: Vec<_> = algorithms.iter().map(|&name| name.to_owned()).collect();
    let mut report = |line| {
        if let Line::Kat(row) = line {
            rows.push(row);
        }
        true
    };
    run(device, &cpu, &Keys::new(7), &algorithms, &mut report).expect("a session");
    rows
}

/// Rows with a wrong result or an error.
fn faults(rows: &[KatRow]) -> Vec<&KatRow> {
    let fault = |row: &&KatRow| {
        !matches!(
            row.outcome,
            KatOutcome::Pass | KatOutcome::NotOffered(_) | KatOutcome::NonePublished
        )
    };
    rows.iter().filter(fault).collect()
}

/// Names of the algorithms that are offered, in part or in full.
fn offered(rows: &[KatRow]) -> Vec<&str> {
    let mut names: Vec<_> = rows
        .iter()
        .filter(|row| row.outcome == KatOutcome::Pass)
        .map(|row| row.algorithm.as_str())
        .collect();
    names.dedup();
    names
}

/// All algorithms except most of RSA with 3072 and 4096 bits, which takes most of the time and does
/// not differ from shorter keys.
fn quick() -> Vec<&'static str> {
    let names = catalog::ALGORITHMS.iter().map(|algorithm| algorithm.name());
    let long = |name: &&str| name.starts_with("rsa-3072") || name.starts_with("rsa-4096");
    names
        .filter(|name| !long(name) || matches!(*name, "rsa-3072-pss" | "rsa-4096-oaep"))
        .collect()
}

#[test]
fn our_own_engines_pass_for_every_algorithm() {
    let device = cpu::open(None).expect("our own engines");
    let rows = rows(&device, &quick());
    assert_eq!(faults(&rows), [&rows[0]; 0]);
    assert_eq!(offered(&rows), quick());
    let not_offered = rows
        .iter()
        .find(|row| matches!(row.outcome, KatOutcome::NotOffered(_)));
    assert_eq!(not_offered, None);
}

/// A model caches results of repeated inputs; vectors have equal inputs under different keys.
#[test]
fn a_modelled_device_passes_for_every_algorithm() {
    let model = DeviceModel {
        rate_bps: 1_000_000_000_000,
        latency_ns: 0,
        operation_ns: 0,
        parallel: 1,
        queue: 1,
        errors_ppm: 0,
        fault: DeviceFault::Fails,
    };
    let inside = cpu::open(None).expect("our own engines");
    let device = Modelled::open(&model, Box::new(inside)).expect("a model");
    let rows = rows(&device, &quick());
    assert_eq!(faults(&rows), [&rows[0]; 0]);
    assert_eq!(offered(&rows), quick());
}

#[test]
fn openssl_passes_for_its_offered_operations() {
    let device = openssl::open(None, None, None).expect("OpenSSL's own provider");
    let rows = rows(&device, &quick());
    assert_eq!(faults(&rows), [&rows[0]; 0]);
    let offered = offered(&rows);
    for name in [
        "md5",
        "hmac-sha-256",
        "aes-256-cmac",
        "aes-128-cbc-pad",
        "aes-192-gcm",
    ] {
        assert!(offered.contains(&name), "{name}");
    }
    for name in [
        "rsa-1024-pkcs1",
        "rsa-4096-oaep",
        "ecdsa-secp256k1",
        "ed25519",
    ] {
        assert!(offered.contains(&name), "{name}");
    }
    assert!(!offered.contains(&"magma-ctr"));
}

#[test]
fn a_provider_offers_only_its_own_operations() {
    let device = openssl::open(Some("legacy"), None, None).expect("it comes with OpenSSL");
    let rows = rows(&device, &[]);
    assert_eq!(faults(&rows), [&rows[0]; 0]);
    assert_eq!(offered(&rows), ["des-cbc"]);
}

/// Whether the distribution's GOST engine or provider is installed.
fn installed(folder: &str, file: &str) -> bool {
    let place = Path::new("/usr/lib/x86_64-linux-gnu")
        .join(folder)
        .join(file);
    let exists = place.exists();
    if !exists {
        testing::lacks(
            "known answers of the GOST engine and provider",
            place.display(),
            "apt install libengine-gost-openssl",
        );
    }
    exists
}

/// Algorithms that both the GOST engine and the GOST provider offer.
const GOST: [&str; 11] = [
    "streebog-256",
    "streebog-512",
    "magma-cbc",
    "magma-ctr",
    "magma-ctr-acpkm",
    "magma-omac",
    "kuznyechik-ecb",
    "kuznyechik-cbc",
    "kuznyechik-ctr",
    "kuznyechik-ctr-acpkm",
    "kuznyechik-omac",
];

/// One test for both, since the provider uses the engine's ciphers for its MACs once the engine is
/// loaded.
#[test]
fn the_distributions_gost_provider_and_engine_agree_with_ours() {
    if !installed("ossl-modules", "gostprov.so") || !installed("engines-3", "gost.so") {
        return;
    }
    // Twice: a failed device is reopened.
    for _ in 0..2 {
        let device = openssl::open(Some("gostprov"), None, None).expect("the provider");
        let rows = rows(&device, &[]);
        assert_eq!(faults(&rows), [&rows[0]; 0]);
        let mut offered = offered(&rows);
        // It looks for the ciphers of its MACs in OpenSSL's default context, where they are only
        // once the engine was loaded.
        offered.retain(|name| !name.ends_with("-omac"));
        let others = GOST.iter().filter(|name| !name.ends_with("-omac"));
        assert_eq!(offered, others.copied().collect::<Vec<_>>());
    }
    for _ in 0..2 {
        let device = openssl::open(None, Some("gost"), None).expect("the engine");
        let rows = rows(&device, &[]);
        let mut faults = faults(&rows);
        // Kuznyechik's OMAC is wrong in its version 3.0.1: `openssl dgst -engine gost -mac
        // kuznyechik-mac` prints the same result as here for the example of GOST R 34.13-2015
        // A.1.6, which differs from the standard.
        faults.retain(|row| row.algorithm != "kuznyechik-omac");
        assert_eq!(faults, [&rows[0]; 0]);
        let mut offered = offered(&rows);
        offered.retain(|&name| name != "kuznyechik-omac");
        let own = ["hmac-streebog-256", "hmac-streebog-512"];
        let expected = GOST
            .iter()
            .chain(&own)
            .filter(|&&name| name != "kuznyechik-omac");
        for name in expected.clone() {
            assert!(offered.contains(name), "{name}");
        }
        assert_eq!(offered.len(), expected.count(), "{offered:?}");
    }
}

/// Whether engines for tests can be compiled.
fn compiles_engines() -> bool {
    testing::has_header(
        "engines of OpenSSL",
        "openssl/engine.h",
        "apt install libssl-dev",
    )
}

/// The engine of `tests/data/engine.c`, compiled with these flags.
fn engine_for_trials(flags: &[&str]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let module = folder.path().join("engine.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/engine.c");
    let mut cc = std::process::Command::new("cc");
    // After the source: a library before it would not be linked.
    cc.args(["-shared", "-fPIC", "-o"])
        .args([&module, &source])
        .args(flags);
    assert!(cc.status().expect("cc").success(), "{cc:?}");
    (folder, module)
}

#[test]
fn an_engine_with_methods_in_its_keys_is_used_and_not_openssl() {
    if !compiles_engines() {
        return;
    }
    let (_folder, module) = engine_for_trials(&["-lcrypto"]);
    let device = openssl::open(None, Some("trial"), Some(&module)).expect("the engine");
    assert_eq!(device.facts().name, "Engine for trials");
    let names = [
        "aes-128-cbc",
        "aes-128-ctr",
        "sha-256",
        "rsa-2048-pkcs1",
        "ecdsa-p256",
        "ed25519",
    ];
    let rows = rows(&device, &names);
    assert_eq!(faults(&rows), [&rows[0]; 0]);
    assert_eq!(
        offered(&rows),
        ["aes-128-cbc", "rsa-2048-pkcs1", "ecdsa-p256", "ed25519"]
    );
}

#[test]
fn a_module_that_does_not_name_libcrypto_finds_it() {
    if !compiles_engines() {
        return;
    }
    let (_folder, module) = engine_for_trials(&[]);
    let device = openssl::open(None, Some("trial"), Some(&module)).expect("the engine");
    assert_eq!(faults(&rows(&device, &["aes-128-cbc"])), [] as [&KatRow; 0]);
}

#[test]
fn an_engine_with_occasional_wrong_bytes_is_detected() {
    if !compiles_engines() {
        return;
    }
    let (_folder, module) = engine_for_trials(&["-DLIES", "-lcrypto"]);
    let device = openssl::open(None, Some("liar"), Some(&module)).expect("the engine");
    let rows = rows(&device, &["aes-128-cbc"]);
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|row| match &row.outcome {
            KatOutcome::Wrong {
                first_differing, ..
            } => Some((row.case.as_str(), *first_differing)),
            _ => None,
        })
        .collect();
    // The fourth text: the second run of the second input.
    let found = [
        ("vectors", Some(15)),
        ("device encrypts, CPU decrypts", Some(15)),
        ("CPU encrypts, device decrypts", Some(15)),
    ];
    assert_eq!(wrong.len(), found.len(), "{rows:?}");
    assert_eq!(wrong[1..], found[1..]);
}

/// libcrypto itself would compute it right.
#[test]
fn ed25519_of_an_engine_is_computed_by_the_engine() {
    if !compiles_engines() {
        return;
    }
    let (_folder, module) = engine_for_trials(&["-DLIES", "-lcrypto"]);
    let device = openssl::open(None, Some("liar"), Some(&module)).expect("the engine");
    let rows = rows(&device, &["ed25519"]);
    let signed = rows.iter().find(|row| row.case.starts_with("device signs"));
    let signed = &signed.expect("it signs").outcome;
    assert!(
        matches!(
            signed,
            KatOutcome::Wrong {
                first_differing: Some(63),
                ..
            }
        ),
        "{rows:?}"
    );
}

/// The buffer has the right result, but the device announces a longer one.
#[test]
fn a_result_announced_longer_than_its_buffer_is_wrong() {
    if !compiles_engines() {
        return;
    }
    let (_folder, module) = engine_for_trials(&["-DLONG", "-lcrypto"]);
    let device = openssl::open(None, Some("long"), Some(&module)).expect("the engine");
    let operation = Operation::parse("ed25519 sign").expect("it is known");
    let keys = Keys::new(0);
    let session = device.session().expect("a session");
    // It is tried when the job is prepared.
    let error = session
        .job(operation, &keys)
        .map(drop)
        .expect_err("it is wrong");
    let text = "it announced a result of 80 B in a buffer of 64 B";
    assert_eq!(error, DeviceError::Wrong(text.to_owned()));
    let rows = rows(&device, &["ed25519"]);
    let signed = rows.iter().find(|row| row.case == "sign").expect("a row");
    let KatOutcome::Wrong { detail, .. } = &signed.outcome else {
        panic!("{rows:?}");
    };
    assert_eq!(detail, text);
}

/// The last error says only that a module cannot be loaded or started.
#[test]
fn the_cause_of_an_error_of_libcrypto_is_named() {
    if !compiles_engines() {
        return;
    }
    let error = |flag: &str, provider: bool| {
        let (_folder, module) = engine_for_trials(&[flag, "-lcrypto"]);
        let opened = if provider {
            openssl::open(Some("trial"), None, Some(&module))
        } else {
            openssl::open(None, Some("trial"), Some(&module))
        };
        opened.err().expect("no device").to_string()
    };
    let absent = error("-DABSENT", false);
    assert!(absent.contains("(no card in slot 3); then "), "{absent}");
    assert!(absent.contains("check the card, its driver"), "{absent}");
    for provider in [false, true] {
        let incomplete = error("-DINCOMPLETE", provider);
        let cause = "undefined symbol: function_that_nobody_has)";
        assert!(
            incomplete.contains(cause) && incomplete.contains("`ldd -r MODULE`"),
            "{incomplete}"
        );
    }
}

/// A device that changes one byte of every result, from the `after`th on.
struct Liar(Cpu, u32);

impl Device for Liar {
    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(LiarsThread(self.0.session()?, self.1)))
    }
}

struct LiarsThread<'a>(Box<dyn Session + 'a>, u32);

impl Session for LiarsThread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        Ok(Box::new(Lie(self.0.job(operation, keys)?, self.1)))
    }
}

struct Lie<'a>(Box<dyn Job + 'a>, u32);

impl Job for Lie<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let authentic = self.0.run(input, output)?;
        if self.1 > 0 {
            self.1 -= 1;
            return Ok(authentic);
        }
        match output.last_mut() {
            Some(last) => {
                *last ^= 1;
                Ok(authentic)
            }
            // There is no byte to change: change the verdict.
            None => Ok(!authentic),
        }
    }
}

#[test]
fn a_wrong_byte_is_found_in_every_row() {
    for (after, what) in [(0, "always"), (1, "but for the first")] {
        let device = Liar(cpu::open(None).expect("our own engines"), after);
        let names = [
            "sha-256",
            "hmac-sha-1",
            "aes-128-ctr",
            "aes-256-gcm",
            "magma-mgm",
        ];
        let public = [
            "rsa-2048-pkcs1",
            "rsa-2048-oaep",
            "ecdsa-p256",
            "ed25519",
            "ml-kem-768",
        ];
        let rows = rows(&device, &[&names[..], &public].concat());
        assert!(rows.len() > 25, "{}", rows.len());
        // For RSA padding and KEMs any other result is a refusal.
        let lies =
            |row: &&KatRow| row.case != "invalid, decrypt" || row.outcome != KatOutcome::Pass;
        for row in rows.iter().filter(lies) {
            assert!(
                matches!(row.outcome, KatOutcome::Wrong { .. }),
                "{what}: {row:?}"
            );
        }
    }
    let device = Liar(cpu::open(None).expect("our own engines"), 0);
    let rows = rows(&device, &["sha-256"]);
    let KatOutcome::Wrong {
        input,
        first_differing,
        detail,
    } = &rows[0].outcome
    else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (input.as_str(), *first_differing),
        ("CAVP SHA256ShortMsg, 0 B, digest", Some(31))
    );
    assert_eq!(detail, "from byte 31: 54, expected 55");
}

#[test]
fn a_refusal_may_be_an_error_but_not_an_occasional_one() {
    let names = ["aes-128-gcm", "ecdsa-p256", "rsa-2048-oaep"];
    let refuses = rows(&Faulty::new(How::RefusesByErrors), &names);
    assert_eq!(faults(&refuses), [&refuses[0]; 0]);
    assert_eq!(offered(&refuses), names);

    let dies = rows(&Faulty::new(How::DiesOfInvalid), &["chacha20-poly1305"]);
    let errors = dies
        .iter()
        .filter(|row| matches!(row.outcome, KatOutcome::Error(_)));
    assert!(errors.count() >= 1, "{dies:?}");
    assert!(
        dies.iter()
            .all(|row| row.case != "invalid, decrypt" || row.outcome != KatOutcome::Pass),
        "{dies:?}"
    );

    let once = rows(&Faulty::new(How::FailsOnce), &["kuznyechik-ecb"]);
    let [fault] = faults(&once)[..] else {
        panic!("{once:?}");
    };
    let KatOutcome::Error(text) = &fault.outcome else {
        panic!("{fault:?}");
    };
    assert!(text.contains("does not fail every time"), "{text}");
}

#[test]
fn an_operation_that_stops_being_offered_does_not_pass() {
    let rows = rows(&Faulty::new(How::NotOfferedAbove(100)), &["sha-256"]);
    let outcome = |case: &str| {
        let row = rows.iter().find(|row| row.case == case);
        &row.unwrap_or_else(|| panic!("no {case}: {rows:?}")).outcome
    };
    // Vectors may have lengths that a device does not support.
    assert_eq!(*outcome("vectors"), KatOutcome::Pass);
    let text = "not offered after 38 inputs: more than 100 B".to_owned();
    assert_eq!(*outcome("sizes"), KatOutcome::Error(text));
}

#[test]
fn progress_is_reported_before_each_row() {
    let device = cpu::open(None).expect("our own engines");
    let (mut trying, mut seen) = (String::new(), Vec::new());
    let names = ["sha-256", "magma-ctr-acpkm"].map(str::to_owned);
    let mut report = |line| {
        match line {
            Line::Trying(text) => {
                trying.clone_from(&text);
                seen.push(text);
            }
            Line::Kat(row) => {
                // Followed by the number of inputs where the row took long.
                let row = format!("{} {}", row.algorithm, row.case);
                assert!(trying.starts_with(&row), "{trying}, {row}");
            }
            other => panic!("{other:?}"),
        }
        true
    };
    run(&device, &device, &Keys::new(7), &names, &mut report).expect("a session");
    let wanted = [
        "sha-256",
        "sha-256 vectors",
        "sha-256 empty",
        "sha-256 sizes",
    ];
    assert_eq!(seen[..4], wanted);
    assert!(seen.contains(&"magma-ctr-acpkm".to_owned()), "{seen:?}");
    let rows = rows(&device, &["magma-ctr-acpkm"]);
    assert_eq!(rows[0].case, "vectors");
    assert_eq!(rows[0].outcome, KatOutcome::NonePublished);
}

#[test]
fn errors_of_opening_give_advice() {
    let error = |provider, engine, module: Option<&str>| {
        openssl::open(provider, engine, module.map(Path::new))
            .err()
            .expect("no device")
            .to_string()
    };
    let missing = error(Some("nosuch"), None, None);
    assert!(
        missing.contains("\"nosuch\"") && missing.contains("check its name"),
        "{missing}"
    );
    let missing = error(None, Some("nosuch"), None);
    assert!(missing.contains("the engine \"nosuch\""), "{missing}");
    let missing = error(None, Some("x"), Some("/nosuch/x.so"));
    assert_eq!(
        missing,
        "there is no module /nosuch/x.so; check the path of the device's module"
    );
    let both = error(Some("default"), Some("gost"), None);
    assert!(both.contains("not both"), "{both}");
    let not_a_module = error(Some("hosts"), None, Some("/etc/hosts"));
    assert!(not_a_module.contains("/etc/hosts"), "{not_a_module}");
    let kernel = cpu::open(Some("mmx")).err().expect("no kernel").to_string();
    assert!(kernel.starts_with("this machine has no GOST kernel \"mmx\"; it has: portable"));
    let cpu = cpu::open(None).expect("our own engines");
    let names = ["sha256".to_owned()];
    let error = run(&cpu, &cpu, &Keys::new(0), &names, &mut |_| true).expect_err("no such name");
    assert!(error.to_string().contains("did you mean sha-256?"));
}
