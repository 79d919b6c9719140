//! Labs and what runs in them.

use crate::site::{PATIENCE, Site, kill};
use fleet::{Selector, State};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

pub(crate) fn deadly() {
    let site = Site::new();
    let mut agent = site.start("agent", "lab");
    site.submit(0, "deadly", Selector::default());
    let since = Instant::now();
    let states = loop {
        if let Ok(Some(_)) = agent.try_wait() {
            agent = site.start("agent", "lab");
        }
        let states = site.states();
        if states.values().all(State::is_final) {
            break states;
        }
        assert!(since.elapsed() < PATIENCE, "{states:?}\n{}", site.logs());
    };
    let [state] = Vec::from_iter(states.values())[..] else {
        panic!("{states:?}");
    };
    let State::Parked { reason } = state else {
        panic!("{state:?}");
    };
    assert!(
        reason.contains("3 runs of it ended with their agent"),
        "{reason}"
    );
    // The agent lives on, and takes the next.
    site.submit(1, "fine", Selector::default());
    site.await_all("at an end", State::is_final);
    kill(agent.id());
    agent.wait().unwrap();
}

pub(crate) fn misfits() {
    let site = Site::new();
    let mut agent = site.start("agent", "lab");
    let asks = |key: &str, value: &str| Selector {
        labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        ..Selector::default()
    };
    site.submit(0, "unfit", Selector::default());
    site.submit(1, "fine", asks("site", "there"));
    let wrong = site.submit(2, "wrong", asks("site", "here"));
    let is_parked = |states: &BTreeMap<String, State>| match &states[&wrong] {
        State::Parked { reason } => Some(reason.clone()),
        _ => None,
    };
    let since = Instant::now();
    let reason = loop {
        if let Some(reason) = is_parked(&site.states()) {
            break reason;
        }
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
    };
    assert!(reason.contains("a wrong campaign"), "{reason}");
    assert_eq!(
        site.misfit("00000000", "lab"),
        "error: this lab has 2 cores of 4"
    );
    assert_eq!(
        site.misfit("00000001", "lab"),
        "it asks for site=there, and the lab has here"
    );
    let fleet = site.fleet();
    for id in ["00000000", "00000001"] {
        let before = site.runtime.block_on(fleet.cancel(id)).unwrap();
        assert!(matches!(before, Some(State::Queued { .. })), "{before:?}");
    }
    site.await_all("at an end", State::is_final);
    kill(agent.id());
    agent.wait().unwrap();
}

pub(crate) fn one_agent() {
    let site = Site::new();
    // Whose clocks are wrong: each waits by its monotonic one.
    let mut first = site.start_with("first", "lab", &site.url(), "+1d");
    let fleet = site.fleet();
    let holder = || {
        let offers = site.runtime.block_on(fleet.offers()).unwrap();
        offers.first().map(|offer| offer.agent.clone())
    };
    let since = Instant::now();
    let one = loop {
        if let Some(holder) = holder() {
            break holder;
        }
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
    };
    let mut second = site.start_with("second", "lab", &site.url(), "-1d");
    for number in 0..3 {
        site.submit(number, "fine", Selector::default());
    }
    let states = site.await_all("at an end", State::is_final);
    for state in states.values() {
        let State::Done { held, .. } = state else {
            panic!("{state:?}");
        };
        assert_eq!(held.agent, one);
    }
    // A job is done a moment before its agent gives the lab back.
    site.await_some("lab without a job", || {
        let offers = site.runtime.block_on(fleet.offers()).ok()?;
        offers.first().filter(|offer| offer.job.is_none()).map(drop)
    });
    // Once the first is gone, the second has the lab.
    kill(first.id());
    first.wait().unwrap();
    let since = Instant::now();
    while holder().is_none_or(|holder| holder == one) {
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(site.logs().contains("has it"), "{}", site.logs());
    kill(second.id());
    second.wait().unwrap();
}

/// Of two agents, one of them with two labs.
pub(crate) fn turns() {
    let site = Site::new();
    let machine = site.folder.path().join("the-machine");
    fs::create_dir(&machine).unwrap();
    for name in ["first", "second"] {
        fs::create_dir(site.agent_folder(name)).unwrap();
        let place = machine.to_str().unwrap();
        fs::write(site.agent_folder(name).join("machine"), place).unwrap();
    }
    let mut agents = [
        site.start("first", "one"),
        site.start("second", "two,three"),
    ];
    let in_lab = |lab: &str| Selector {
        lab: Some(lab.to_owned()),
        ..Selector::default()
    };
    let held = site.submit(0, "held slow", in_lab("one"));
    site.await_running(&held);
    let fleet = site.fleet();
    let mut waiting = Vec::new();
    for (number, lab) in (1..).zip(["two", "three", "two", "three"]) {
        waiting.push(site.submit(number, "fine", in_lab(lab)));
    }
    site.await_some("labs that wait for their turn", || {
        let offers = site.runtime.block_on(fleet.offers()).ok()?;
        let waits = offers.iter().filter(|offer| offer.waits);
        (waits.count() == 2).then_some(())
    });
    for lab in ["two", "three"] {
        let said = format!("{lab}: waits for its turn: another lab of its machine is measured");
        assert!(site.logs().contains(&said), "{}", site.logs());
    }
    // They take no job that they cannot begin.
    let states = site.states();
    for id in &waiting {
        assert!(matches!(states[id], State::Queued { .. }), "{states:?}");
    }
    // What runs keeps its turn, also over the end of its agent.
    site.go("first");
    site.await_some("a line of the journal", || {
        let journal = site.run_of("first", "one", &held).join("journal.jsonl");
        let text = fs::read_to_string(journal).unwrap_or_default();
        (!text.is_empty()).then_some(())
    });
    kill(agents[0].id());
    agents[0].wait().unwrap();
    agents[0] = site.start("first", "one");
    site.await_all("done", |state| matches!(state, State::Done { .. }));
    for id in waiting.iter().chain([&held]) {
        site.check_run(&fleet, id);
    }
    for name in ["first", "second"] {
        assert!(site.agent_folder(name).join("serving").exists(), "{name}");
    }
    for agent in agents {
        crate::site::end(agent);
    }
}

pub(crate) fn migration() {
    let site = Site::new();
    let address = site.url();
    site.runtime.block_on(async {
        let client = async_nats::connect(address).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let meta = context.get_key_value("fleet-meta").await.unwrap();
        meta.put("schema", "1".into()).await.unwrap();
        // As it was: jobs without what is new, and no buckets of it.
        let job = r#"{"id":"old","name":"campaign.yaml","campaign":"fine","quick":false,
            "selector":{"lab":null,"labels":{}},"priority":0,"labels":{},"by":"test"}"#;
        let jobs = context.get_key_value("fleet-jobs").await.unwrap();
        jobs.put("old", job.into()).await.unwrap();
        let states = context.get_key_value("fleet-states").await.unwrap();
        let state = r#"{"state":"queued","attempts":0}"#;
        states.put("old", state.into()).await.unwrap();
        for new in ["fleet-repeats", "fleet-figures"] {
            context.delete_key_value(new).await.unwrap();
        }
    });
    let access = crate::site::access(&site.url());
    let old = site.runtime.block_on(fleet::Fleet::connect(&access));
    let error = old.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(
        error.contains("has schema 1, and this program 3"),
        "{error}"
    );
    let set_up = site.runtime.block_on(fleet::Fleet::set_up(&access, None));
    set_up.unwrap();
    let agent = site.start("agent", "lab");
    let states = site.await_all("done", |state| matches!(state, State::Done { .. }));
    assert_eq!(states.len(), 1);
    crate::site::end(agent);
}

/// Killed after it took a job at the server, and before its disk knew of that.
pub(crate) fn taken_only() {
    let site = Site::new();
    let agent = site.start("agent", "lab");
    let fleet = site.fleet();
    let offer = site.await_some("offer", || {
        let offers = site.runtime.block_on(fleet.offers()).ok()?;
        offers.into_iter().next()
    });
    crate::site::end(agent);
    let id = site.submit(0, "fine", Selector::default());
    let unfit = site.submit(1, "unfit", Selector::default());
    site.runtime.block_on(async {
        let client = async_nats::connect(site.url()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let states = context.get_key_value("fleet-states").await.unwrap();
        for id in [&id, &unfit] {
            let state = format!(
                r#"{{"state":"running","lab":"lab","agent":"{}","attempt":1}}"#,
                offer.agent
            );
            states.put(id, state.into()).await.unwrap();
        }
    });
    let agent = site.start("agent", "lab");
    let states = site.await_all("at an end", State::is_final);
    assert!(
        matches!(&states[&id], State::Done { held, .. } if held.attempt == 2),
        "{states:?}"
    );
    // Whoever wrote that the agent has it: it is looked at as any other.
    assert!(
        matches!(&states[&unfit], State::Parked { reason } if reason.contains("2 cores of 4")),
        "{states:?}"
    );
    site.check_run(&fleet, &id);
    crate::site::end(agent);
}
