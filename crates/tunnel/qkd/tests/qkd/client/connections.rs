//! Connections: reuse, replacement and timeouts.

use crate::client::requests::{container, status};
use crate::client::server::{Reply, Server, http, json};
use crate::client::setup::{run, url};
use qkd::types::KeyRequest;
use qkd::{Failure, Kme};
use std::net::TcpListener;
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// Timeout of calls that must time out.
const SHORT: Duration = Duration::from_millis(300);

#[test]
fn a_connection_serves_many_calls() {
    let server = Server::new(|_| json(&status("gw1")));
    let kme = server.client();
    run(async {
        for _ in 0..20 {
            kme.status("gw2").await.unwrap();
        }
    });
    assert_eq!((server.connections(), server.requests().len()), (1, 20));
}

#[test]
fn a_connection_that_the_kme_has_closed_is_replaced() {
    // It hangs up after each answer, without announcing it.
    let answer = http("200 OK", "application/json", &status("gw1"));
    let server = Server::new(move |_| Reply::Last(answer.clone()));
    let kme = server.client();
    run(async {
        for _ in 0..5 {
            kme.status("gw2").await.unwrap();
        }
    });
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_call_on_a_stale_connection_is_repeated() {
    // It reads the second request and hangs up without an answer, as if it had closed just before.
    let server = Server::new(|request| match (request.connection, request.number) {
        (0, 0) => json(&container(&[(
            "bc490419-7d60-487f-adc1-4ddcc177c139",
            "AQI=",
        )])),
        (0, _) => Reply::Last(String::new()),
        _ => json(&container(&[(
            "0a782fb5-3434-48fe-aa4d-14f41d46cf92",
            "AwQ=",
        )])),
    });
    let kme = server.client();
    run(async {
        let request = KeyRequest::new(1, 16);
        kme.new_keys("gw2", &request).await.unwrap();
        let keys = kme.new_keys("gw2", &request).await.unwrap();
        assert_eq!(&keys[0].key[..], [3, 4]);
    });
    assert_eq!((server.connections(), server.requests().len()), (2, 3));
}

#[test]
fn each_runtime_has_its_own_connections() {
    let server = Server::new(|_| json(&status("gw1")));
    let kme = server.client();
    for _ in 0..2 {
        run(kme.status("gw2")).unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (2, 2));
}

#[test]
fn concurrent_calls_do_not_wait_for_each_other() {
    let both = Arc::new(Barrier::new(2));
    let server = Server::new(move |_| {
        // Passed only when the other request has arrived as well.
        both.wait();
        json(&status("gw1"))
    });
    let kme = server.client();
    run(async {
        let other = tokio::spawn({
            let kme = kme.clone();
            async move { kme.status("gw2").await }
        });
        kme.status("gw3").await.unwrap();
        other.await.unwrap().unwrap();
    });
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_slow_answer_is_abandoned_and_does_not_reach_the_next_call() {
    let server = Server::new(|request| match request.connection {
        0 => Reply::Silence,
        _ => json(&status("gw1")),
    });
    let mut setup = server.setup();
    setup.timeout = SHORT;
    let hasty = Kme::new(&setup).unwrap();
    let error = run(hasty.status("gw2")).unwrap_err();
    let Failure::Slow { doing, limit } = error.failure else {
        panic!("{error}");
    };
    assert!(doing == "the call" && limit == SHORT || doing == "connecting");
    run(async {
        server.client().status("gw2").await.unwrap();
    });
}

#[test]
fn a_slow_body_is_abandoned() {
    let server =
        Server::new(|_| Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_owned()));
    let mut setup = server.setup();
    setup.timeout = SHORT;
    let error = run(Kme::new(&setup).unwrap().status("gw2")).unwrap_err();
    assert!(matches!(error.failure, Failure::Slow { .. }), "{error}");
}

#[test]
fn a_silent_server_times_out() {
    let server = Server::new(|_| Reply::Silence);
    // The kernel accepts connections for a listener without a server.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut setup = server.files.setup(&url(silent.local_addr().unwrap()));
    setup.timeout = SHORT;
    let error = run(Kme::new(&setup).unwrap().status("gw2")).unwrap_err();
    let connecting = Failure::Slow {
        doing: "connecting",
        limit: SHORT / 2,
    };
    assert_eq!(error.failure, connecting, "{error}");
}

#[test]
fn a_kme_that_is_down_is_reported_and_found_when_it_is_up() {
    let server = Server::new(|_| json(&status("gw1")));
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = server.files.setup(&url(port.local_addr().unwrap()));
    drop(port);
    let error = run(Kme::new(&setup).unwrap().status("gw2")).unwrap_err();
    assert!(
        matches!(error.failure, Failure::Unreachable { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("is the KME running"), "{error}");
    run(server.client().status("gw2")).unwrap();
}
