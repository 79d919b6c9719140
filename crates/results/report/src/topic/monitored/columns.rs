//! Columns of values read from boxes and machines during the traffic of the figure's load.

use crate::kit::column::{Context, Declared};
use crate::layout::evidence::measured;
use stats::{TrialEnergy, monitored_in};

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "gw1_cpu_percent",
        "mean utilisation of the first box's processor while traffic of the figure's load flowed; empty if it was not read",
        |row| mean(row, "gw1", "cpu"),
    ),
    (
        "gw1_temperature_c_max",
        "highest temperature of the first box likewise",
        |row| highest(row, "gw1", "temperature"),
    ),
    (
        "gw1_power_w",
        "mean power of the first box likewise",
        |row| mean(row, "gw1", "power"),
    ),
    (
        "gw2_cpu_percent",
        "mean utilisation of the second box's processor likewise",
        |row| mean(row, "gw2", "cpu"),
    ),
    (
        "gw2_temperature_c_max",
        "highest temperature of the second box likewise",
        |row| highest(row, "gw2", "temperature"),
    ),
    (
        "gw2_power_w",
        "mean power of the second box likewise",
        |row| mean(row, "gw2", "power"),
    ),
    (
        "boxes_joules_per_gbit",
        "power of all monitored boxes divided by the rate carried meanwhile in all loaded directions, of payload for tools, of frames with their FCS (L2) for frame tests",
        |row| per_gbit(row, false),
    ),
    (
        "machines_power_w",
        "mean power of the whole machines by their energy counters (RAPL), stations included",
        |row| number(energy(row, true)?.power_w),
    ),
    (
        "machines_joules_per_gbit",
        "that power divided by the same rate",
        |row| per_gbit(row, true),
    ),
];

fn mean(row: &Context<'_>, device: &str, name: &str) -> Option<String> {
    number(monitored_in(measured(row.trial)?, device, name)?.0)
}

fn highest(row: &Context<'_>, device: &str, name: &str) -> Option<String> {
    number(monitored_in(measured(row.trial)?, device, name)?.1)
}

fn energy(row: &Context<'_>, is_machine: bool) -> Option<TrialEnergy> {
    TrialEnergy::of(row.planned?, measured(row.trial)?, is_machine)
}

fn per_gbit(row: &Context<'_>, is_machine: bool) -> Option<String> {
    number(energy(row, is_machine)?.joules_per_gbit()?)
}

fn number(value: f64) -> Option<String> {
    Some(format!("{value:.3}"))
}
