//! How the simulator starts and ends.

use crate::kme::lab::{Lab, wait_for};
use qkd::kme::{Armed, Config, Fault, StartError, start};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// The lab's configuration with `old` replaced by `new`.
fn config(lab: &Lab, old: &str, new: &str) -> Config {
    let path = lab.folder().join("kme.yaml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{old} is not in\n{text}");
    let path = lab.folder().join("other.yaml");
    fs::write(&path, text.replacen(old, new, 1)).unwrap();
    Config::load(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[track_caller]
fn assert_does_not_start(config: &Config, words: &str) -> StartError {
    let Err(error) = start(config) else {
        panic!("it started: {config:?}");
    };
    let message = error.to_string();
    assert!(message.contains(words), "`{words}` is not in: {message}");
    error
}

#[test]
fn a_start_error_is_reported_with_its_place() {
    let lab = Lab::new("{}");
    let taken = lab.simulator().kmes()[1].1.to_string();
    let config_at = config(&lab, "127.0.0.1:0", &taken);
    let error = assert_does_not_start(&config_at, &taken);
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    for (old, new, words) in [
        ("kme-b.pem", "nowhere.pem", "KME kme-b: "),
        ("kme-b.pem", "nowhere.pem", "nowhere.pem"),
        ("kme-b.pem", "kme-b.key", "no certificate"),
        ("kme-b.key", "kme-a.key", "cannot be used together"),
        ("ca.pem", "kme.yaml", "no certificate"),
    ] {
        let error = assert_does_not_start(&config(&lab, old, new), words);
        assert!(matches!(error, StartError::Files { .. }), "{error}");
    }
    // The configuration's reader refuses unknown faults; only starting detects an address in use.
    let taken = lab.simulator().faults().unwrap().to_string();
    let config_faults = config(&lab, "faults: 127.0.0.1:0", &format!("faults: {taken}"));
    assert_does_not_start(&config_faults, &taken);
}

#[test]
fn it_stops_at_once_and_leaves_no_listener() {
    let mut lab = Lab::new("{}");
    let simulator = lab.simulator();
    simulator.arm(
        None,
        Armed {
            delay: Duration::from_secs(60),
            ..Armed::new(Fault::Delay)
        },
    );
    let faults = simulator.faults().unwrap();
    let addresses: Vec<SocketAddr> = simulator
        .kmes()
        .iter()
        .map(|(_, address)| *address)
        .collect();
    // A silent connection, one in the middle of a request, and one whose answer is delayed.
    let silent = TcpStream::connect(addresses[0]).unwrap();
    let mut halfway = TcpStream::connect(faults).unwrap();
    halfway.write_all(b"POST /faults HTTP/1.1\r\nHo").unwrap();
    let waiting = lab
        .curl("gw1", "/api/v1/keys/gw2/status")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if waiting.is_ok() {
        wait_for("the call", || {
            let metrics = metrics(faults);
            let line = "faults_total{kme=\"kme-a\",fault=\"delay\"} 1";
            metrics.contains(line).then_some(())
        });
    }
    let begin = Instant::now();
    lab.stop();
    // Answers in progress have a second; the rest is for a busy machine.
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
    for address in addresses.into_iter().chain([faults]) {
        assert!(
            TcpStream::connect(address).is_err(),
            "{address} is still there"
        );
    }
    drop(silent);
    if let Ok(mut waiting) = waiting {
        assert!(!waiting.wait().unwrap().success());
    }
}

fn metrics(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn many_connections_are_served_in_turn() {
    let lab = Lab::new("{}");
    let address = lab.simulator().faults().unwrap();
    // More than it serves concurrently: silent connections occupy most places, and the last callers
    // wait in the kernel's queue.
    let silent: Vec<_> = (0..255)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let served: Vec<_> = (0..4)
        .map(|_| thread::spawn(move || metrics(address)))
        .collect();
    for metrics in served {
        let metrics = metrics.join().unwrap();
        assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    }
    drop(silent);
}

#[test]
fn the_examples_of_the_documentation_are_configurations() {
    let text = include_str!("../../../../../../docs/kme.md");
    let examples = text.split("```yaml\n").skip(1);
    let examples: Vec<_> = examples
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let config = Config::from_text("docs/kme.md", example);
        config.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    }
}
