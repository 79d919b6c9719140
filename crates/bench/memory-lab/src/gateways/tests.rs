use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::time::{Duration, Instant};

fn dut(adapter: Adapter) -> Dut {
    Dut::new("dut", adapter)
}

fn encryptors() -> Gateways {
    let adapter = Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm));
    Gateways::start(&dut(adapter), Direction::Both, 1500).unwrap()
}

/// References that live as long as the gateways' threads.
fn held(gateways: &Gateways) -> Vec<Weak<Counters>> {
    let counters = gateways.counters.iter();
    counters
        .map(|(_, counters)| Arc::downgrade(counters))
        .collect()
}

fn assert_gone(held: &[Weak<Counters>]) {
    assert!(held.iter().all(|counters| counters.strong_count() == 0));
}

#[test]
fn gateways_that_are_not_stopped_end_on_drop() {
    let gateways = encryptors();
    let held = held(&gateways);
    assert_eq!(held.len(), 2);
    drop(gateways);
    assert_gone(&held);
}

#[test]
fn a_panic_in_a_procedure_leaves_no_gateway_behind() {
    let gateways = encryptors();
    let held = held(&gateways);
    let procedure = catch_unwind(AssertUnwindSafe(move || {
        let _measured = gateways;
        panic!("a procedure fails");
    }));
    assert!(procedure.is_err());
    assert_gone(&held);
}

#[test]
fn when_one_thread_has_failed_the_others_are_waited_for_all_the_same() {
    let dut = dut(Adapter::STRAIGHT);
    let mut gateways = Gateways::start(&dut, Direction::Both, 1500).unwrap();
    let fails = || Err(io::Error::other("the ring is gone"));
    gateways
        .threads
        .push(Thread::start("fails", fails).unwrap());
    let (stop, works) = (gateways.stop.clone(), Arc::new(()));
    let held = Arc::downgrade(&works);
    let waits = move || {
        let _works = works;
        wait_readable(&[stop.as_fd()], None).map(|_| ())
    };
    gateways
        .threads
        .push(Thread::start("waits", waits).unwrap());
    let error = gateways.stop(&dut).unwrap_err();
    assert!(error.to_string().contains("the ring is gone"), "{error}");
    assert_eq!(held.strong_count(), 0);
}

#[test]
fn gateways_tell_what_they_were_built_with() {
    let encryptor = Encryptor {
        workers: 3,
        tunnels: 7,
        aggregate: true,
        busy_poll: true,
        ..Encryptor::new(Suite::Aes128Gcm)
    };
    let adapter = Adapter::Cipherbench(encryptor);
    let gateways = Gateways::start(&dut(adapter), Direction::Both, 1500).unwrap();
    for (key, expected) in [
        ("suite", "aes-128-gcm"),
        ("lanes", "3"),
        ("tunnels", "7"),
        ("mode", "l3"),
        ("aggregate", "on"),
        ("busy_poll", "on"),
        ("keys", "static"),
    ] {
        for gateway in ["gw1", "gw2"] {
            let fact = &gateways.facts[&format!("{gateway}/{key}")];
            assert_eq!(fact, expected, "{gateway} {key}");
        }
    }
}

#[test]
fn a_gateway_that_polls_works_without_a_packet() {
    let adapter = Adapter::Cipherbench(Encryptor {
        busy_poll: true,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    let gateways = Gateways::start(&dut(adapter), Direction::Encrypt, 1500).unwrap();
    let late = Instant::now() + Duration::from_secs(60);
    while gateways.cpu_ns() < 20_000_000 {
        assert!(Instant::now() < late, "it waits for packets");
        thread::yield_now();
    }
}

#[test]
fn keys_are_in_a_folder_for_this_user_alone_whatever_the_umask_allows() {
    let keys = Keys::make().unwrap();
    let folder = keys.path(0).parent().unwrap().to_owned();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&folder), 0o700);
    for side in [0, 1] {
        assert_eq!(mode(&keys.path(side)), 0o600);
    }
}
