//! A fleet of one lab, in memory, with a real nats-server.

pub(crate) mod attack;
mod labs;
mod page;

pub(crate) use labs::a_job_goes_to_the_lab_that_its_campaign_names_and_submit_says_if_none_is_there;
pub(crate) use page::a_fleet_is_seen_in_a_browser_and_a_run_is_followed_line_by_line;

use crate::support::{
    Sandbox, end, finish, kill, outcomes, read_line, repeat_if_busy, start, trial_records, wait_for,
};
use nix::sys::signal::{SIGKILL, SIGTERM};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const CAMPAIGN: &str = "\
campaign: queued
repeats: 1
calibrate: false
duts: [direct]
trials: [load: { frame: 512 B, rate: 1000 frames/s, duration: 100 ms }]
";

/// A free address, and the URL of a server there.
fn free() -> (String, String) {
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|port| port.local_addr())
        .expect("a free port");
    (address.to_string(), format!("nats://{address}"))
}

/// Writes a file that decides whom to trust: only its owner may have written it, whatever the
/// umask.
fn write_trusted(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.write(name, text);
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(sandbox.path(name), mode).expect("the owner's file");
}

/// Why there can be no server here.
pub(crate) fn missing() -> Option<String> {
    let is_missing = ::fleet::Server::program().is_none();
    is_missing.then(|| "no nats-server here: scripts/tools.sh nats".to_owned())
}

pub(crate) fn a_campaign_goes_through_a_fleet_and_comes_back_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let (listen, url) = free();
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
    let mut server = start(&mut interruptible(&[
        "server", "--open", "--listen", &listen,
    ]));
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
    let early = end(&mut fleet(&["fetch", &misfit])).exits(2).stderr;
    assert!(early.contains("it is queued"), "{early}");
    let mut watching = start(&mut fleet(&["watch", "--until-done"]));
    let line = read_line(&mut watching);
    assert_eq!(line.trim(), format!("{misfit} campaign.yaml queued"));
    let said = end(&mut fleet(&["cancel", &misfit])).exits(0).stdout;
    assert!(said.contains("is cancelled; it was queued"), "{said}");

    // Nothing is under way any more.
    let watched = finish(watching).exits(0).stdout;
    assert_eq!(watched, format!("{misfit} campaign.yaml cancelled\n"));
    let again = end(&mut fleet(&["cancel", &misfit])).exits(0).stdout;
    assert!(again.contains("was cancelled already"), "{again}");
    for command in ["cancel", "fetch", "release"] {
        let unknown = end(&mut fleet(&[command, "nothing"])).exits(2).stderr;
        assert!(
            unknown.contains("the fleet has no job nothing"),
            "{unknown}"
        );
    }
    let idle = end(&mut fleet(&["release", &job])).exits(2).stderr;
    assert!(idle.contains("does not run: it is done"), "{idle}");

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

    // The course of a cell over both runs, and one beside the other.
    let second = submit(&["--priority", "1"]);
    wait_for("the second run is done", || {
        is_told(&format!("{second} campaign.yaml done in memory"))
    });
    // A busy machine spoils a trial, which then is no point of the course.
    let fetched = end(&mut fleet(&["fetch", &second, "--out", "second"])).exits(0);
    let again = sandbox.path(fetched.stdout.trim());
    for run in [&run, &again] {
        let journal = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
        let trials = outcomes(&trial_records(&journal));
        repeat_if_busy(&trials, |outcome| outcome["kind"] == "measured");
    }
    let cells = end(&mut fleet(&["history"])).exits(0).stdout;
    let cell = cells.lines().next().expect("a cell");
    let course = end(&mut fleet(&["history", cell])).exits(0).stdout;
    assert!(
        course.contains("throughput, 2 runs, no change found"),
        "{course}"
    );
    for job in [&job, &second] {
        let line = format!("{job} in memory site=here: ");
        assert!(course.contains(&line), "{course}");
    }
    let json = end(&mut fleet(&["history", cell, "--json"]))
        .exits(0)
        .stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let points = &json["series"][0]["points"];
    assert_eq!(points.as_array().map(Vec::len), Some(2), "{json}");
    end(&mut fleet(&["history", "nothing"]))
        .exits(2)
        .says("no run of the fleet has a cell nothing");
    let compare = |base: &str| {
        let mut command = sandbox.program(&["compare", base, &format!("fleet:{second}"), "--json"]);
        command
            .env("CIPHERBENCH_FLEET", &url)
            .env("XDG_CACHE_HOME", sandbox.path("cache"));
        end(&mut command)
    };
    // The second time from the cache.
    for _ in 0..2 {
        let compared = compare(&format!("fleet:{job}")).stdout;
        assert!(
            compared.contains(&format!("\"name\": \"fleet:{job}\"")),
            "{compared}"
        );
    }
    // So do other commands that read a run.
    for words in [&["report", "--json"][..], &["export", "--format", "csv"]] {
        let run = format!("fleet:{job}");
        let mut command = sandbox.program(&[&[words[0], &run], &words[1..]].concat());
        command
            .env("CIPHERBENCH_FLEET", &url)
            .env("XDG_CACHE_HOME", sandbox.path("cache"));
        let read = end(&mut command).exits(0).stdout;
        assert!(read.contains(cell), "{words:?}: {read}");
    }
    compare("fleet:nothing")
        .exits(2)
        .says("the fleet has no job nothing");
    compare("fleet:../..")
        .exits(2)
        .says("the fleet has no job ../..");

    // A store has one server.
    let (elsewhere, _) = free();
    end(&mut fleet(&["server", "--open", "--listen", &elsewhere]))
        .exits(3)
        .says("another server uses fleet");

    // One that is killed leaves nothing that holds its address, and has lost nothing.
    kill(server.id().cast_signed(), SIGKILL);
    server.wait().expect("an end");
    let mut server = start(&mut interruptible(&[
        "server", "--open", "--listen", &listen,
    ]));
    let line = read_line(&mut server);
    assert_eq!(line.trim(), format!("ready url={url}"));
    wait_for("the fleet is as it was", || {
        is_told(&format!("{job} campaign.yaml done in memory"))
    });

    for child in [agent, server] {
        kill(child.id().cast_signed(), SIGTERM);
        finish(child).exits(0);
    }
}

pub(crate) fn users_do_what_they_may_and_a_campaign_loads_what_the_agent_allows() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "campaign.yaml",
        "campaign: loaded\nrepeats: 1\ndevices: [openssl: { provider: default }]\ntrials: [kat: { algorithms: [sha-256] }]\n",
    );
    sandbox.write("lab.yaml", "lab: card\nkind: device\n");
    let key = |name: &str| {
        let made = end(&mut sandbox.program(&["fleet", "key", name])).exits(0);
        made.stdout.trim().to_owned()
    };
    let users = ["reader", "submitter", "agent"].map(|role| format!("{role} {} us\n", key(role)));
    write_trusted(&sandbox, "users", &users.concat());
    write_trusted(&sandbox, "trust", &users[1].replace("submitter ", ""));
    write_trusted(&sandbox, "allow", "# what campaigns may load here\n");
    let (listen, url) = free();
    let words = ["fleet", "server", "--listen", &listen, "--users", "users"];
    let mut server = start(&mut sandbox.interruptible(&words));
    assert_eq!(read_line(&mut server).trim(), format!("ready url={url}"));
    let fleet = |user: &str, words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url, "--key", user];
        all.extend(words);
        end(&mut sandbox.program(&all))
    };
    let agent = || {
        let words = [
            "fleet", "--url", &url, "--key", "agent", "agent", "lab.yaml",
        ];
        let more = ["--allow", "allow", "--trust", "trust"];
        start(&mut sandbox.interruptible(&[&words[..], &more].concat()))
    };
    fleet("reader", &["submit", "campaign.yaml"])
        .exits(3)
        .says("this user may not change");
    let anonymous = ["fleet", "--url", &url, "status"];
    end(&mut sandbox.program(&anonymous))
        .exits(3)
        .says("does not accept this user");

    let submitted = fleet("submitter", &["submit", "campaign.yaml"]).exits(0);
    let job = submitted.stdout.trim().to_owned();
    let first = agent();
    let awaited = |words: &str| {
        wait_for(words, || {
            let status = fleet("reader", &["status"]).exits(0).stdout;
            status.contains(words).then_some(())
        });
    };
    // It names what it would load.
    awaited("allow does not allow");
    kill(first.id().cast_signed(), SIGTERM);
    finish(first).exits(0);
    write_trusted(&sandbox, "allow", "provider: default\n");
    let second = agent();
    awaited(&format!("{job} campaign.yaml done in card"));
    for child in [second, server] {
        kill(child.id().cast_signed(), SIGTERM);
        finish(child).exits(0);
    }
}

pub(crate) fn a_server_has_tls_and_follows_its_users_and_its_certificate() {
    let sandbox = Sandbox::new();
    let keys = |words: &[&str]| end(&mut sandbox.program(&[&["keys"], words].concat())).exits(0);
    keys(&["authority", "authority"]);
    let certificate = |out: &str| {
        let words = [
            "certificate",
            "--authority",
            "authority",
            "--out",
            out,
            "localhost",
        ];
        keys(&words);
    };
    for folder in ["first", "second"] {
        sandbox.make_folder(folder);
        certificate(folder);
    }
    let copy = |from: &str| {
        for file in ["localhost.pem", "localhost.key"] {
            fs::copy(sandbox.path(from).join(file), sandbox.path(file)).expect("a copy");
        }
    };
    copy("first");
    let key = |name: &str| {
        let made = end(&mut sandbox.program(&["fleet", "key", name])).exits(0);
        made.stdout.trim().to_owned()
    };
    let (alice, bob) = (key("alice"), key("bob"));
    write_trusted(&sandbox, "users", &format!("submitter {alice} Alice\n"));
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|port| port.local_addr())
        .expect("a free port");
    let listen = address.to_string();
    let url = format!("tls://localhost:{}", address.port());
    let words = ["fleet", "server", "--listen", &listen, "--users", "users"];
    let tls = ["--tls-cert", "localhost.pem", "--tls-key", "localhost.key"];
    let said = fs::File::create(sandbox.path("said")).expect("a file");
    let mut server = sandbox
        .interruptible(&[&words[..], &tls].concat())
        .stdout(Stdio::piped())
        .stderr(said)
        .spawn()
        .expect("the program");
    let line = read_line(&mut server);
    assert_eq!(line.trim(), format!("ready url=tls://{address}"));
    let await_said = |words: &str, times: usize| {
        wait_for(words, || {
            let said = fs::read_to_string(sandbox.path("said")).expect("a file");
            (said.matches(words).count() == times).then_some(())
        });
    };
    let status = |url: &str, more: &[&str]| {
        end(&mut sandbox.program(&[&["fleet", "--url", url, "status"], more].concat()))
    };
    let known = ["--ca", "authority/ca.pem", "--key", "alice"];
    status(&url, &known).exits(0);

    // Who does not know the authority is told what to name, in one error.
    for unknown in [url.as_str(), &format!("nats://{address}")] {
        let ended = status(unknown, &["--key", "alice"])
            .exits(3)
            .says("invalid peer certificate: UnknownIssuer\n")
            .says("help: name the certificate of who signed the server's: `--ca FILE`");
        assert_eq!(ended.stderr.lines().count(), 2, "{}", ended.stderr);
    }
    // Nor is it another name's, or no certificate at all.
    status(&format!("tls://{address}"), &known)
        .exits(3)
        .says("help: write `--url` with a name that is in the server's certificate");
    status(&url, &["--ca", "users", "--key", "alice"])
        .exits(2)
        .says("users: it has no certificate in PEM");
    status(&url, &["--ca", "nothing", "--key", "alice"])
        .exits(2)
        .says("cannot read the certificates nothing");

    // Users and the certificate change; one server all the while.
    let in_force = "the changed users or certificate are in force";
    let known_as_bob = ["--ca", "authority/ca.pem", "--key", "bob"];
    status(&url, &known_as_bob)
        .exits(3)
        .says("does not accept this user");
    write_trusted(&sandbox, "users", &format!("king {bob} Bob\n"));
    await_said("users:1: `king` is no role", 1);
    status(&url, &known).exits(0);
    write_trusted(&sandbox, "users", &format!("reader {bob} Bob\n"));
    await_said(in_force, 1);
    status(&url, &known_as_bob).exits(0);
    status(&url, &known)
        .exits(3)
        .says("does not accept this user");
    copy("second");
    await_said(in_force, 2);
    status(&url, &known_as_bob).exits(0);
    fs::copy(
        sandbox.path("first/localhost.key"),
        sandbox.path("localhost.key"),
    )
    .expect("a copy");
    await_said("stay as they were: nats-server says: ", 1);
    status(&url, &known_as_bob).exits(0);
    kill(server.id().cast_signed(), SIGTERM);
    finish(server).exits(0);

    // What does not belong together, and a server without TLS.
    end(&mut sandbox.program(&[&words[..], &tls].concat()))
        .exits(3)
        .says("help: see whether the files of --tls-cert and --tls-key belong together");
    let mut server = start(&mut sandbox.interruptible(&words[..4]));
    read_line(&mut server);
    status(&url, &["--ca", "authority/ca.pem"])
        .exits(3)
        .says("help: that server has no TLS");
    kill(server.id().cast_signed(), SIGTERM);
    finish(server).exits(0);
}

pub(crate) fn a_server_beyond_this_machine_wants_tls_or_a_word() {
    let sandbox = Sandbox::new();
    let server = |words: &[&str]| {
        let all = [&["fleet", "server", "--listen", "192.0.2.1:4222"], words].concat();
        end(&mut sandbox.program(&all))
    };
    server(&[])
        .exits(2)
        .says("--listen 192.0.2.1:4222: without TLS, who is on the network")
        .says("help: name a certificate (--tls-cert FILE --tls-key FILE)");
    server(&["--tls-cert", "nothing.pem", "--tls-key", "nothing.key"])
        .exits(2)
        .says("cannot read the certificates nothing.pem");
    for half in [["--tls-cert", "x"], ["--tls-key", "x"]] {
        server(&half)
            .exits(2)
            .says("required arguments were not provided");
    }
    server(&["--existing", "--tls-cert", "x", "--tls-key", "x"])
        .exits(2)
        .says("cannot be used with");
    // Nor does one without users serve other machines, whatever the network is.
    server(&["--open", "--plain"])
        .exits(2)
        .says("a server without users accepts everybody")
        .says("help: listen on 127.0.0.1, or have users");
    server(&["--open", "--users", "users"])
        .exits(2)
        .says("cannot be used with");
    server(&["--store-max", "much"])
        .exits(2)
        .says("--store-max");
}

pub(crate) fn check_names_each_command_that_is_not_allowed() {
    let sandbox = Sandbox::new();
    let campaign = |via: &str| {
        format!(
            "campaign: boxes\nrepeats: 1\nduts:\n  - external:\n      name: box\n      boxes:\n        - {via}up: [reload now, 'set mtu {{mtu}}']\ntrials: [ping: {{ mtu: 1500 B, count: 3 }}]\n"
        )
    };
    sandbox.write("here.yaml", &campaign(""));
    sandbox.write(
        "there.yaml",
        &campaign("via: ssh admin@192.0.2.1\n          "),
    );
    sandbox.write(
        "lab.yaml",
        "lab: outside\nkind: namespaces\nexternal: { station_a: eth1, station_b: eth2 }\n",
    );
    let check = |allowed: &str, campaign: &str| {
        write_trusted(&sandbox, "allow", allowed);
        let words = ["check", "--lab", "lab.yaml", campaign, "--allow", "allow"];
        end(&mut sandbox.program(&words))
    };
    check("", "here.yaml").exits(2).says(
        "DUT `box`, box 1 runs what allow does not allow\n  up: reload now\n  and 1 more such line",
    );
    check("up: reload now\n", "here.yaml")
        .exits(2)
        .says("  up: set mtu {mtu}\nhelp: ");
    let all = "up: reload now\n  up: set mtu {mtu}  \n";
    check(all, "here.yaml").exits(0);
    // What this machine may do is not what a box may do, nor the other way round.
    check(all, "there.yaml")
        .exits(2)
        .says("  up: ssh admin@192.0.2.1 reload now\n");
    let there = all.replace("up: ", "up: ssh admin@192.0.2.1 ");
    check(&there, "there.yaml").exits(0);
    check(&there, "here.yaml").exits(2);
    let missing = ["check", "here.yaml", "--allow", "nothing"];
    end(&mut sandbox.program(&missing))
        .exits(2)
        .says("cannot read nothing");
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
        &["watch"],
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
