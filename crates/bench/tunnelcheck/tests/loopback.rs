//! Both ends over the loopback interface, which needs no privilege.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use testbed::Interrupt;
use tunnelcheck::{CheckError, Listener, Outcome, Question, Seal, Token, ask};

const WAIT: Duration = Duration::from_secs(60);

fn here() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn question<'a>(peer: SocketAddr, token: &'a Token, interrupt: &'a Interrupt) -> Question<'a> {
    Question {
        peer,
        token,
        seconds: 2,
        offloads: false,
        interrupt,
        notice: |_| (),
    }
}

#[test]
fn a_check_is_made_once() {
    let (token, interrupt) = (Token::new().unwrap(), Interrupt::new());
    let listener = Listener::open(here(), token.clone()).unwrap();
    let peer = listener.address();
    let listening = thread::spawn(move || listener.serve(WAIT, &Interrupt::new(), |_| ()));
    let findings = ask(&question(peer, &token, &interrupt)).unwrap();
    listening.join().unwrap().unwrap();
    assert_eq!(findings.mtu.from_here, findings.mtu.to_here);
    assert!(findings.mtu.from_here.unwrap().passed_bytes > 1500);
    assert!(findings.idle.unwrap().p50_ns > 0);
    for stream in [findings.streams.from_here, findings.streams.to_here] {
        let stream = stream.unwrap();
        assert_eq!(stream.receiver.second_bytes.len(), 2);
        assert!(stream.receiver.second_bytes[1] > 0);
        assert!(stream.round_trips.unwrap().sent > 5);
    }
    let Seal::Unknown { reason } = findings.seal.from_here else {
        panic!("nothing leaves this host");
    };
    assert_eq!(reason, "the other end is this host: nothing leaves it");
    let again = ask(&question(peer, &token, &interrupt)).unwrap_err();
    assert!(matches!(again, CheckError::NoListener { .. }), "{again}");
}

#[test]
fn whoever_has_no_token_is_refused_and_the_listener_goes_on() {
    let (token, interrupt) = (Token::new().unwrap(), Interrupt::new());
    let listener = Listener::open(here(), token.clone()).unwrap();
    let peer = listener.address();
    let (said, notices) = mpsc::channel();
    let stop = Interrupt::new();
    let stopping = stop.clone();
    let listening = thread::spawn(move || {
        listener.serve(WAIT, &stopping, |text| {
            said.send(text.to_owned()).unwrap();
        })
    });
    let wrong = Token::new().unwrap();
    let refused = ask(&question(peer, &wrong, &interrupt)).unwrap_err();
    assert!(matches!(refused, CheckError::WrongToken(_)), "{refused}");
    assert_eq!(refused.outcome(), Outcome::Mistake);
    assert!(notices.recv().unwrap().ends_with("it has another token\n"));
    // Requests without a token are not answered.
    for line in [
        "{\"ask\":\"mtu\"}\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
        "x".repeat(10_000),
        "{\"ask\":\"hello\",\"version\":9,\"token\":\"\"}\n".to_owned(),
    ] {
        let mut stranger = TcpStream::connect(peer).unwrap();
        stranger.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        // A connection that is reset has no answer either.
        let _ = stranger.read_to_string(&mut answer);
        assert!(
            answer.is_empty() || answer.contains("wrong-token"),
            "{answer}"
        );
        assert!(notices.recv().unwrap().starts_with("refused 127.0.0.1: "));
    }
    let stranger = UdpSocket::bind(here()).unwrap();
    stranger.send_to(&[0; 100], peer).unwrap();
    stop.flag()
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let ended = listening.join().unwrap().unwrap_err();
    assert_eq!(ended.outcome(), Outcome::Interrupted);
}

#[test]
fn an_end_that_goes_away_ends_the_other_one() {
    let (token, interrupt) = (Token::new().unwrap(), Interrupt::new());
    let listener = Listener::open(here(), token.clone()).unwrap();
    let peer = listener.address();
    let listening = thread::spawn(move || listener.serve(WAIT, &Interrupt::new(), |_| ()));
    interrupt
        .flag()
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let ended = ask(&question(peer, &token, &interrupt)).unwrap_err();
    assert_eq!(ended.outcome(), Outcome::Interrupted);
    let lost = listening.join().unwrap();
    // The asker may have gone before its first line.
    assert!(
        matches!(lost, Err(CheckError::Lost { .. } | CheckError::NoClient(_))),
        "{lost:?}"
    );
}

#[test]
fn offloads_of_the_loopback_interface_are_not_tried() {
    let (token, interrupt) = (Token::new().unwrap(), Interrupt::new());
    let listener = Listener::open(here(), token.clone()).unwrap();
    let peer = listener.address();
    let listening = thread::spawn(move || listener.serve(WAIT, &Interrupt::new(), |_| ()));
    let question = Question {
        offloads: true,
        ..question(peer, &token, &interrupt)
    };
    let refused = ask(&question).unwrap_err();
    assert_eq!(refused.outcome(), Outcome::Impossible);
    let words = refused.to_string();
    // Of a user other than root the first reason.
    assert!(
        words.starts_with("offloads cannot be tried here: "),
        "{words}"
    );
    assert!(listening.join().unwrap().is_err());
}

#[test]
fn addresses_that_cannot_be_used_have_reasons() {
    let (token, interrupt) = (Token::new().unwrap(), Interrupt::new());
    let taken = Listener::open(here(), token.clone()).unwrap();
    let error = Listener::open(taken.address(), token.clone()).unwrap_err();
    assert!(error.to_string().contains("uses this port"), "{error}");
    let foreign = SocketAddr::from(([203, 0, 113, 1], 8423));
    let error = Listener::open(foreign, token.clone()).unwrap_err();
    assert!(
        error.to_string().contains("no address of this host"),
        "{error}"
    );
    assert_eq!(error.outcome(), Outcome::Impossible);
    let soon = taken.serve(Duration::ZERO, &interrupt, |_| ()).unwrap_err();
    assert_eq!(soon.outcome(), Outcome::Undecided);
}
