//! Loads with events at a device, and soaks, in words.

use plan::{Attack, BaseLoad, Desync, Disturbed, Event, Failure, Reset, Soak};
use units::Ratio;
use units::human::{counted, duration_ns};

/// Title of a table of these cells: `Failover, encryptor killed`.
pub(crate) fn title(event: &Event) -> String {
    match event {
        Event::Rekey { .. } => "Rekeys under load".into(),
        Event::Failover { failure, .. } => format!("Failover, {}", failure_name(*failure)),
        Event::Reset { kind, .. } => format!("Reset, {}", reset_name(*kind)),
        Event::Setup { .. } => "Tunnels set up under load".into(),
        Event::Desync { cause, .. } => format!("Keys out of step, {}", desync_name(*cause)),
        Event::Hostile { attack, .. } => format!("Load beside {}", attack_name(*attack)),
    }
}

/// The failure, for readers.
pub(crate) const fn failure_name(failure: Failure) -> &'static str {
    match failure {
        Failure::Crash => "encryptor killed",
        Failure::Link => "link cut",
        Failure::Bypass => "encryptor killed, with a way past it",
    }
}

/// The reset, for readers.
pub(crate) const fn reset_name(kind: Reset) -> &'static str {
    match kind {
        Reset::Process => "process killed",
        Reset::Orderly => "process stopped in order",
        Reset::Command => "by the box's own command",
    }
}

/// The cause, for readers.
pub(crate) const fn desync_name(cause: Desync) -> &'static str {
    match cause {
        Desync::WrongKeys => "wrong keys on one side",
        Desync::MissedRollover => "a rollover missed by one side",
    }
}

/// The attack, for readers.
pub(crate) const fn attack_name(attack: Attack) -> &'static str {
    match attack {
        Attack::BadIcv => "forged packets (bad ICV)",
        Attack::Replay => "replayed packets",
        Attack::Garbage => "packets of garbage",
    }
}

/// The load set by the campaign, in frames/s.
pub(super) const fn given_load(load: &BaseLoad) -> Option<u64> {
    match load {
        BaseLoad::Given { frames_per_s } => Some(*frames_per_s),
        // The search's upper limit is not the load.
        BaseLoad::Share { .. } => None,
    }
}

/// A load given as a share of the throughput.
fn share(load: &BaseLoad) -> Option<String> {
    match load {
        BaseLoad::Given { .. } => None,
        BaseLoad::Share { percent, .. } => Some(format!("load: {percent} % of the throughput")),
    }
}

/// Removes differences between cells of one set: loads given as bit rates.
pub(super) fn level(load: &mut BaseLoad) {
    match load {
        BaseLoad::Given { frames_per_s } => *frames_per_s = 0,
        BaseLoad::Share { search, .. } => (search.max_load, search.min_load) = (None, 0),
    }
}

/// The common settings of a set's cells.
pub(super) fn words(test: &Disturbed) -> Vec<String> {
    let time = |ns: u64| duration_ns(ns as f64);
    let mut words: Vec<String> = share(&test.load).into_iter().collect();
    words.extend(match &test.event {
        Event::Rekey {
            every_ns,
            duration_ns,
            ..
        } => [
            format!("a rekey of all tunnels every {}", time(*every_ns)),
            time(*duration_ns),
        ],
        Event::Failover {
            times,
            down_ns,
            watch_ns,
            ..
        } => [
            format!(
                "{} of {}",
                counted(u64::from(*times), "failure"),
                time(*down_ns)
            ),
            format!("{} watched after each", time(*watch_ns)),
        ],
        Event::Reset {
            times, watch_ns, ..
        } => [
            counted(u64::from(*times), "reset"),
            format!("{} watched after each", time(*watch_ns)),
        ],
        Event::Setup { times, watch_ns } => [
            counted(u64::from(*times), "set-up"),
            format!("{} watched after each", time(*watch_ns)),
        ],
        Event::Desync {
            times, watch_ns, ..
        } => [
            counted(u64::from(*times), "time"),
            format!("{} watched after each", time(*watch_ns)),
        ],
        Event::Hostile { trial_ns, .. } => [
            "sent to gw2 from gw1's end of the link".into(),
            format!("{} per share", time(*trial_ns)),
        ],
    });
    words
}

/// The common settings of a set's soaks.
pub(super) fn soak_words(test: &Soak) -> Vec<String> {
    let time = |ns: u64| duration_ns(ns as f64);
    let goal = Ratio::from_ppm(test.loss_ppm.into());
    let own = [
        time(test.duration_ns),
        format!("points of {}", time(test.point_ns)),
        format!("loss goal {goal}"),
    ];
    share(&test.load).into_iter().chain(own).collect()
}
