//! A fleet in a browser, and the records of a run while it goes on.

use super::{CAMPAIGN, free};
use crate::browse::{Live, check_layout, get, get_as};
use crate::support::{
    Sandbox, end, finish, kill, outcomes, read_line, repeat_if_busy, start, trial_records, wait_for,
};
use nix::sys::signal::SIGTERM;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use testing::Browser;

/// Widths of windows, and how high the page of labs and jobs may be there: two screens.
const SCREENS: [(u32, u64); 2] = [(400, 1600), (1300, 1800)];

/// Contents after which the browser prints an open page.
const UPDATES: u32 = 3;

/// Jobs that wait.
const QUEUED: usize = 300;

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
        let mut server = start(&mut fleet(&["server", "--open", "--listen", &listen]));
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
    live.await_parts(&["<progress max=\"12\"", " of 12 trials; last: repeat "]);

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
    // A busy machine spoils trials, and a cell with one of these has no figure.
    let trials = outcomes(&trial_records(&journal));
    repeat_if_busy(&trials, |outcome| outcome["kind"] == "measured");
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
        let (head, _) = report.split_once("\r\n\r\n").expect("a head");
        let head = head.to_lowercase();
        for part in [
            "content-security-policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
        ] {
            assert!(head.contains(part), "{part}: {head}");
        }
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

    // Its figures are on the first page, under the cell's name for people.
    let (_, first) = get(page, "/");
    let (_, ended) = first.split_once("<section id=\"ended\">").expect("a list");
    for part in [
        "First figures",
        "<div class=\"figure\"><b>",
        &format!("href=\"/cell/{cell}\""),
    ] {
        assert!(ended.contains(part), "{part}: {ended}");
    }
    for part in [">direct: ", "<code>"] {
        assert!(cells.contains(part), "{part}: {cells}");
    }
    // A long queue.
    let sites: Vec<String> = (0..QUEUED).map(|at| format!("there-{at}")).collect();
    submit(&[
        "campaign.yaml",
        "--matrix",
        &format!("site={}", sites.join(",")),
    ]);
    let last = format!("site=there-{}, and the lab has here", QUEUED - 1);
    live.await_parts(&[&format!("Queue: {} jobs", QUEUED + 1), &last]);

    if let Some(browser) = Browser::find("a fleet in a browser") {
        check_layout(&browser, page, "/", &SCREENS);
        for path in ["/cells".to_owned(), format!("/cell/{cell}")] {
            let screens = SCREENS.map(|(width, _)| (width, u64::MAX));
            check_layout(&browser, page, &path, &screens);
        }
        check_updates(&browser, page, || {
            drop(submit(&["campaign.yaml", "--select", "site=there"]))
        });
    }
    for child in [agent, site, server] {
        stop(child);
    }
}

/// A page that is open shows what happens after it was loaded.
fn check_updates(browser: &Browser, address: &str, mut happens: impl FnMut()) {
    let folder = tempfile::tempdir().expect("a folder");
    let between = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let place = between.local_addr().expect("its address");
    let to = address.to_owned();
    let updates = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&updates);
    std::thread::spawn(move || {
        for stream in between.incoming().flatten() {
            let (to, updates) = (to.clone(), Arc::clone(&counted));
            // A browser that has gone is no fault.
            std::thread::spawn(move || drop(pass(&stream, &to, &updates)));
        }
    });
    // The page is larger than a pipe, which nobody would read before the browser ends.
    let dom = folder.path().join("dom.html");
    let mut dumping = browser
        .dump(folder.path())
        .arg(format!("http://{place}/"))
        .stdout(fs::File::create(&dom).expect("a new file"))
        .stderr(Stdio::null())
        .spawn()
        .expect("a browser");
    wait_for("the end of a browser", || {
        if updates.load(Ordering::Relaxed) < UPDATES {
            happens();
        }
        dumping.try_wait().expect("a browser")
    });
    let dom = fs::read_to_string(dom).expect("UTF-8");
    let (_, count) = dom.split_once("data-updates=\"").expect("updates");
    let count = count
        .split('"')
        .next()
        .and_then(|count| count.parse::<u32>().ok());
    // The first is what it was loaded with.
    assert!(count >= Some(2), "{count:?} updates");
}

/// Passes a request on to the page's server. The page gets a script more, which comes once
/// [`UPDATES`] contents were passed: the browser prints a page when all of its scripts have come.
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
            wait_for("contents of the open page", || {
                (updates.load(Ordering::Relaxed) >= UPDATES).then_some(())
            });
            from.write_all(answer("text/javascript", "").as_bytes())
        }
        "/live/" => {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            from.write_all(head.as_bytes())?;
            let mut live = Live::open(address, path);
            let began = Instant::now();
            while let Some(content) = live.next(began) {
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
