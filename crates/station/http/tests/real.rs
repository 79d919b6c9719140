//! The clients against real servers and against servers that lie, on the loopback interface.
//!
//! This executable is also the program that plays a part: `http`. Real servers and wget2 need a
//! mount namespace; where none is permitted, or a program is missing, a test is skipped.

use http::object::Object;
use http::{Fetch, Serve, Spec};
use journal::record::{HttpFailure, HttpResult, TimeBucket};
use libtest_mimic::{Arguments, Completion, Trial};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::{HttpClient, HttpServer, HttpTest, HttpVersion, Store};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);
const OBJECT_BYTES: u64 = 4096;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words == ["http"] {
        return play();
    }
    let tests = vec![
        real("nginx_in_all_ways", &["nginx"], nginx_in_all_ways),
        real("closed_connections", &["nginx"], closed_connections),
        real("an_open_loop_keeps_its_schedule", &["nginx"], open_loop),
        real("another_certificate", &["nginx"], another_certificate),
        real("python_serves_a_mix", &["python3"], python),
        real("a_server_that_dies", &["nginx"], dying_server),
        real("wget2_to_ram_and_disk", &["nginx", "wget2"], wget2),
        real("a_full_ram_disk", &["nginx", "wget2"], full_store),
        lying("a_length_that_is_a_lie", lying_length),
        lying("an_object_that_differs", differing_object),
        lying("an_answer_from_a_cache", cached),
        lying("an_error_status", error_status),
        lying("an_end_within_the_object", truncated),
        lying("a_server_that_never_answers", silent),
        lying("nothing_listens", refused),
        lying("more_connections_than_ports", few_ports),
        lying("more_connections_than_descriptors", few_descriptors),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn play() -> ExitCode {
    let spec = std::io::read_to_string(std::io::stdin()).unwrap();
    match http::play(&spec, std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A test with a real server.
fn real(name: &str, programs: &'static [&'static str], test: fn()) -> Trial {
    Trial::ignorable_test(name, move || match missing(programs) {
        None => {
            test();
            Ok(Completion::Completed)
        }
        Some(why) => {
            eprintln!("SKIPPED: {why}");
            Ok(Completion::ignored_with(why))
        }
    })
}

/// A test with a server of its own.
fn lying(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn missing(programs: &[&str]) -> Option<String> {
    let folders = std::env::var("PATH").unwrap_or_default();
    let is_found = |program: &str| {
        let mut folders = folders.split(':').map(Path::new);
        folders.any(|folder| folder.join(program).exists())
    };
    if let Some(program) = programs.iter().find(|program| !is_found(program)) {
        return Some(format!("{program} is not installed"));
    }
    // The thread alone gets the namespace.
    let refused = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNS).is_err());
    let refused = refused.join().unwrap();
    refused.then(|| "no mount namespace is permitted".to_owned())
}

fn test() -> HttpTest {
    HttpTest {
        object_bytes: Some(OBJECT_BYTES),
        connections: 4,
        streams: 1,
        ramp_ns: 100 * MS,
        duration_ns: 500 * MS,
        ..HttpTest::default()
    }
}

fn fetch_of(test: HttpTest, port: u16) -> Fetch {
    Fetch {
        test,
        server: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        threads: 1,
        authority: None,
        timeout_ns: 5000 * MS,
        store_bytes: None,
    }
}

/// A program that plays a part, ended on drop.
struct Part(Child);

impl Part {
    fn start(spec: &Spec) -> Self {
        Self::start_as(Command::new("/proc/self/exe").arg("http"), spec)
    }

    fn start_as(program: &mut Command, spec: &Spec) -> Self {
        let mut child = program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let spec = serde_json::to_string(spec).unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(spec.as_bytes()).unwrap();
        Self(child)
    }

    /// The standard output; an error with the standard error.
    fn ended(mut self) -> Result<String, String> {
        let (mut output, mut errors) = (String::new(), String::new());
        let (stdout, stderr) = (self.0.stdout.take(), self.0.stderr.take());
        stdout.unwrap().read_to_string(&mut output).unwrap();
        stderr.unwrap().read_to_string(&mut errors).unwrap();
        if self.0.wait().unwrap().success() {
            Ok(output)
        } else {
            Err(errors)
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.0.try_wait().unwrap().is_none() {
            // Not SIGKILL: nginx would leave its workers behind.
            let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
            self.0.wait().unwrap();
        }
    }
}

fn fetch(spec: Fetch) -> HttpResult {
    let ended = Part::start(&Spec::Fetch(spec)).ended();
    serde_json::from_str(&ended.unwrap()).unwrap()
}

/// A real server with its port, and the authority of its certificate.
fn server(test: HttpTest) -> (Part, u16, Option<String>) {
    let port = free_port();
    let certificate = test.tls.then(|| http::issue().unwrap());
    let (authority, identity) = certificate.map_or((None, None), |certificate| {
        (Some(certificate.authority), Some(certificate.identity))
    });
    let mut part = Part::start(&Spec::Serve(Serve {
        test,
        port,
        workers: 1,
        identity,
    }));
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if part.0.try_wait().unwrap().is_some() {
            panic!("{}", part.ended().unwrap_err());
        }
        assert!(begun.elapsed() < PATIENCE, "the server does not listen");
        std::thread::yield_now();
    }
    (part, port, authority)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// What a client counts of a real server. On a busy machine every transaction may end after the
/// sustain phase: then the trial is repeated with a longer one.
fn from_server(mut test: HttpTest) -> HttpResult {
    let mut attempts = 5;
    loop {
        let (_server, port, authority) = server(test);
        let found = fetch(Fetch {
            authority,
            ..fetch_of(test, port)
        });
        attempts -= 1;
        if found.transactions > 0 || found.failures() > 0 || attempts == 0 {
            return found;
        }
        test.duration_ns *= 2;
    }
}

fn assert_whole(found: &HttpResult) {
    assert_eq!(found.failures(), 0, "{found:#?}");
    assert!(found.transactions > 0, "{found:#?}");
    assert!(found.received_bytes >= found.object_bytes, "{found:#?}");
}

/// The reasons of failures, of which there must be some.
fn reasons(found: &HttpResult) -> Vec<HttpFailure> {
    assert!(found.failures() > 0, "{found:#?}");
    found.failed.keys().copied().collect()
}

fn nginx_in_all_ways() {
    for (version, tls, streams) in [
        (HttpVersion::Http1, false, 1),
        (HttpVersion::Http1, true, 1),
        (HttpVersion::Http2, false, 4),
        (HttpVersion::Http2, true, 4),
    ] {
        let found = from_server(HttpTest {
            version,
            tls,
            streams,
            ..test()
        });
        assert_whole(&found);
        assert_eq!(found.object_bytes, found.transactions * OBJECT_BYTES);
        assert_eq!(found.connections_in_all, 4, "{found:#?}");
        let [times] = &found.objects[..] else {
            panic!("{found:#?}")
        };
        let timed = |buckets: &[TimeBucket]| buckets.iter().map(|bucket| bucket.count).sum::<u64>();
        assert!(timed(&times.first_byte) > 0);
        assert_eq!(timed(&times.first_byte), timed(&times.last_byte));
    }
}

fn closed_connections() {
    for version in [HttpVersion::Http1, HttpVersion::Http2] {
        let found = from_server(HttpTest {
            version,
            transactions_per_connection: Some(1),
            ..test()
        });
        assert_whole(&found);
        assert_eq!(found.connections_in_all, found.attempted, "{found:#?}");
    }
}

fn open_loop() {
    let found = from_server(HttpTest {
        transactions_per_s: Some(200),
        ..test()
    });
    assert_whole(&found);
    // 200/s for 0.5 s, and half of that in two ramps of 0.1 s.
    assert_eq!(found.planned, Some(120));
    assert_eq!(found.attempted, 120);
}

fn another_certificate() {
    let test = HttpTest {
        tls: true,
        ..test()
    };
    let (_server, port, _) = server(test);
    let found = fetch(Fetch {
        authority: Some(http::issue().unwrap().authority),
        ..fetch_of(test, port)
    });
    assert_eq!(reasons(&found), [HttpFailure::Tls]);
}

fn python() {
    let found = from_server(HttpTest {
        server: HttpServer::Python,
        object_bytes: None,
        ..test()
    });
    assert_whole(&found);
    let sizes = found.objects.iter().map(|times| times.object_bytes);
    assert_eq!(sizes.collect::<Vec<_>>(), HttpTest::MIX_BYTES);
}

fn dying_server() {
    let test = HttpTest {
        duration_ns: 2000 * MS,
        ..test()
    };
    let (server, port, _) = server(test);
    let client = Part::start(&Spec::Fetch(fetch_of(test, port)));
    await_client(port);
    drop(server);
    let found: HttpResult = serde_json::from_str(&client.ended().unwrap()).unwrap();
    let reasons: BTreeSet<_> = reasons(&found).into_iter().collect();
    assert!(reasons.contains(&HttpFailure::Refused), "{found:#?}");
    assert!(found.attempted > found.failures(), "{found:#?}");
}

/// Waits until a connection to the port is established, as the kernel shows them.
fn await_client(port: u16) {
    let begun = Instant::now();
    let port = format!(":{port:04X} 01 ");
    let is_open = || {
        let connections = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
        connections.lines().any(|line| line.contains(&port))
    };
    while !is_open() {
        assert!(begun.elapsed() < PATIENCE, "no client connects");
        std::thread::yield_now();
    }
}

fn wget2() {
    for (store, tls, version) in [
        (Store::Ram, false, HttpVersion::Http1),
        (Store::Disk, true, HttpVersion::Http2),
    ] {
        let found = from_server(HttpTest {
            client: HttpClient::Wget2,
            object_bytes: None,
            store,
            tls,
            version,
            ..test()
        });
        assert_whole(&found);
        let stored = found.stored.unwrap();
        assert!(stored.direct_bytes_per_s > 0);
        assert!(stored.client_cpu_ns > 0);
        assert!(found.duration_ns > 0);
    }
}

fn full_store() {
    let test = HttpTest {
        client: HttpClient::Wget2,
        object_bytes: Some(1 << 20),
        ..test()
    };
    let (_server, port, _) = server(test);
    let found = fetch(Fetch {
        store_bytes: Some(2 << 20),
        ..fetch_of(test, port)
    });
    assert_eq!(reasons(&found), [HttpFailure::StoreFull]);
}

/// What a client counts when every request gets these bytes, and then the end of the connection.
fn answered(answer: Vec<u8>) -> HttpResult {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Ends with this process.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut request = [0; 1024];
                let _ = connection.read(&mut request);
                let _ = connection.write_all(&answer);
                let _ = connection.shutdown(Shutdown::Write);
                // Closing with unread bytes would reset the connection.
                while connection.read(&mut request).is_ok_and(|length| length > 0) {}
            });
        }
    });
    fetch(fetch_of(test(), port))
}

fn answer(fields: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut object = Vec::new();
    Object::new(0, OBJECT_BYTES).write_to(&mut object).unwrap();
    change(&mut object);
    let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    [head.into_bytes(), object].concat()
}

fn lying_length() {
    let longer = answer("Content-Length: 5000", |_| {});
    assert_eq!(reasons(&answered(longer)), [HttpFailure::WrongLength]);
    let more = answer("Content-Length: 4096", |object| object.push(b'x'));
    assert_eq!(reasons(&answered(more)), [HttpFailure::WrongLength]);
}

fn differing_object() {
    let differs = answer("Content-Length: 4096", |object| object[4000] ^= 1);
    assert_eq!(reasons(&answered(differs)), [HttpFailure::WrongContent]);
}

fn cached() {
    let cached = answer("Age: 1\r\nContent-Length: 4096", |_| {});
    assert_eq!(reasons(&answered(cached)), [HttpFailure::Cached]);
}

fn error_status() {
    let failed = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(reasons(&answered(failed.to_vec())), [HttpFailure::Status]);
}

fn truncated() {
    let short = answer("Content-Length: 4096", |object| object.truncate(100));
    assert_eq!(reasons(&answered(short)), [HttpFailure::Truncated]);
}

fn silent() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let found = fetch(Fetch {
        timeout_ns: 100 * MS,
        ..fetch_of(test(), port)
    });
    assert_eq!(reasons(&found), [HttpFailure::Timeout]);
}

fn refused() {
    let found = fetch(fetch_of(test(), free_port()));
    assert_eq!(reasons(&found), [HttpFailure::Refused]);
    assert_eq!(found.transactions, 0);
}

fn few_ports() {
    let test = HttpTest {
        connections: 65_536,
        ..test()
    };
    let ended = Part::start(&Spec::Fetch(fetch_of(test, 1))).ended();
    let why = ended.unwrap_err();
    let is_known = why.contains("as many ports") || why.contains("file descriptors");
    assert!(is_known && why.contains("set fewer `connections`"), "{why}");
}

fn few_descriptors() {
    let this = std::env::current_exe().unwrap();
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -n 80 && exec \"$0\" http"])
        .arg(this);
    let test = HttpTest {
        connections: 100,
        ..test()
    };
    let ended = Part::start_as(&mut limited, &Spec::Fetch(fetch_of(test, 1))).ended();
    let why = ended.unwrap_err();
    let is_known = why.contains("100 connections need 164 file descriptors")
        && why.contains("this process may open 80");
    assert!(is_known, "{why}");
}
