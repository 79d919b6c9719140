//! Entries of the queue that no version of this program writes.

use super::{RunningAgent, await_done, await_some, connect, open_server, put};
use crate::job::job;
use fleet::{Change, State, submit, watch};
use std::collections::BTreeSet;
use std::process::Command;
use testing::attack;

/// What an attacker writes: no JSON, JSON of another form, and names that lead elsewhere.
const JUNK: [&str; 5] = ["{}", "\u{1b}[2J", "[1]", "\"\"", "null"];

#[test]
fn entries_that_cannot_be_read_stop_nobody_and_are_removed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    fleet::run(async {
        server.set_up().await.unwrap();
        for bucket in [
            "fleet-states",
            "fleet-labs",
            "fleet-repeats",
            "fleet-jobs",
            "fleet-misfits",
        ] {
            for (number, junk) in JUNK.into_iter().enumerate() {
                put(&server, bucket, &format!("evil{number}"), junk.to_owned()).await;
            }
        }
        // Readable, but under another name than its own, and repeated every second.
        let mut other = job("../other", "fine");
        other.every = Some(1);
        let other = serde_json::to_string(&other).unwrap();
        put(&server, "fleet-repeats", "evil-other", other.clone()).await;
        put(&server, "fleet-jobs", "evil-other", other).await;
        let queued = r#"{"state":"queued","attempts":0,"priority":9}"#;
        for key in ["evil-other", "evil0", "no-job"] {
            put(&server, "fleet-states", key, queued.to_owned()).await;
        }
        // The lab's own lease, and the reasons why the job does not fit.
        put(&server, "fleet-labs", "lab", "{}".to_owned()).await;
    });
    let agent = RunningAgent::start(&server, &folder.path().join("agent"), None);
    fleet::run(async {
        let fleet = connect(&server).await;
        submit(&fleet, &job("1", "fine")).await.unwrap();
    });
    await_done(&server, "1");
    let unreadable = fleet::run(async {
        let fleet = connect(&server).await;
        let listing = fleet.list(None).await.unwrap();
        let ids: Vec<_> = listing.rows.iter().map(|row| row.job.id.as_str()).collect();
        assert_eq!(ids, ["1"]);
        assert_eq!(fleet.offers().await.unwrap().len(), 1);
        assert!(fleet.repeats().await.unwrap().is_empty());
        submit(&fleet, &job("2", "fine")).await.unwrap();
        let (_stop, stopped) = watch::channel(false);
        let mut seen = BTreeSet::new();
        // The jobs of attackers never end.
        let see = |change: Change<'_>| {
            if let Change::Job(job, State::Done { .. }) = change {
                seen.insert(job.id.clone());
            }
        };
        let limit = std::time::Duration::from_secs(20);
        let _ = tokio::time::timeout(limit, fleet.watch(false, stopped, see)).await;
        assert!(seen.contains("2"), "{seen:?}");
        assert!(fleet.cancel("1").await.unwrap().is_some());
        fleet.unreadable()
    });
    attack(
        "entries that list no other entry",
        usize::from(unreadable.is_empty()),
        0,
    );
    for entry in &unreadable {
        let text = entry.to_string();
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    await_some("word of the agent", || {
        let log = agent.log();
        let is_said = log.contains("entry fleet-states/evil1 is left out: ");
        (is_said && log.contains("fleet discard fleet-states/evil1")).then_some(())
    });
    agent.end().unwrap();
    fleet::run(async {
        let fleet = connect(&server).await;
        for entry in &unreadable {
            assert!(
                fleet.discard(&entry.bucket, &entry.key).await.unwrap(),
                "{entry}"
            );
            assert!(
                !fleet.discard(&entry.bucket, &entry.key).await.unwrap(),
                "{entry}"
            );
        }
        // What can be read is not removed so.
        assert!(fleet.discard("fleet-states", "1").await.is_err());
        assert!(fleet.discard("fleet-meta", "schema").await.is_err());
        assert!(fleet.unreadable().is_empty());
    });
}

/// Keys that no version of this program writes, and that a terminal or a shell would obey.
const STRAY_KEYS: [&str; 4] = ["evil\u{1b}[2J", "evil;reboot", "$(id)'", "a\\u{1b}b"];

#[test]
fn entries_under_any_key_are_removed_by_the_name_that_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    fleet::run(async {
        server.set_up().await.unwrap();
        let client = async_nats::connect(&server.access().url).await.unwrap();
        for key in STRAY_KEYS {
            let subject = format!("$KV.fleet-states.{key}");
            client.publish(subject, "{}".into()).await.unwrap();
        }
        put(&server, "fleet-states", "other", "{}".to_owned()).await;
        client.flush().await.unwrap();
        let fleet = connect(&server).await;
        // Only the entry that is named, and no pattern of several.
        assert!(!fleet.discard("fleet-states", "*").await.unwrap());
        assert!(!fleet.discard("fleet-states", ">").await.unwrap());
        fleet.list(None).await.unwrap();
        let unreadable = fleet.unreadable();
        assert_eq!(unreadable.len(), STRAY_KEYS.len() + 1, "{unreadable:?}");
        let mut left = 0;
        for entry in unreadable {
            let text = entry.to_string();
            assert_eq!(guard::visible(&text), text);
            // As an operator copies it into a shell.
            let (_, command) = text.split_once("; `").unwrap();
            let command = command.strip_suffix("` removes it").unwrap();
            let shell = format!("cipherbench() {{ printf %s \"$3\"; }}; {command}");
            let shell = Command::new("sh").args(["-c", &shell]).output().unwrap();
            let shown = String::from_utf8(shell.stdout).unwrap();
            let name = guard::unescaped(&shown);
            let (bucket, key) = name.split_once('/').unwrap();
            left += usize::from(
                !fleet
                    .discard(bucket, key)
                    .await
                    .is_ok_and(|was_there| was_there),
            );
        }
        attack("unreadable entries that no name removes", left, 0);
        fleet.list(None).await.unwrap();
        assert!(fleet.unreadable().is_empty());
    });
}

#[test]
fn a_campaign_that_no_entry_can_hold_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = open_server(&folder) else {
        return;
    };
    fleet::run(async {
        let fleet = server.set_up().await.unwrap();
        // More than earlier versions took, and as much as a campaign's file may have.
        submit(&fleet, &job("1", &"x".repeat(700 << 10)))
            .await
            .unwrap();
        for text in [
            "x".repeat(1 << 20),
            "\n".repeat(600 << 10),
            "x".repeat(64 << 20),
        ] {
            let error = submit(&fleet, &job("2", &text))
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains("divide the campaign"), "{error}");
        }
        assert!(submit(&fleet, &job("../2", "fine")).await.is_err());
        attack(
            "jobs in the queue that are too large",
            fleet.states().await.unwrap().len() - 1,
            0,
        );
    });
}
