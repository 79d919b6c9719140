//! A fleet in a browser, and the records of a run while it goes on.

use super::{CAMPAIGN, free};
use crate::support::{Sandbox, end, finish, kill, read_line, start, wait_for};
use nix::sys::signal::SIGTERM;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use testing::Browser;

/// Finds what is cut, lies over other text or scrolls sideways.
const MEASURE: &str = include_str!("../../../../measure/report/tests/report/layout/measure.js");
const WIDTHS: [u32; 2] = [400, 1300];

/// An answer to `GET`: the status and all else.
fn get(address: &str, path: &str) -> (u16, String) {
    get_as(address, address, path)
}

fn get_as(address: &str, host: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the page's server");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8(answer).expect("UTF-8");
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.expect("a status"), answer)
}

/// What a page is sent while it is open.
struct Live(BufReader<TcpStream>);

impl Live {
    fn open(address: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("the page's server");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a limit");
        Self(BufReader::new(stream))
    }

    /// The next content; `None` once the server has gone.
    fn next(&mut self) -> Option<String> {
        let mut content = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" if content.contains("data: ") => return Some(content),
                "" => content.clear(),
                line => content.push_str(line),
            }
        }
    }

    /// Waits for a content with all of these parts.
    fn await_parts(&mut self, parts: &[&str]) {
        let mut last = String::new();
        while let Some(content) = self.next() {
            if parts.iter().all(|part| content.contains(part)) {
                return;
            }
            last = content;
        }
        panic!("no {parts:?} in {last}");
    }
}

pub(crate) fn a_fleet_is_seen_in_a_browser_and_a_run_is_followed_line_by_line() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    sandbox.write(
        "long.yaml",
        &CAMPAIGN
            .replace("repeats: 1", "repeats: 12")
            .replace("100 ms", "400 ms"),
    );
    let (listen, url) = free();
    let fleet = |words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url];
        all.extend(words);
        let mut command = sandbox.interruptible(&all);
        command.env("XDG_CACHE_HOME", sandbox.path("cache"));
        command
    };
    let serve = || {
        let mut server = start(&mut fleet(&["server", "--listen", &listen]));
        assert_eq!(read_line(&mut server).trim(), format!("ready url={url}"));
        server
    };
    let stop = |child: Child| {
        kill(child.id().cast_signed(), SIGTERM);
        finish(child).exits(0);
    };
    let server = serve();
    let mut site = start(&mut fleet(&["serve", "--listen", "127.0.0.1:0"]));
    let line = read_line(&mut site);
    let page = line
        .trim()
        .strip_prefix("ready url=http://")
        .expect("an address");
    let page = page.trim_end_matches('/');
    let mut live = Live::open(page, "/live/");
    live.await_parts(&["No lab is on offer", "No job waits.", "No job has ended."]);

    let agent = start(&mut fleet(&["agent", "memory", "--label", "site=here"]));
    live.await_parts(&["<th>memory</th>", ">free<", "site=here"]);
    let submit = |words: &[&str]| {
        let mut all = vec!["submit"];
        all.extend(words);
        end(&mut fleet(&all)).exits(0).stdout.trim().to_owned()
    };
    let misfit = submit(&["campaign.yaml", "--select", "site=there"]);
    live.await_parts(&[
        &misfit,
        "not in memory: it asks for site=there, and the lab has here",
    ]);
    let job = submit(&["long.yaml"]);
    let following = start(&mut fleet(&["records", &job]));
    let watching = start(&mut fleet(&["watch"]));
    live.await_parts(&["<progress max=\"12\"", " of 12 trials, last "]);

    // The server goes away and comes back while the run goes on: nothing of it is lost.
    stop(server);
    live.await_parts(&["The fleet's server does not answer"]);
    let server = serve();
    live.await_parts(&[&format!("<a href=\"/run/{job}\">report</a>")]);
    let said = finish(following).exits(0).stdout;
    let fetched = end(&mut fleet(&["fetch", &job, "--out", "fetched"])).exits(0);
    let run = sandbox.path(fetched.stdout.trim());
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    assert!(journal.lines().count() >= 14, "{journal}");
    assert_eq!(said, journal);
    kill(watching.id().cast_signed(), SIGTERM);
    let watched = finish(watching).exits(0).stdout;
    let is_progress = |line: &str| line.starts_with(&job) && line.contains(" of 12 trials, last ");
    assert!(watched.lines().any(is_progress), "{watched}");
    end(&mut fleet(&["records", "nothing"]))
        .exits(2)
        .says("the fleet has no job nothing");

    // Its report, the second time from the cache; and the course of its cell.
    for _ in 0..2 {
        let (status, report) = get(page, &format!("/run/{job}"));
        assert_eq!(status, 200, "{report}");
        assert!(report.contains("Encryptor measurement report"), "{report}");
    }
    let (status, none) = get(page, &format!("/run/{misfit}"));
    assert_eq!(status, 404);
    assert!(none.contains("the fleet has no job"), "{none}");
    let (_, cells) = get(page, "/cells");
    let (_, rest) = cells.split_once("href=\"/cell/").expect("a cell");
    let cell = rest.split('"').next().expect("its path");
    let (status, course) = get(page, &format!("/cell/{cell}"));
    assert_eq!(status, 200);
    for part in ["1 run, no change found", "<svg", &format!("/run/{job}")] {
        assert!(course.contains(part), "{part}: {course}");
    }
    assert_eq!(get(page, "/cell/nothing").0, 200);
    assert_eq!(get(page, "/elsewhere").0, 404);
    // A name that somebody has turned to this machine.
    assert_eq!(get_as(page, "evil.example", "/").0, 421);

    if let Some(browser) = Browser::find("a fleet in a browser") {
        for path in ["/".to_owned(), "/cells".to_owned(), format!("/cell/{cell}")] {
            check_layout(&browser, page, &path);
        }
        check_updates(&browser, page, || {
            drop(submit(&["campaign.yaml", "--select", "site=there"]))
        });
    }
    for child in [agent, site, server] {
        stop(child);
    }
}

/// Lays a page out at every width.
fn check_layout(browser: &Browser, address: &str, path: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let body = |path: &str| {
        let (_, answer) = get(address, path);
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        body.to_owned()
    };
    let style = format!("<style>{}</style>", body("/page.css"));
    let page = body(path)
        .replace("<link rel=\"stylesheet\" href=\"/page.css\">", &style)
        .replace("<script src=\"/page.js\" defer></script>", "")
        .replace("</body>", &format!("<script>{MEASURE}</script></body>"));
    assert!(page.contains("prefers-color-scheme: dark"), "{page}");
    fs::write(folder.path().join("page.html"), page).expect("written");
    let frames: String = WIDTHS
        .iter()
        .map(|width| format!("<iframe src=page.html width={width} height=1000></iframe>"))
        .collect();
    let around = format!(
        "<!doctype html><meta charset=utf-8><style>iframe {{ border: 0 }}</style><body style=width:2000px>{frames}\
         <pre id=found></pre><script>const found = []; onmessage = event => {{ found.push(event.data); \
         document.getElementById('found').textContent = JSON.stringify(found); }};</script>"
    );
    fs::write(folder.path().join("around.html"), around).expect("written");
    let place = folder.path().join("around.html");
    let dumped = browser
        .dump(folder.path())
        .arg("--virtual-time-budget=20000")
        .arg(format!("file://{}", place.display()))
        .output()
        .expect("a browser");
    let dom = String::from_utf8(dumped.stdout).expect("UTF-8");
    let (_, found) = dom.split_once("<pre id=\"found\">").expect("measurements");
    let found = found.split("</pre>").next().unwrap_or_default();
    let found: serde_json::Value = serde_json::from_str(found).expect(found);
    let found = found.as_array().expect("a list");
    assert_eq!(found.len(), WIDTHS.len());
    for page in found {
        let is_fine = page["sideways"] == 0 && page["faults"] == serde_json::json!([]);
        assert!(
            is_fine && page["drawings"] == serde_json::json!([]),
            "{path}: {page}"
        );
    }
}

/// A page that is open shows what happens after it was loaded.
fn check_updates(browser: &Browser, address: &str, mut happens: impl FnMut()) {
    let folder = tempfile::tempdir().expect("a folder");
    let between = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let place = between.local_addr().expect("its address");
    let to = address.to_owned();
    let updates = Arc::new(AtomicU32::new(0));
    std::thread::spawn(move || {
        for stream in between.incoming().flatten() {
            let (to, updates) = (to.clone(), Arc::clone(&updates));
            // A browser that has gone is no fault.
            std::thread::spawn(move || drop(pass(&stream, &to, &updates)));
        }
    });
    let mut dumping = start(browser.dump(folder.path()).arg(format!("http://{place}/")));
    let dom = loop {
        happens();
        if dumping.try_wait().expect("a browser").is_some() {
            break finish(dumping).stdout;
        }
    };
    let (_, count) = dom.split_once("data-updates=\"").expect("updates");
    let count = count
        .split('"')
        .next()
        .and_then(|count| count.parse::<u32>().ok());
    // The first is what it was loaded with.
    assert!(count >= Some(2), "{count:?} updates");
}

/// Passes a request on to the page's server. The page gets a script more, which comes once three
/// contents were passed: the browser prints a page when all of its scripts have come.
fn pass(mut from: &TcpStream, address: &str, updates: &AtomicU32) -> std::io::Result<()> {
    const HOLD: &str = "<script src=\"/hold.js\" defer></script></head>";
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let answer = |kind: &str, body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    };
    match path {
        "/" => {
            let (_, page) = get(address, path);
            let (_, page) = page.split_once("\r\n\r\n").unwrap_or_default();
            let page = page.replace("</head>", HOLD);
            from.write_all(answer("text/html", &page).as_bytes())
        }
        "/hold.js" => {
            wait_for("three contents of the open page", || {
                (updates.load(Ordering::Relaxed) >= 3).then_some(())
            });
            from.write_all(answer("text/javascript", "").as_bytes())
        }
        "/live/" => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            from.write_all(head.as_bytes())?;
            let mut live = Live::open(address, path);
            while let Some(content) = live.next() {
                let (_, content) = content.split_once("data: ").unwrap_or_default();
                from.write_all(format!("data: {content}\n\n").as_bytes())?;
                updates.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
        path => {
            let (_, file) = get(address, path);
            from.write_all(file.as_bytes())
        }
    }
}
