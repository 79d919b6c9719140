//! A run while it goes on: the screen of a terminal, the log, and pages of a browser.

use crate::browse::{Live, ask, check_layout, get, get_as};
use crate::support::{PROGRAM, Sandbox, end, finish, kill, read_line, start, wait_for};
use journal::record::FORMAT_VERSION;
use nix::sys::signal::{SIGINT, SIGTERM};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;
use testing::{Browser, attack};
use vt100::Parser;

/// A load that any machine carries in memory, in a cell or two.
const CAMPAIGN: &str = "\
campaign: watched
title: A load in memory
repeats: 1
calibrate: false
duts: [direct]
trials: [load: { frame: [512 B, 64 B], rate: 1000 frames/s, duration: 100 ms }]
";

/// Ends that a run may have on a busy machine: all valid, or some invalid.
const ENDS: [Option<i32>; 2] = [Some(0), Some(1)];

/// The campaign with trials of this length, so often.
fn campaign(repeats: u32, duration: &str) -> String {
    CAMPAIGN
        .replace("repeats: 1", &format!("repeats: {repeats}"))
        .replace("100 ms", duration)
}

/// A run that serves its pages, with the address and the path of its page.
struct Watched {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    address: String,
    path: String,
}

impl Watched {
    fn start(command: &mut Command) -> Self {
        let mut child = start(command);
        let errors = child.stderr.take().expect("standard error is piped");
        let mut errors = BufReader::new(errors);
        let mut line = String::new();
        while !line.starts_with("live at http://") {
            line.clear();
            let bytes = errors.read_line(&mut line).expect("lines");
            assert_ne!(bytes, 0, "no address");
        }
        let rest = line.trim().strip_prefix("live at http://");
        let (address, path) = rest.and_then(|rest| rest.split_once('/')).expect("a URL");
        Self {
            child,
            errors,
            address: address.to_owned(),
            path: format!("/{path}"),
        }
    }

    /// Waits for the end. Returns the exit code and the rest of standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        let errors = self.errors.read_to_string(&mut rest);
        errors.expect("standard error");
        let ended = finish(self.child);
        (ended.code, rest)
    }
}

/// `cipherbench serve` of a folder, with its address.
fn serve(sandbox: &Sandbox, words: &[&str]) -> (Child, String) {
    let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
    all.extend(words);
    let mut site = start(&mut sandbox.interruptible(&all));
    let line = read_line(&mut site);
    let page = line.trim().strip_prefix("ready url=http://");
    let page = page.expect("an address").trim_end_matches('/').to_owned();
    (site, page)
}

fn stop(child: Child) {
    kill(child.id().cast_signed(), SIGTERM);
    finish(child).exits(0);
}

/// Runs a campaign in memory; returns the folder's name.
fn run(sandbox: &Sandbox, text: &str) -> String {
    sandbox.write("campaign.yaml", text);
    let known = names(sandbox);
    let ended = end(&mut sandbox.program(&["run", "campaign.yaml", "--lab", "memory"]));
    assert!(ENDS.contains(&ended.code), "{}", ended.stderr);
    let new = names(sandbox)
        .into_iter()
        .find(|name| !known.contains(name));
    new.expect("a run")
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path("runs")).into_iter().flatten();
    entries
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect()
}

pub(crate) fn a_run_is_followed_in_a_browser_to_its_end() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", &campaign(6, "600 ms"));
    let mut command = sandbox.interruptible(&["run", "campaign.yaml", "--lab", "memory"]);
    let running = Watched::start(command.args(["--quiet", "--live", "127.0.0.1:0"]));
    let (address, path) = (running.address.clone(), running.path.clone());
    let name = path.strip_prefix("/progress/").expect("a run").to_owned();

    // Without scripts: the page has the figures, and is loaded again.
    let (status, page) = get(&address, &path);
    assert_eq!(status, 200, "{page}");
    for part in [
        "<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>",
        "<progress max=\"12\"",
        "A load in memory",
        "/12 trials",
        "Report so far",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let (_, list) = get(&address, "/");
    let link = format!("<a href=\"{path}\">{name}</a>");
    assert!(list.contains("Under way") && list.contains(&link), "{list}");
    let (status, report) = get(&address, &format!("/run/{name}"));
    assert_eq!(status, 200);
    assert!(report.contains("Encryptor measurement report"), "{report}");

    // With scripts: each content as it changes, then the last one, and the end of the stream.
    let mut live = Live::open(&address, &format!("/live{path}"));
    live.await_parts(&["measured now", "about ", " left", "frame trial "]);
    live.await_parts(&[
        "This run has ended: finished.",
        "12/12 trials",
        &format!("/run/{name}"),
    ]);
    let end = live.next(Instant::now()).expect("an event");
    assert!(end.contains("event: end"), "{end}");
    let (code, rest) = running.end();
    assert!(ENDS.contains(&code), "{rest}");
    assert_eq!(rest, "", "--quiet");
}

pub(crate) fn a_run_of_another_process_is_followed_by_its_journal() {
    let sandbox = Sandbox::new();
    let first = run(&sandbox, CAMPAIGN);
    let (site, address) = serve(&sandbox, &["runs"]);
    sandbox.write("campaign.yaml", &campaign(20, "600 ms"));
    let mut list = Live::open(&address, "/live/");
    list.await_parts(&[&first]);
    let mut command = sandbox.interruptible(&["run", "campaign.yaml", "--lab", "memory"]);
    let running = start(&mut command);
    list.await_parts(&["Under way", "running: ", "of 40 trials"]);
    let second = names(&sandbox).into_iter().find(|name| *name != first);
    let second = second.expect("another run");
    let path = format!("/progress/{second}");
    let mut live = Live::open(&address, &format!("/live{path}"));
    live.await_parts(&["<progress max=\"40\"", "measured now", "/40 trials, "]);
    // Interrupted, not ended: both pages say so, and the stream ends.
    kill(running.id().cast_signed(), SIGINT);
    let ended = finish(running);
    assert_eq!(ended.code, Some(4), "{}", ended.stderr);
    live.await_parts(&["No process continues this run."]);
    list.await_parts(&["interrupted: "]);
    stop(site);
}

pub(crate) fn viewers_that_do_not_read_hold_up_no_run() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", &campaign(3, "400 ms"));
    let mut command = sandbox.interruptible(&["run", "campaign.yaml", "--lab", "memory"]);
    let running = Watched::start(command.args(["--live", "127.0.0.1:0"]));
    // More connections than are accepted, none of which reads or ends its request.
    let viewers: Vec<TcpStream> = (0..300)
        .filter_map(|at| {
            let mut stream = TcpStream::connect(&running.address).ok()?;
            let whole = format!(
                "GET /live{} HTTP/1.1\r\nHost: {}\r\n\r\n",
                running.path, running.address
            );
            let request = if at % 2 == 0 {
                &*whole
            } else {
                "GET / HTTP/1.1\r\nHo"
            };
            stream.write_all(request.as_bytes()).ok()?;
            Some(stream)
        })
        .collect();
    assert!(viewers.len() > 200, "{}", viewers.len());
    let pid = running.child.id();
    let files = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("its files")
        .count();
    attack(
        "descriptors that viewers take of a run",
        usize::from(files > 300),
        0,
    );
    let (code, rest) = running.end();
    assert!(ENDS.contains(&code), "{rest}");
    let trials = rest.lines().filter(|line| line.contains(" left)")).count();
    assert_eq!(trials, 6, "{rest}");
}

pub(crate) fn pages_of_recorded_runs_are_read_and_compared() {
    let sandbox = Sandbox::new();
    let first = run(&sandbox, CAMPAIGN);
    let second = run(
        &sandbox,
        &CAMPAIGN.replace("1000 frames/s", "2000 frames/s"),
    );
    let third = run(&sandbox, &campaign(2, "100 ms"));
    // A name with spaces, and runs that cannot be read: of a later format, broken, and not begun.
    let odd = "über & 100 % <b>";
    fs::rename(
        sandbox.path("runs").join(&third),
        sandbox.path("runs").join(odd),
    )
    .expect("renamed");
    let text = fs::read_to_string(sandbox.path("runs").join(&first).join("journal.jsonl"));
    let text = text.expect("a journal");
    let broken = [
        (
            "later",
            text.replacen(
                &format!("\"format\":{FORMAT_VERSION}"),
                &format!("\"format\":{}", FORMAT_VERSION + 1),
                1,
            ),
        ),
        ("broken", text.replacen("\"outcome\"", "\"outcame\"", 1)),
        ("begun", String::new()),
    ];
    for (name, text) in &broken {
        sandbox.make_folder(&format!("runs/{name}"));
        sandbox.write(&format!("runs/{name}/journal.jsonl"), text);
    }
    // An older format, whose lines have no checksums.
    let old = "../model/journal/tests/fixture/format-1.jsonl";
    let old = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(old));
    sandbox.make_folder("runs/old");
    sandbox.write("runs/old/journal.jsonl", &old.expect("a journal"));

    let (site, address) = serve(&sandbox, &[]);
    let (status, list) = get(&address, "/");
    assert_eq!(status, 200);
    let encoded = "%C3%BCber%20%26%20100%20%25%20%3Cb%3E";
    for part in [
        format!("<a href=\"/run/{first}\">{first}</a>"),
        format!("<a href=\"/run/{encoded}\">über &amp; 100 % &lt;b&gt;</a>"),
        "<th>later</th>".to_owned(),
        format!(
            "this program does not read journal format {}",
            FORMAT_VERSION + 1
        ),
        "the run broke off before it began".to_owned(),
    ] {
        assert!(list.contains(&part), "{part}: {list}");
    }
    for (path, status, part) in [
        (format!("/run/{first}"), 200, "Encryptor measurement report"),
        (
            format!("/run/{encoded}"),
            200,
            "Encryptor measurement report",
        ),
        ("/run/old".to_owned(), 200, "Encryptor measurement report"),
        (
            format!("/progress/{first}"),
            200,
            "This run has ended: finished.",
        ),
        (
            "/progress/old".to_owned(),
            200,
            "This run has ended: finished.",
        ),
        ("/run/later".to_owned(), 422, "format"),
        ("/progress/broken".to_owned(), 422, "journal.jsonl"),
        ("/run/broken".to_owned(), 422, "line "),
        ("/run/begun".to_owned(), 422, "error: "),
        ("/run/nothing".to_owned(), 404, "there is no run nothing"),
        (format!("/compare/{first}"), 200, "Of the same campaign"),
        (format!("/compare/{first}/{second}"), 200, " compared with "),
        (
            format!("/compare/{first}/old"),
            200,
            "no cell can be compared",
        ),
        (format!("/compare/{first}/{first}"), 422, "are the same run"),
        (format!("/compare/{first}/later"), 422, "format"),
        (
            format!("/compare/{first}/nothing"),
            404,
            "there is no run nothing",
        ),
        ("/elsewhere".to_owned(), 404, "no such page"),
    ] {
        let (found, page) = get(&address, &path);
        assert_eq!(found, status, "{path}: {page}");
        assert!(page.contains(part), "{path}: {page}");
        assert!(!page.contains("100 % <b>"), "{page}");
    }
    // A page that does not change says that its first content is the last.
    let mut live = Live::open(&address, &format!("/live/progress/{first}"));
    live.await_parts(&["This run has ended: finished."]);
    assert!(
        live.next(Instant::now())
            .expect("an event")
            .contains("event: end")
    );
    if let Some(browser) = Browser::find("runs in a browser") {
        for path in [
            "/".to_owned(),
            format!("/progress/{first}"),
            format!("/compare/{first}"),
            format!("/compare/{first}/{second}"),
            "/run/later".to_owned(),
        ] {
            let screens = [400, 1300].map(|width| (width, u64::MAX));
            check_layout(&browser, &address, &path, &screens);
        }
    }
    // A run that is deleted while its page is open.
    fs::remove_dir_all(sandbox.path("runs").join(&second)).expect("a run");
    wait_for("a list without it", || {
        (get(&address, &format!("/run/{second}")).0 == 404).then_some(())
    });
    stop(site);
    // A folder without runs, and none.
    sandbox.make_folder("empty");
    let (site, address) = serve(&sandbox, &["empty"]);
    let (status, page) = get(&address, "/");
    assert_eq!(status, 200);
    assert!(
        page.contains("No run yet") && page.contains("empty"),
        "{page}"
    );
    stop(site);
    end(&mut sandbox.program(&["serve", "missing", "--listen", "127.0.0.1:0"]))
        .exits(2)
        .says("cannot read the folder of runs missing");
}

pub(crate) fn requests_that_are_no_reading_of_a_page_are_refused() {
    let sandbox = Sandbox::new();
    let first = run(&sandbox, CAMPAIGN);
    sandbox.write("secret", "a secret next to the runs");
    let (site, address) = serve(&sandbox, &["runs", "--name", "bench.example"]);
    let run = format!("/run/{first}");
    let mut read = 0;
    for path in [
        "/run/..",
        "/run/../secret",
        "/run/..%2fsecret",
        "/run/%2e%2e%2fsecret",
        "/run/..%2f..%2f..%2fetc%2fpasswd",
        "/run/%2fetc%2fpasswd",
        "/run/secret",
        "/run/.",
        "/run/%00",
        "/run/%ff",
        &format!("{run}/journal.jsonl"),
        &format!("{run}%2fjournal.jsonl"),
        &format!("/compare/{first}/..%2fsecret"),
        "/progress/..",
        "//etc/passwd",
    ] {
        let (status, page) = get(&address, path);
        let is_read = status == 200 || page.contains("a secret") || page.contains("root:x");
        read += usize::from(is_read);
    }
    attack("files read by a path", read, 0);
    let mut answered = 0;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let request =
            format!("{method} {run} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        answered += usize::from(ask(&address, &request).0 != 405);
    }
    attack("requests that are no GET", answered, 0);
    for (host, status) in [
        ("evil.example", 421),
        ("evil.example:80", 421),
        ("localhost", 200),
        ("bench.example", 200),
    ] {
        assert_eq!(get_as(&address, host, &run).0, status, "{host}");
        // A stream that is let through does not end.
        if status == 421 {
            assert_eq!(get_as(&address, host, "/live/none").0, status, "{host}");
        }
    }
    let (_, report) = get(&address, &run);
    let (_, page) = get(&address, "/");
    for (answer, policy) in [
        (
            &report,
            "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-",
        ),
        (
            &page,
            "content-security-policy: default-src 'none'; style-src 'self'; script-src 'self'; ",
        ),
    ] {
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let head = head.to_lowercase();
        for part in [
            policy,
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(head.contains(part), "{part}: {head}");
        }
        // Nothing is fetched from elsewhere.
        assert!(
            !body.contains("src=\"http") && !body.contains("href=\"http://"),
            "{body}"
        );
    }
    // Requests that are none. A server may wait for the rest of one, so nothing more is announced;
    // whether it answers or resets the connection is its choice.
    for request in [
        "\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9\r\n\r\n",
        "\u{0}\u{1}\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(&address).expect("the site");
        stream.write_all(request.as_bytes()).expect("sent");
        stream.shutdown(Shutdown::Write).expect("half closed");
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(get(&address, "/").0, 200);
    stop(site);
}

pub(crate) fn a_port_in_use_is_one_error_before_anything_is_made() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("its address");
    let port = address.port();
    let live = format!("--live={address}");
    let run = end(&mut sandbox.program(&["run", "campaign.yaml", "--lab", "memory", &live]))
        .exits(3)
        .says(&format!("error: cannot listen on {address}: "))
        .says(&format!("another program uses port {port}"))
        .says("`--live=127.0.0.1:0` takes a free one");
    assert_eq!(run.stderr.matches("error").count(), 2, "{}", run.stderr);
    assert!(!sandbox.path("runs").exists());
    sandbox.make_folder("runs");
    end(&mut sandbox.program(&["serve", "--listen", &address.to_string()]))
        .exits(3)
        .says(&format!("another program uses port {port}"))
        .says("`--listen=127.0.0.1:0` takes a free one");
    end(&mut sandbox.program(&["serve", "--listen", "192.0.2.77:8421"]))
        .exits(3)
        .says("this machine has no address 192.0.2.77");
    // A campaign is no address.
    end(&mut sandbox.program(&["run", "--live", "campaign.yaml"]))
        .exits(2)
        .says("a campaign goes before `--live`");
}

pub(crate) fn a_log_that_cannot_be_written_costs_no_run() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let run = |log: &str| {
        let words = [
            "run",
            "campaign.yaml",
            "--lab",
            "memory",
            "--quiet",
            "--log",
            log,
        ];
        end(&mut sandbox.program(&words))
    };
    run("missing/log")
        .exits(2)
        .says("error: cannot open the log missing/log: ");
    assert!(!sandbox.path("runs").exists());
    let ended = run("/dev/full").says("warning: the log /dev/full is incomplete: ");
    assert!(ENDS.contains(&ended.code), "{}", ended.stderr);
    // Nobody reads this pipe.
    let pipe = sandbox.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    run("pipe")
        .exits(2)
        .says("error: cannot open the log pipe: ");
}

pub(crate) fn a_terminal_has_one_screen_and_the_log_has_the_lines() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", &campaign(2, "1500 ms"));
    let on_terminal = |rows: u16, columns: u16, options: &str| {
        let words = format!(
            "stty rows {rows} cols {columns}; echo before; {PROGRAM} run campaign.yaml --lab memory {options}"
        );
        let mut command = sandbox.command("script");
        // `script` gives the program a terminal, which merges standard error and standard output.
        command.args(["--quiet", "--return", "--command", &words, "/dev/null"]);
        command.env("TERM", "xterm");
        let ended = end(&mut command);
        assert!(ENDS.contains(&ended.code), "{}", ended.stdout);
        ended.stdout
    };
    for (rows, columns) in [(24, 40), (24, 60), (30, 120)] {
        let seen = on_terminal(rows, columns, "--log log");
        // Each screen as the terminal shows it, before the next is drawn.
        let sizes = [rows, columns].map(|size| NonZero::new(size).expect("a size"));
        let mut parser = Parser::new(sizes[0], sizes[1], 0);
        let mut screens: Vec<String> = Vec::new();
        for part in seen.split_inclusive("\u{1b}[0J") {
            parser.process(part.as_bytes());
            screens.push(parser.screen().contents());
        }
        let shown = |text: &str| screens.iter().any(|screen| screen.contains(text));
        for part in ["watched: A load in memory", "/4 trials", " left", "direct"] {
            assert!(shown(part), "{part} in {columns} columns: {screens:#?}");
        }
        let last = screens
            .iter()
            .rev()
            .find(|screen| screen.contains("watched: A load"));
        let last = last.expect("a screen");
        assert_eq!(last.matches("watched: A load").count(), 1, "{last}");
        // The screen has gone, and the result is below what was there before.
        let (_, end) = seen.rsplit_once("\u{1b}[0J").expect("a screen");
        assert!(
            end.contains("report.html") && end.contains("\u{1b}[1m"),
            "{end}"
        );
        assert!(!seen.contains(" left)"), "lines are for the log:\n{seen}");
    }
    let log = fs::read_to_string(sandbox.path("log")).expect("a log");
    let lines = log.lines().filter(|line| line.contains(" left)")).count();
    assert_eq!(lines, 3 * 4, "{log}");
    assert!(log.starts_with("campaign watched: "), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
    // A terminal that cannot be redrawn has lines, and a quiet one nothing.
    let dumb = |term: &str, option: &str| {
        let words = format!("{PROGRAM} run campaign.yaml --lab memory {option}");
        let mut command = sandbox.command("script");
        command.args(["--quiet", "--return", "--command", &words, "/dev/null"]);
        end(command.env("TERM", term)).stdout
    };
    let seen = dumb("dumb", "");
    assert_eq!(
        seen.lines().filter(|line| line.contains(" left)")).count(),
        4,
        "{seen}"
    );
    let quiet = dumb("xterm", "--quiet --json");
    let (warnings, json) = quiet.split_at(quiet.find('{').expect("JSON"));
    assert!(!warnings.contains("trials"), "{warnings}");
    assert!(
        serde_json::from_str::<Value>(&json.replace('\r', "")).is_ok(),
        "{quiet}"
    );
}
