//! Signed jobs that an attacker with write access to the queue queues again.

use super::{RunningAgent, await_done, await_misfit, await_some, connect, open_server, put};
use crate::job::job;
use fleet::{Fleet, Identity, Job, State, Terms, submit};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use testing::attack;

const HOUR: Duration = Duration::from_secs(3600);

/// A folder that others may not change, whatever the umask is.
fn private_folder() -> TempDir {
    let mode = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(mode).tempdir();
    folder.unwrap()
}

/// A submitter's key, and a file by which agents trust it.
fn submitter(folder: &Path) -> (Identity, PathBuf) {
    let identity = Identity::create(&folder.join("submitter.nk")).unwrap();
    let trust = folder.join("trust");
    fs::write(&trust, format!("{} us\n", identity.public())).unwrap();
    // Whatever the umask is.
    fs::set_permissions(&trust, fs::Permissions::from_mode(0o600)).unwrap();
    (identity, trust)
}

fn signed(fleet: &str, identity: &Identity, id: &str) -> Job {
    let mut job = job(id, "fine");
    job.sign(identity, Terms::now(fleet, HOUR, None));
    job
}

async fn queue(fleet: &Fleet, job: &Job) {
    submit(fleet, job).await.unwrap();
}

#[test]
fn a_signed_job_that_ended_is_not_run_again_also_after_a_restart_of_the_agent() {
    let folder = private_folder();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let (identity, trust) = submitter(folder.path());
    let fleet_id = fleet::run(async { server.set_up().await.unwrap().id().to_owned() });
    let agent_folder = folder.path().join("agent");
    let agent = RunningAgent::start(&server, &agent_folder, Some(&trust));
    let job = signed(&fleet_id, &identity, "1");
    fleet::run(async { queue(&connect(&server).await, &job).await });
    await_done(&server, "1");
    assert_eq!(agent.runs(), 1);

    let queued = r#"{"state":"queued","attempts":0,"priority":0}"#;
    fleet::run(put(&server, "fleet-states", "1", queued.to_owned()));
    let reason = await_misfit(&server, "1");
    assert!(reason.contains("it ran here already"), "{reason}");
    agent.end().unwrap();
    fleet::run(put(&server, "fleet-misfits", "1", "{}".to_owned()));
    let agent = RunningAgent::start(&server, &agent_folder, Some(&trust));
    await_misfit(&server, "1");
    // As if the agent had taken it before it was killed.
    let identity_of_agent = fs::read_to_string(agent_folder.join("agent")).unwrap();
    let running = serde_json::json!({
        "state": "running", "lab": "lab", "agent": identity_of_agent, "attempt": 1,
    });
    fleet::run(put(&server, "fleet-states", "1", running.to_string()));
    let reason = await_some("end of the forged run", || {
        match fleet::run(async { connect(&server).await.state("1").await }) {
            Ok(Some(State::Parked { reason })) => Some(reason),
            _ => None,
        }
    });
    assert!(reason.contains("it ran here already"), "{reason}");
    attack("runs of a replayed signed job", agent.runs() - 1, 0);
    agent.end().unwrap();
}

#[test]
fn a_signed_job_that_found_its_lab_busy_runs_once_when_it_is_queued_again() {
    let folder = private_folder();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let (identity, trust) = submitter(folder.path());
    let fleet_id = fleet::run(async { server.set_up().await.unwrap().id().to_owned() });
    let agent_folder = folder.path().join("agent");
    fs::create_dir(&agent_folder).unwrap();
    let busy = agent_folder.join("busy");
    fs::write(&busy, "").unwrap();
    let agent = RunningAgent::start(&server, &agent_folder, Some(&trust));
    let await_parked = |id: &str| {
        await_some("end without a run", || {
            match fleet::run(async { connect(&server).await.state(id).await }) {
                Ok(Some(State::Parked { reason })) => Some(reason),
                _ => None,
            }
        })
    };
    let requeue = |id: &str| {
        let queued = r#"{"state":"queued","attempts":0,"priority":0}"#;
        fleet::run(put(&server, "fleet-states", id, queued.to_owned()));
    };
    for id in ["1", "2"] {
        let job = signed(&fleet_id, &identity, id);
        fleet::run(async { queue(&connect(&server).await, &job).await });
        let reason = await_parked(id);
        assert!(reason.contains("exit code 3"), "{reason}");
    }
    fs::remove_file(&busy).unwrap();
    requeue("1");
    await_done(&server, "1");
    assert_eq!(agent.runs(), 1);
    // It ran: that is all.
    requeue("1");
    let reason = await_misfit(&server, "1");
    assert!(reason.contains("it ran here already"), "{reason}");
    // Nor is one that never runs begun for ever.
    fs::write(&busy, "").unwrap();
    for _ in 0..2 {
        requeue("2");
        await_parked("2");
    }
    requeue("2");
    let reason = await_misfit(&server, "2");
    assert!(reason.contains("it began here 3 times"), "{reason}");
    attack(
        "runs of a signed job that found its lab busy",
        agent.runs(),
        1,
    );
    agent.end().unwrap();
}

#[test]
fn a_job_that_was_signed_for_another_fleet_or_has_expired_is_not_run() {
    let folder = private_folder();
    let Some(server) = open_server(&folder) else {
        return;
    };
    let (identity, trust) = submitter(folder.path());
    let fleet_id = fleet::run(async { server.set_up().await.unwrap().id().to_owned() });
    let agent = RunningAgent::start(&server, &folder.path().join("agent"), Some(&trust));
    let mut expired = job("2", "fine");
    let terms = Terms::now(&fleet_id, Duration::ZERO, None);
    expired.sign(&identity, terms);
    let mut repeated = Job {
        every: Some(48 * 3600),
        ..job("3", "fine")
    };
    repeated.sign(&identity, Terms::now(&fleet_id, 100 * HOUR, repeated.every));
    let hostile = [
        (
            signed("another-fleet", &identity, "1"),
            "signed for the fleet",
        ),
        (expired, "expired"),
        // All periods at once, one beyond the last, and the repetition itself.
        (repeated.in_period(1), "its time begins in"),
        (repeated.in_period(7), "periods"),
        (repeated, "without its period"),
    ];
    for (job, why) in &hostile {
        fleet::run(async { queue(&connect(&server).await, job).await });
        let reason = await_misfit(&server, &job.id);
        assert!(reason.contains(why), "{reason}");
    }
    attack("runs of jobs for another fleet or time", agent.runs(), 0);

    // A server with the id of another fleet, such as one of which signed jobs are known.
    agent.end().unwrap();
    fleet::run(put(
        &server,
        "fleet-meta",
        "id",
        "\"another-fleet\"".to_owned(),
    ));
    let agent = RunningAgent::start(&server, &folder.path().join("agent"), Some(&trust));
    let runs_before = agent.runs();
    await_some("end of the agent", || {
        let thread = agent.thread.as_ref()?;
        thread.is_finished().then_some(())
    });
    assert_eq!(agent.runs(), runs_before);
    let error = agent.end().unwrap_err().to_string();
    assert!(
        error.contains("has run signed jobs of the fleet"),
        "{error}"
    );
}
