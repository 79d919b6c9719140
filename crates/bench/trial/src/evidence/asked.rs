//! Checks that the encryptor ran as configured, by the facts that it reports.

use super::check;
use super::failure::{first_of, then_repeat_or};
use catalog::Choice;
use journal::record::{Check, Explanation, FrameTrial};
use plan::{Adapter, Cell, Direction, Encryptor, Measurement, NO_SUITE};
use std::collections::BTreeMap;

/// Counter of SAs with an engine that failed and was replaced; the engine's name follows behind a
/// dot.
pub const REPLACED_SAS: &str = "engine_replaced_sas";

/// From this frame rate on, with this mean size or less, some frames arrive together.
const SHARING_FRAMES_PER_S: u64 = 200_000;
const SHARING_BYTES: f64 = 512.0;

/// Checks that every loaded gateway reported the settings of the plan; for our encryptor also that
/// its engine was not replaced, and that packets shared ESP packets if they were to. `trial` is the
/// frame trial with the evidence, if there is one.
#[must_use]
pub fn dut_as_asked(
    cell: &Cell,
    facts: &BTreeMap<String, String>,
    counters: &BTreeMap<String, u64>,
    trial: Option<&FrameTrial>,
) -> Option<Check> {
    let adapter = &cell.dut.adapter;
    let settings = adapter.profile().reported;
    if settings.is_empty() {
        return None;
    }
    let gateways = loaded(cell);
    let mut wrong = Vec::new();
    for gateway in gateways {
        for (key, asked) in &settings {
            match facts.get(&format!("{gateway}/{key}")) {
                None => wrong.push(format!("{gateway} does not report its {key}")),
                Some(found) if found != asked => {
                    wrong.push(format!(
                        "{key} of {gateway} is {found}, and {asked} was asked for"
                    ));
                }
                Some(_) => {}
            }
        }
        let encryptor = adapter.encryptor();
        wrong.extend(encryptor.and_then(|encryptor| other_engine(encryptor, gateway, facts)));
    }
    let settings: Vec<String> = settings
        .iter()
        .map(|(key, asked)| format!("{key} {asked}"))
        .collect();
    let mut detail = if wrong.is_empty() {
        format!(
            "{} reported {}",
            gateways.join(" and "),
            settings.join(", ")
        )
    } else {
        wrong.join("; ")
    };
    // Both are reported in any case, and count against the trial only if they do not fit.
    let beyond = [replaced(adapter, counters), shared(cell, counters, trial)];
    for (fits, words) in beyond.into_iter().flatten() {
        detail += &format!("; {words}");
        if !fits {
            wrong.push(words);
        }
    }
    let failure = (!wrong.is_empty()).then(|| {
        Explanation::new(
            first_of(&wrong),
            "the encryptor lacks what was asked for and fell back to something else, or a part of it failed",
            then_repeat_or(
                "look in its log for the reason, and remove it",
                "ask for what it has, in a new run",
            ),
        )
    });
    check("dut-as-asked", failure, detail)
}

/// The gateways in the path.
pub(super) fn loaded(cell: &Cell) -> &'static [&'static str] {
    let direction = match &cell.measurement {
        Measurement::Frames(test) => test.traffic.direction,
        _ => Direction::Both,
    };
    match direction {
        Direction::Encrypt => &["gw1"],
        Direction::Decrypt => &["gw2"],
        Direction::Both => &["gw1", "gw2"],
    }
}

/// Describes a wrong engine that a gateway reported. `auto` may choose any engine except the
/// control.
fn other_engine(
    encryptor: &Encryptor,
    gateway: &str,
    facts: &BTreeMap<String, String>,
) -> Option<String> {
    let Some(found) = facts.get(&format!("{gateway}/engine")) else {
        return Some(format!("{gateway} does not report its engine"));
    };
    let fits = match &encryptor.engine {
        // Without ESP there is no cipher, and no engine is used.
        _ if !encryptor.mode.has_esp() => found == NO_SUITE,
        Choice::Named(name) => found == name,
        // It reports both of its engines in one text.
        Choice::Threshold { small, large, .. } => found.contains(small) && found.contains(large),
        Choice::Auto | Choice::Model { .. } => found != catalog::NULL && found != NO_SUITE,
    };
    let asked = &encryptor.engine;
    (!fits).then(|| format!("engine of {gateway} is {found}, and {asked} was asked for"))
}

/// Describes engines that failed, and whether the figure is valid: only if a model was to fail.
fn replaced(adapter: &Adapter, counters: &BTreeMap<String, u64>) -> Option<(bool, String)> {
    let encryptor = adapter.encryptor()?;
    let replaced = counters.iter().filter(|(name, sas)| {
        let counter = name.split_once('/').map_or("", |(_, counter)| counter);
        **sas > 0 && counter.starts_with(REPLACED_SAS)
    });
    let replaced: Vec<String> = replaced
        .map(|(name, sas)| format!("{name} {sas}"))
        .collect();
    // A model of a device with errors is used to test exactly this.
    let is_meant = matches!(
        &encryptor.engine,
        Choice::Model { model, .. } if model.errors_ppm > 0
    );
    (!replaced.is_empty()).then(|| {
        let words = format!(
            "an engine failed, and another took its place: {}",
            replaced.join(", ")
        );
        (is_meant, words)
    })
}

/// Describes how many packets shared ESP packets if they were to, and whether that is plausible:
/// small frames at a high load do not all come alone. With several tunnels, neighbouring packets go
/// to different ones.
fn shared(
    cell: &Cell,
    counters: &BTreeMap<String, u64>,
    trial: Option<&FrameTrial>,
) -> Option<(bool, String)> {
    let encryptor = cell.dut.adapter.encryptor()?;
    if !encryptor.aggregate {
        return None;
    }
    let Some(joined) = counters.get("gw1/joined_packets") else {
        let words = "gw1 does not report how many packets joined others";
        return Some((false, words.to_owned()));
    };
    let is_expected = match (&cell.measurement, trial) {
        (Measurement::Frames(test), Some(trial)) if encryptor.tunnels == 1 => {
            let per_s =
                u128::from(trial.sent) * 1_000_000_000 / u128::from(trial.duration_ns.max(1));
            per_s >= SHARING_FRAMES_PER_S.into()
                && test.traffic.frames.mix.mean_bytes() <= SHARING_BYTES
        }
        _ => false,
    };
    let words = if is_expected {
        format!("{joined} packets joined others, and some had to")
    } else {
        format!("{joined} packets joined others")
    };
    Some((*joined > 0 || !is_expected, words))
}
