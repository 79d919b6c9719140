//! Users that change while a server runs.

use crate::site::{Site, access, end, user};
use fleet::{Access, Fleet, FleetError, Selector, State};
use std::fs;
use std::path::{Path, PathBuf};

fn connect(site: &Site, key: &Path) -> Result<Fleet, FleetError> {
    let access = Access {
        key: Some(key.to_owned()),
        ..access(&site.url())
    };
    site.runtime.block_on(Fleet::connect(&access))
}

pub(crate) fn change() {
    let folder = tempfile::tempdir().unwrap();
    let (old, old_key) = user(folder.path(), "old");
    let (new, new_key) = user(folder.path(), "new");
    let (key, agent_key) = user(folder.path(), "agent-key");
    let file: PathBuf = folder.path().join("users");
    let agent_line = format!("agent {agent_key} lab\n");
    fs::write(&file, format!("reader {old_key} old\n{agent_line}")).unwrap();
    let site = Site::with_users(folder, file.clone());
    let pid = site.server_pid();
    let write = |text: &str, says: &str| {
        fs::write(&file, text).unwrap();
        let mut said = String::new();
        site.await_some("word of the server", || {
            said.push_str(&site.tend());
            said.contains(says).then_some(())
        });
        said
    };
    let in_force = "the changed users or certificate are in force";
    fs::create_dir(site.agent_folder("agent")).unwrap();
    fs::copy(&key, site.agent_folder("agent").join("key")).unwrap();
    let agent = site.start("agent", "lab");
    assert!(connect(&site, &new).is_err());

    // A mistake changes nothing, and is named.
    let said = write(
        &format!("reader {old_key} old\n{agent_line}submiter {new_key} new\n"),
        "stay as they were",
    );
    assert!(said.contains("users:3: `submiter` is no role"), "{said}");
    connect(&site, &old).unwrap();
    assert!(connect(&site, &new).is_err());

    // One more, and another role for one.
    let lines = format!("submitter {old_key} old\n{agent_line}submitter {new_key} new\n");
    write(&lines, in_force);
    let as_new = connect(&site, &new).unwrap();
    let id = site.submit_to(&as_new, 0, "held", Selector::default());
    site.submit_to(
        &connect(&site, &old).unwrap(),
        1,
        "fine",
        Selector::default(),
    );
    site.await_running(&id);

    // Without the agent, whose run goes on and who says why, and without the old one.
    write(&format!("submitter {new_key} new\n"), in_force);
    site.await_some("word of the agent", || {
        let log = site.log("agent");
        log.contains("the server does not accept this agent")
            .then_some(())
    });
    let refused = connect(&site, &old).err().map(|error| error.to_string());
    let refused = refused.unwrap_or_default();
    assert!(refused.contains("does not accept this user"), "{refused}");
    // Whoever stays is not bothered.
    site.runtime.block_on(as_new.states()).unwrap();
    site.go("agent");
    site.await_end_of_run("agent", "lab", &id);
    assert!(matches!(site.states()[&id], State::Running(_)));

    write(&lines, in_force);
    let states = site.await_all("done", |state| matches!(state, State::Done { .. }));
    assert!(matches!(&states[&id], State::Done { held, .. } if held.attempt == 1));
    // All that with one server.
    assert_eq!(site.server_pid(), pid);
    end(agent);
}
