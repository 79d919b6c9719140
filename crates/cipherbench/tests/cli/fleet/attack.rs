//! Attacks on a fleet of this program: by users of the same machine and by pages in a browser.
//! Their bounds are in docs/security-fleet.md.

use super::{CAMPAIGN, free};
use crate::browse::get_as;
use crate::support::{Sandbox, end, finish, kill, read_line, start, wait_for};
use nix::sys::signal::SIGTERM;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use testing::attack;

/// Publishes to a server as any program can, without a key. Returns what the server says to that.
fn publish(address: &str, subject: &str, payload: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a server");
    let mut lines = BufReader::new(stream.try_clone().expect("the same stream"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("its INFO");
    let length = payload.len();
    let text =
        format!("CONNECT {{\"verbose\":false}}\r\nPUB {subject} {length}\r\n{payload}\r\nPING\r\n");
    // A server that refuses closes the connection.
    let _ = stream.write_all(text.as_bytes());
    line.clear();
    let _ = lines.read_line(&mut line);
    line
}

fn stop(child: Child) -> crate::support::Ended {
    kill(child.id().cast_signed(), SIGTERM);
    finish(child).exits(0)
}

fn entries(folder: &Path) -> usize {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let counts = found.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + entries(&entry.path()),
        _ => 1,
    });
    counts.sum()
}

pub(crate) fn a_default_server_accepts_only_the_users_that_its_first_start_made() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let (listen, url) = free();
    let serve = || {
        let words = ["fleet", "server", "--listen", &listen];
        let mut server = start(&mut sandbox.interruptible(&words));
        assert_eq!(read_line(&mut server).trim(), format!("ready url={url}"));
        server
    };
    let server = serve();
    let fleet = |key: Option<&str>, words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url];
        all.extend(key.iter().flat_map(|key| ["--key", key]));
        all.extend(words);
        sandbox.interruptible(&all)
    };
    let mut accepted = 0;
    for words in [
        &["status"][..],
        &["submit", "campaign.yaml"],
        &["fetch", "1"],
    ] {
        let ended = end(&mut fleet(None, words)).exits(3);
        accepted += usize::from(!ended.stderr.contains("does not accept this user"));
    }
    let said = publish(&listen, "$KV.fleet-states.evil", "{}");
    accepted += usize::from(!said.contains("Authorization"));
    attack(
        "requests without a key that a default server accepts",
        accepted,
        0,
    );

    // With the keys that were made, as it says.
    let trusting = ["agent", "memory", "--trust", "fleet/trust"];
    let agent = start(&mut fleet(Some("fleet/agent.nk"), &trusting));
    let submitted = end(&mut fleet(
        Some("fleet/submitter.nk"),
        &["submit", "campaign.yaml"],
    ));
    let job = submitted.exits(0).stdout.trim().to_owned();
    wait_for("the job is done", || {
        let status = end(&mut fleet(Some("fleet/reader.nk"), &["status"])).exits(0);
        let done = format!("{job} campaign.yaml done in memory");
        status.stdout.contains(&done).then_some(())
    });
    end(&mut fleet(
        Some("fleet/reader.nk"),
        &["submit", "campaign.yaml"],
    ))
    .exits(3)
    .says("this user may not change");
    stop(agent);
    let said = stop(server).stderr;
    for words in [
        "first start: made fleet/users with an agent, a submitter and a reader".to_owned(),
        format!(
            "  cipherbench fleet --url {url} --key fleet/agent.nk agent LAB --trust fleet/trust\n"
        ),
        format!("  cipherbench fleet --url {url} --key fleet/submitter.nk submit CAMPAIGN\n"),
    ] {
        assert!(said.contains(&words), "{words}: {said}");
    }
    // A later start makes and says nothing, and accepts the same.
    let server = serve();
    end(&mut fleet(Some("fleet/reader.nk"), &["status"])).exits(0);
    end(&mut fleet(None, &["status"])).exits(3);
    assert!(!stop(server).stderr.contains("first start"));
}

pub(crate) fn no_command_and_no_page_writes_where_a_list_in_the_archive_leads() {
    let sandbox = Sandbox::new();
    let (listen, url) = free();
    let words = ["fleet", "server", "--open", "--listen", &listen];
    let mut server = start(&mut sandbox.interruptible(&words));
    read_line(&mut server);
    let fleet = |words: &[&str]| {
        let mut command = sandbox.interruptible(words);
        command
            .env("CIPHERBENCH_FLEET", &url)
            .env("XDG_CACHE_HOME", sandbox.path("cache"));
        command
    };
    let mut site = start(&mut fleet(&["fleet", "serve", "--listen", "127.0.0.1:0"]));
    let line = read_line(&mut site);
    let page = line
        .trim()
        .strip_prefix("ready url=http://")
        .expect("an address");
    let page = page.trim_end_matches('/');
    let outside = sandbox.path("outside");
    fs::create_dir(&outside).expect("a folder");
    let absolute = outside.join("run").display().to_string();
    for (number, run) in [absolute.as_str(), "../../../../../../outside/run", ".."]
        .into_iter()
        .enumerate()
    {
        let job = format!("evil-{number}");
        let list = serde_json::json!({ "job": job, "run": run, "files": [] });
        let said = publish(&listen, &format!("$KV.fleet-runs.{job}"), &list.to_string());
        assert!(said.starts_with("PONG"), "{said}");
        let of_fleet = format!("fleet:{job}");
        for words in [
            &["fleet", "fetch", &job, "--out", "fetched/a/b/c/d/e"][..],
            &["compare", &of_fleet, &of_fleet],
            &["report", &of_fleet],
            &["export", &of_fleet, "--format", "csv"],
        ] {
            let ended = end(&mut fleet(words));
            assert!(
                ended.stderr.contains("is not accepted as a file name"),
                "{}",
                ended.stderr
            );
        }
        assert_eq!(get_as(page, page, &format!("/run/{job}")).0, 404);
    }
    // A run that is larger than the cache, and one that is none: each time the same is said.
    let file = |path: &str, bytes: u64| serde_json::json!({ "path": path, "bytes": bytes, "sha256": "0".repeat(64) });
    for (job, files, why) in [
        (
            "evil-large",
            vec![file("journal.jsonl", 1), file("x", 5 << 30)],
            "copy it by `cipherbench fleet fetch`",
        ),
        ("evil-none", vec![], "it has no journal.jsonl"),
    ] {
        let list = serde_json::json!({ "job": job, "run": "run", "files": files });
        publish(&listen, &format!("$KV.fleet-runs.{job}"), &list.to_string());
        for _ in 0..2 {
            let ended = end(&mut fleet(&["report", &format!("fleet:{job}")]));
            ended.exits(2).says(why);
        }
        assert_eq!(get_as(page, page, &format!("/run/{job}")).0, 404);
    }
    let cached = entries(&sandbox.path("cache"));
    // Its folders, and the lock of the server's.
    attack("entries that such runs left in the cache", cached - 4, 0);
    attack("entries outside of the folder", entries(&outside), 0);
    let left = sandbox.path("outside/run").exists() || sandbox.path("fetched/run").exists();
    attack("runs placed elsewhere", usize::from(left), 0);
    stop(site);
    stop(server);
}

pub(crate) fn pages_of_other_sites_read_nothing_and_make_serve_write_nothing() {
    let sandbox = Sandbox::new();
    let (listen, url) = free();
    let words = ["fleet", "server", "--open", "--listen", &listen];
    let mut server = start(&mut sandbox.interruptible(&words));
    read_line(&mut server);
    let words = [
        "fleet",
        "--url",
        &url,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--name",
        "lab.example",
    ];
    let mut command = sandbox.interruptible(&words);
    command.env("XDG_CACHE_HOME", sandbox.path("cache"));
    let mut site = start(&mut command);
    let line = read_line(&mut site);
    let page = line
        .trim()
        .strip_prefix("ready url=http://")
        .expect("an address");
    let page = page.trim_end_matches('/');
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(page).expect("the page's server");
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer
            .split(' ')
            .nth(1)
            .and_then(|word| word.parse::<u16>().ok());
        (status.expect("a status"), answer.to_lowercase())
    };
    let mut read = 0;
    for path in ["/", "/cells", "/run/1", "/live/", "/page.js"] {
        for host in [
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
        ] {
            let (status, answer) = ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}"));
            read += usize::from(status != 421);
            assert!(
                answer.contains("x-content-type-options: nosniff"),
                "{answer}"
            );
        }
        // As a proxy is asked, which this is not.
        for (target, host) in [
            ("http://evil.example", page),
            ("http://evil.example", "evil.example"),
            ("http://localhost", page),
        ] {
            let (status, _) = ask(&format!("GET {target}{path} HTTP/1.1\r\nHost: {host}"));
            read += usize::from(status != 421);
        }
        for more in [
            "Origin: http://evil.example",
            "Origin: null",
            "Sec-Fetch-Site: cross-site",
        ] {
            let (status, _) = ask(&format!("GET {path} HTTP/1.1\r\nHost: {page}\r\n{more}"));
            read += usize::from(status != 403);
        }
    }
    attack("answers that a page of another site reads", read, 0);
    let mut taken = 0;
    for method in ["POST", "PUT", "DELETE"] {
        for path in ["/", "/run/1", "/cells"] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: {page}\r\nOrigin: http://evil.example\r\nContent-Length: 0"
            );
            taken += usize::from(ask(&head).0 != 405);
        }
    }
    attack("cross-site requests that could change something", taken, 0);
    for (path, host, expected) in [
        ("/", page, 200),
        ("/", "localhost", 200),
        ("/", "LAB.example:8422", 200),
        ("/run/1", page, 404),
    ] {
        let (status, answer) = ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}"));
        assert_eq!(status, expected, "{path} of {host}");
        assert!(
            answer.contains("content-security-policy: default-src 'none'"),
            "{answer}"
        );
    }
    stop(site);
    stop(server);
}
