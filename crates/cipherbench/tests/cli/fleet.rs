//! A fleet of one lab, in memory, with a real nats-server.

use crate::support::{Sandbox, end, finish, kill, read_line, start, wait_for};
use nix::sys::signal::SIGTERM;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

const CAMPAIGN: &str = "\
campaign: queued
repeats: 1
calibrate: false
duts: [direct]
trials: [load: { frame: 512 B, rate: 1000 frames/s, duration: 100 ms }]
";

/// Why there can be no server here. Where CI runs it must be there.
pub(crate) fn missing() -> Option<String> {
    let find =
        "PATH=$PATH:$HOME/.local/bin:$HOME/.cache/cipherbench-tools/bin command -v nats-server";
    let found = Command::new("sh").args(["-c", find]).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    let may_lack = std::env::var_os("CI").is_none_or(|ci| ci != "true");
    (!is_there && may_lack)
        .then(|| "nats-server is not installed: scripts/tools.sh nats".to_owned())
}

pub(crate) fn a_campaign_goes_through_a_fleet_and_comes_back_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|port| port.local_addr())
        .expect("a free port");
    let url = format!("nats://{address}");
    let fleet = |words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url];
        all.extend(words);
        sandbox.program(&all)
    };
    let interruptible = |words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url];
        all.extend(words);
        sandbox.interruptible(&all)
    };
    let listen = address.to_string();
    let mut server = start(&mut interruptible(&["server", "--listen", &listen]));
    let line = read_line(&mut server);
    assert_eq!(line.trim(), format!("ready url={url}"));
    let agent = start(&mut interruptible(&[
        "agent",
        "memory",
        "--label",
        "site=here",
    ]));

    let submit = |words: &[&str]| {
        let mut all = vec!["submit", "campaign.yaml"];
        all.extend(words);
        let ended = end(&mut fleet(&all)).exits(0);
        ended.stdout.trim().to_owned()
    };
    let job = submit(&["--select", "site=here"]);
    let misfit = submit(&["--select", "site=there"]);
    let status = || end(&mut fleet(&["status"])).exits(0).stdout;
    let is_told = |words: &str| {
        status()
            .lines()
            .any(|line| line.contains(words))
            .then_some(())
    };
    wait_for("the run is done", || {
        is_told(&format!("{job} campaign.yaml done in memory"))
    });
    wait_for("why it does not fit is told", || {
        is_told("not in memory: it asks for site=there, and the lab has here")
    });
    let said = end(&mut fleet(&["cancel", &misfit])).exits(0).stdout;
    assert!(said.contains("is cancelled; it was queued"), "{said}");

    let fetched = end(&mut fleet(&["fetch", &job, "--out", "fetched"])).exits(0);
    let run = sandbox.path(fetched.stdout.trim());
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    assert!(journal.lines().count() > 2, "{journal}");
    let again = end(&mut fleet(&["fetch", &job, "--out", "fetched"])).exits(2);
    assert!(again.stderr.contains("exists"), "{}", again.stderr);
    // It is a run like any other.
    let words = ["report", run.to_str().expect("a path in UTF-8"), "--json"];
    let report = end(&mut sandbox.program(&words));
    assert!(report.stdout.contains("\"queued\""), "{}", report.stdout);

    for child in [agent, server] {
        kill(child.id().cast_signed(), SIGTERM);
        finish(child).exits(0);
    }
}

pub(crate) fn without_a_server_each_command_says_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let nowhere = "nats://127.0.0.1:9";
    for words in [
        &["status"][..],
        &["submit", "campaign.yaml"],
        &["agent", "memory"],
        &["fetch", "1"],
    ] {
        let mut all = vec!["fleet", "--url", nowhere];
        all.extend(words);
        let ended = end(&mut sandbox.program(&all)).exits(3);
        let stderr = &ended.stderr;
        assert!(
            stderr.contains("cannot reach the fleet's server at nats://127.0.0.1:9"),
            "{stderr}"
        );
        assert!(
            stderr.contains("help: start one with `cipherbench fleet server`"),
            "{stderr}"
        );
    }
    sandbox.write("campaign.yaml", "campaign: x\nduts: [nonsense]\n");
    let words = ["fleet", "--url", nowhere, "submit", "campaign.yaml"];
    end(&mut sandbox.program(&words))
        .exits(2)
        .says("campaign.yaml");
}
