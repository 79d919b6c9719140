//! The beginning and the end of negotiated keys: first answers, hard lifetimes, and certificates
//! that expire or are replaced.

use crate::namespace::{Namespace, pair};
use crate::negotiated::{await_established, folder, metric, start_both, tunnel};
use crate::tests::{assert_is_nobody, await_that, give_to_nobody, start};
use pki::{Authority, create_certificate};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const EVERY: Duration = Duration::from_secs(2);
const HARD: Duration = Duration::from_secs(6);
const EPOCH: &str = "cipherbench_tunnel_epoch{tunnel=\"0\"}";
const EXPIRED: &str = "cipherbench_keys_expired_total";

fn dropped(namespace: &Namespace, reason: &str) -> u64 {
    let name = format!("cipherbench_dropped_packets_total{{lane=\"0\",reason=\"{reason}\"}}");
    metric(namespace, &name)
}

/// Drops all TCP packets that leave, so that the control channel is cut and the tunnel is not.
fn cut(namespaces: &[Namespace; 2]) {
    for namespace in namespaces {
        namespace.ip("rule add pref 1 ipproto tcp to 192.0.2.0/24 blackhole");
    }
}

fn mend(namespaces: &[Namespace; 2]) {
    for namespace in namespaces {
        namespace.ip("rule delete pref 1");
    }
}

/// Waits for the end of the keys on both sides; then the tunnel drops its packets, and says why.
fn await_expiry(namespaces: &[Namespace; 2]) {
    for namespace in namespaces {
        await_that("the keys are expired", || metric(namespace, EXPIRED) == 1);
    }
    assert!(!namespaces[0].reaches("10.2.0.1"));
    for namespace in namespaces {
        assert_eq!(metric(namespace, EPOCH), 0);
        assert_eq!(metric(namespace, "cipherbench_tunnels_established"), 0);
    }
    await_that("packets are dropped for this reason", || {
        dropped(&namespaces[0], "keys_expired") > 0
    });
}

/// The side that listens can answer as soon as the side that connects has its keys.
pub(crate) fn the_first_answer_of_a_new_tunnel_is_not_lost() {
    for _ in 0..5 {
        let (folder, namespaces) = (folder(), pair());
        let gateways = start_both(folder.path(), &namespaces, "policy: pqc", "");
        await_that("the connecting side has keys", || {
            metric(&namespaces[0], "cipherbench_tunnels_established") == 1
        });
        assert!(namespaces[0].reaches("10.2.0.1"));
        let no_keys = "cipherbench_dropped_packets_total{lane=\"0\",reason=\"no_keys\"}";
        assert_eq!(metric(&namespaces[1], no_keys), 0);
        for gateway in gateways {
            gateway.stop();
        }
    }
}

/// Waits for the next epoch; returns a time shortly before it.
fn await_rollover(namespace: &Namespace) -> Instant {
    let before = metric(namespace, EPOCH);
    let mut last = Instant::now();
    await_that("there is a rollover", || {
        let now = Instant::now();
        let same = metric(namespace, EPOCH) == before;
        if same {
            last = now;
        }
        !same
    });
    last
}

pub(crate) fn without_a_control_channel_a_tunnel_ends_at_its_hard_lifetime() {
    let (folder, namespaces) = (folder(), pair());
    let more = "every: 2 s, hard: 6 s, grace: 100 ms";
    let gateways = start_both(folder.path(), &namespaces, more, "");
    await_established(&namespaces);
    // The keys of the last epoch before the cut are derived `EVERY` after the one before it, or
    // later.
    let begun = loop {
        let begun = await_rollover(&namespaces[0]) + EVERY;
        await_rollover(&namespaces[0]);
        let epoch = metric(&namespaces[0], EPOCH);
        cut(&namespaces);
        if [0, 1].map(|side| metric(&namespaces[side], EPOCH)) == [epoch; 2] {
            break begun;
        }
        mend(&namespaces);
    };
    // On a busy machine the keys may end before the ping does.
    let passes = namespaces[0].reaches("10.2.0.1");
    assert!(passes || metric(&namespaces[0], EXPIRED) > 0);
    await_that("the keys are expired", || {
        metric(&namespaces[0], EXPIRED) == 1
    });
    let lived = begun.elapsed();
    assert!(lived >= HARD, "the keys ended after {lived:?}");
    await_expiry(&namespaces);
    mend(&namespaces);
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    for gateway in gateways {
        let output = gateway.stop();
        assert!(output.contains("the hard lifetime of its keys"), "{output}");
    }
}

/// Replaces gw2's certificate by one that is valid for this time.
fn issue(folder: &Path, valid_for: Duration) {
    let now = SystemTime::now();
    let valid = now - Duration::from_secs(3600)..now + valid_for;
    let texts = Authority::load(folder)
        .unwrap()
        .issue("gw2", valid)
        .unwrap();
    let key = folder.join("gw2.key");
    fs::write(folder.join("gw2.pem"), &texts.certificate).unwrap();
    fs::write(&key, texts.key.as_bytes()).unwrap();
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
}

pub(crate) fn a_tunnel_ends_with_a_certificate_and_a_new_one_brings_it_up() {
    let (folder, namespaces) = (folder(), pair());
    issue(folder.path(), Duration::from_secs(12));
    let [gw1, gw2] = start_both(folder.path(), &namespaces, "hard: 2 h", "");
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    let expiry = "cipherbench_certificate_expiry_timestamp_seconds";
    let before = metric(&namespaces[1], expiry);
    await_expiry(&namespaces);
    issue(folder.path(), Duration::from_secs(3600));
    gw2.reload();
    await_established(&namespaces);
    assert!(namespaces[0].reaches("10.2.0.1"));
    assert!(metric(&namespaces[1], expiry) > before + 3000);
    gw1.stop();
    let output = gw2.stop();
    for line in [
        "the certificate of this gateway expires in ",
        "the certificate of this gateway has expired",
        "the certificate of this gateway is in use, and valid for another ",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
}

pub(crate) fn a_service_with_certificates_runs_as_its_user() {
    let (folder, namespaces) = (folder(), pair());
    let rest = "user: nobody\n";
    // Root's files.
    let config = tunnel(0, "every: 1 h", rest);
    let Err(output) = start(0, &namespaces[0], folder.path(), &config) else {
        panic!("it came up")
    };
    assert!(output.contains("cannot be read by `nobody`"), "{output}");
    assert!(output.contains("chown nobody"), "{output}");
    let Some(()) = give_to_nobody(folder.path()) else {
        return;
    };
    let gateways = start_both(folder.path(), &namespaces, "every: 1 h", rest);
    await_established(&namespaces);
    gateways.iter().for_each(assert_is_nobody);
    gateways[0].rekey();
    let rekeyed = |namespace: &Namespace, count| {
        await_that("there are new keys", || metric(namespace, EPOCH) == count);
    };
    rekeyed(&namespaces[0], 2);
    for name in ["gw2.pem", "gw2.key"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    create_certificate(folder.path(), "gw2", folder.path(), 60).unwrap();
    give_to_nobody(folder.path());
    gateways[1].reload();
    rekeyed(&namespaces[1], 3);
    assert!(namespaces[0].reaches("10.2.0.1"));
    for gateway in gateways {
        gateway.stop();
    }
}
