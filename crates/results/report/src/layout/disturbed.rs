//! Loads with events at a device, and soaks, in words.

use plan::{Attack, Desync, Event, Failure, Reset};

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
