//! Trials over HTTP with real servers and clients, every check passing.

use crate::trials::{TestLab, cell, encrypting, kill_once_it_worked};
use journal::record::Outcome;
use plan::{Adapter, HttpClient, HttpServer, HttpTest, HttpVersion, Measurement};
use std::process::ExitCode;
use testbed::NodeId;

const MS: u64 = 1_000_000;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 6] = [
    (
        "nginx_in_clear_and_through_the_encryptor",
        nginx_in_clear_and_through_the_encryptor,
    ),
    ("python_at_a_set_rate", python_at_a_set_rate),
    ("wget2_through_the_encryptor", wget2_through_the_encryptor),
    (
        "short_flows_complete_without_a_server_of_files",
        short_flows_complete_without_a_server_of_files,
    ),
    (
        "a_server_that_is_killed_in_mid_trial_gives_no_figure",
        a_server_that_is_killed_in_mid_trial_gives_no_figure,
    ),
    (
        "more_connections_than_descriptors_give_no_figure",
        more_connections_than_descriptors_give_no_figure,
    ),
];

/// The program on the stations.
pub(crate) fn play() -> ExitCode {
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match http::play(&spec, std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> HttpTest {
    HttpTest {
        connections: 4,
        streams: 1,
        ramp_ns: 200 * MS,
        duration_ns: 800 * MS,
        ..HttpTest::default()
    }
}

fn nginx_in_clear_and_through_the_encryptor() {
    let mut lab = TestLab::build();
    let tests = [
        test(),
        HttpTest {
            version: HttpVersion::Http2,
            tls: true,
            streams: 4,
            ..test()
        },
        HttpTest {
            object_bytes: Some(1024),
            transactions_per_connection: Some(1),
            ..test()
        },
    ];
    for adapter in [Adapter::Direct, encrypting()] {
        for test in tests {
            let cell = cell(adapter.clone(), 1, true, Measurement::Http(test));
            let measured = lab.measured(&cell);
            let found = measured.http().unwrap();
            assert!(found.transactions > 0, "{found:#?}");
            assert_eq!(found.failures(), 0, "{found:#?}");
            let checks = &measured.evidence.checks;
            for name in ["transactions-succeeded", "cipher-link-amount"] {
                assert!(checks.iter().any(|check| check.name == name), "{name}");
            }
            assert!(measured.cpu.station_a_ns > 0 && measured.cpu.station_b_ns > 0);
        }
    }
}

fn python_at_a_set_rate() {
    let mut lab = TestLab::build();
    let test = HttpTest {
        server: HttpServer::Python,
        transactions_per_s: Some(50),
        ..test()
    };
    let cell = cell(Adapter::Direct, 1, true, Measurement::Http(test));
    let found = lab.measured(&cell).http().cloned().unwrap();
    assert_eq!(found.planned, Some(found.attempted));
}

fn wget2_through_the_encryptor() {
    let mut lab = TestLab::build();
    let test = HttpTest {
        client: HttpClient::Wget2,
        ..test()
    };
    let cell = cell(encrypting(), 1, true, Measurement::Http(test));
    let found = lab.measured(&cell).http().cloned().unwrap();
    assert!(found.stored.unwrap().direct_bytes_per_s > 0);
}

fn short_flows_complete_without_a_server_of_files() {
    let mut lab = TestLab::build();
    for (adapter, transactions_per_s) in [(Adapter::Direct, Some(50)), (encrypting(), None)] {
        let test = HttpTest {
            server: HttpServer::Plain,
            object_bytes: Some(100_000),
            connections: 1,
            transactions_per_connection: Some(1),
            transactions_per_s,
            ..test()
        };
        let cell = cell(adapter, 1, true, Measurement::Http(test));
        let found = lab.measured(&cell).http().cloned().unwrap();
        assert!(found.transactions > 0, "{found:#?}");
        // A connection for each flow.
        assert_eq!(found.connections_in_all, found.attempted, "{found:#?}");
        let [times] = &found.objects[..] else {
            panic!("{found:#?}")
        };
        assert!(times.last_byte.iter().all(|bucket| bucket.upto_ns > 0));
    }
}

fn a_server_that_is_killed_in_mid_trial_gives_no_figure() {
    let mut lab = TestLab::build();
    let test = HttpTest {
        duration_ns: 3000 * MS,
        ..test()
    };
    let killed = cell(Adapter::Direct, 1, true, Measurement::Http(test));
    let station = lab.lab.station_pid(NodeId::B);
    let killer = std::thread::spawn(move || kill_once_it_worked(station, "nginx"));
    let outcome = lab.record(&killed).outcome;
    killer.join().unwrap();
    let why = match outcome {
        Outcome::Invalid { reasons, .. } => reasons.join("; "),
        Outcome::Failed { reason } => reason,
        other => panic!("{other:#?}"),
    };
    let is_known = why.contains("transactions-succeeded: ") || why.contains("SIGKILL");
    assert!(is_known, "{why}");
    // The lab is as good as new.
    let whole = cell(Adapter::Direct, 1, true, Measurement::Http(self::test()));
    let measured = lab.measured(&whole);
    assert_eq!(measured.http().unwrap().failures(), 0);
}

fn more_connections_than_descriptors_give_no_figure() {
    let mut lab = TestLab::build();
    let test = HttpTest {
        connections: 65_535,
        ..test()
    };
    let cell = cell(Adapter::Direct, 1, true, Measurement::Http(test));
    let Outcome::Failed { reason } = lab.record(&cell).outcome else {
        panic!("a figure of more connections than ports")
    };
    let is_known = reason.contains("as many ports") || reason.contains("file descriptors");
    assert!(
        is_known && reason.contains("set fewer `connections`"),
        "{reason}"
    );
}
