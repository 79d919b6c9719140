//! Users: what they may do at the server, and whose jobs an agent runs.

use crate::site::{Site, access, end, job, user};
use fleet::{Access, Fleet, FleetError, Job, Selector, State, Terms, submit, upload};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn connect(site: &Site, key: &Path) -> Fleet {
    let access = Access {
        key: Some(key.to_owned()),
        ..access(&site.url())
    };
    site.runtime.block_on(Fleet::connect(&access)).unwrap()
}

/// What is asked is denied, at once and with the words that say so.
fn is_denied<T>(asked: Result<T, FleetError>, what: &str) {
    let error = asked
        .err()
        .map_or_else(String::new, |error| error.to_string());
    assert!(error.contains("this user may not"), "{error}");
    assert!(error.contains(what), "{error}");
}

pub(crate) fn roles() {
    let folder = tempfile::tempdir().unwrap();
    let roles = ["reader", "submitter", "agent"];
    let users = roles.map(|role| user(folder.path(), role));
    let lines: Vec<String> = roles
        .iter()
        .zip(&users)
        .map(|(role, (_, key))| format!("{role} {key} {role}\n"))
        .collect();
    let file = folder.path().join("users");
    fs::write(&file, lines.concat()).unwrap();
    let site = Site::with_users(folder, file);
    let run = site.folder.path().join("a-run");
    fs::create_dir(&run).unwrap();
    fs::write(run.join("journal.jsonl"), "{}\n").unwrap();
    let [(reader, _), (submitter, _), (agent, _)] = &users;

    let as_reader = connect(&site, reader);
    let queue = |fleet: &Fleet, id: &str, campaign: &str| {
        site.runtime.block_on(submit(fleet, &job(id, campaign)))
    };
    is_denied(queue(&as_reader, "1", "fine"), "$KV.fleet-jobs.1");
    assert!(site.states().is_empty());

    let as_submitter = connect(&site, submitter);
    queue(&as_submitter, "2", "fine").unwrap();
    let uploaded = site.runtime.block_on(upload(&as_submitter, "2", &run));
    is_denied(uploaded, "$O.fleet-files.");
    // Nor has it a lab, or runs a job.
    fs::create_dir(site.agent_folder("false")).unwrap();
    fs::copy(submitter, site.agent_folder("false").join("key")).unwrap();
    let false_agent = site.start("false", "lab");
    site.await_some("denial", || {
        site.logs()
            .contains("may not change lab of fleet-labs")
            .then_some(())
    });
    end(false_agent);
    assert!(
        site.runtime
            .block_on(as_reader.offers())
            .unwrap()
            .is_empty()
    );

    fs::create_dir(site.agent_folder("true")).unwrap();
    fs::copy(agent, site.agent_folder("true").join("key")).unwrap();
    let true_agent = site.start("true", "lab");
    site.await_all("done", |state| matches!(state, State::Done { .. }));
    site.check_run(&as_reader, "2");
    let mut lines = Vec::new();
    let follow = as_reader.follow_records("2", |record| lines.push(record.line));
    assert!(site.runtime.block_on(follow).unwrap());
    assert_eq!(lines, (1..=10).collect::<Vec<u64>>());
    let cancelled = site.runtime.block_on(as_reader.cancel("2")).unwrap();
    assert!(matches!(cancelled, Some(State::Done { .. })));
    queue(&as_submitter, "3", "unfit").unwrap();
    let denied = site.runtime.block_on(as_reader.cancel("3"));
    is_denied(denied, "$KV.fleet-states.3");
    let cancelled = site.runtime.block_on(as_submitter.cancel("3")).unwrap();
    assert!(matches!(cancelled, Some(State::Queued { .. })));
    end(true_agent);

    // The same of the subjects themselves, for a program that is not ours.
    let raw = [
        (reader, "$KV.fleet-jobs.9"),
        (reader, "$KV.fleet-states.9"),
        (submitter, "$KV.fleet-labs.lab"),
        (submitter, "$KV.fleet-runs.9"),
        (submitter, "$O.fleet-files.C.9"),
        (submitter, "fleet.records.9"),
        (agent, "$KV.fleet-meta.schema"),
        (agent, "$JS.API.STREAM.DELETE.KV_fleet-jobs"),
    ];
    for (key, subject) in raw {
        assert!(!is_written(&site, key, subject), "{subject}");
    }
    assert!(is_written(&site, submitter, "$KV.fleet-jobs.9"));

    // Who has no key, or one that is not known, is not let in.
    let (stranger, _) = user(site.folder.path(), "stranger");
    for key in [None, Some(stranger)] {
        let access = Access {
            key,
            ..access(&site.url())
        };
        let refused = site.runtime.block_on(Fleet::connect(&access)).err();
        let error = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("does not accept this user"), "{error}");
        assert!(error.contains("--key FILE"), "{error}");
    }
}

/// Whether a message to that subject is acknowledged.
fn is_written(site: &Site, key: &Path, subject: &'static str) -> bool {
    let seed = fs::read_to_string(key).unwrap();
    let public = fleet::Identity::read(key).unwrap().public();
    site.runtime.block_on(async {
        let client = async_nats::ConnectOptions::with_nkey(seed.trim().to_owned())
            .custom_inbox_prefix(format!("_INBOX.{public}"))
            .connect(site.url())
            .await
            .unwrap();
        let answer = client.request(subject, "{}".into());
        let answer = tokio::time::timeout(Duration::from_secs(1), answer).await;
        answer.is_ok_and(|answer| answer.is_ok())
    })
}

pub(crate) fn signatures() {
    let site = Site::new();
    let folder = site.folder.path();
    let (ours, our_key) = user(folder, "ours");
    let (theirs, _) = user(folder, "theirs");
    fs::create_dir(site.agent_folder("agent")).unwrap();
    fs::write(
        site.agent_folder("agent").join("trust"),
        format!("{our_key} us\n"),
    )
    .unwrap();
    let agent = site.start("agent", "lab");
    let fleet = site.fleet();
    let queue = |job: Job, key: Option<&Path>| {
        let mut job = job;
        if let Some(key) = key {
            let terms = Terms::now(fleet.id(), Duration::from_secs(3600), job.every);
            job.sign(&fleet::Identity::read(key).unwrap(), terms);
        }
        site.runtime.block_on(submit(&fleet, &job)).unwrap();
        job
    };
    let signed = queue(job("1", "fine"), Some(&ours));
    queue(job("2", "fine"), None);
    queue(job("3", "fine"), Some(&theirs));
    let changed = Job {
        id: "4".to_owned(),
        selector: Selector::default(),
        ..signed
    };
    queue(changed, None);
    for (id, reason) in [
        ("2", "it is not signed"),
        ("3", "whose key this agent does not trust"),
        ("4", "it was changed"),
    ] {
        let said = site.misfit(id, "lab");
        assert!(said.contains(reason), "{said}");
    }
    let done = site.await_some("run", || {
        let states = site.states();
        matches!(states["1"], State::Done { .. }).then_some(states)
    });
    let queued = ["2", "3", "4"].map(|id| done[id].word());
    assert_eq!(queued, ["queued"; 3]);
    end(agent);
}
