//! Columns of CPU time.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::Cpu;

/// CPU time by role.
pub(crate) const COLUMNS: &[Declared] = &[
    ("cpu_wall_ns", "time over which CPU time was read", |row| {
        text(cpu(row)?.wall_ns)
    }),
    ("cpu_station_a_ns", "CPU time of station A's tools", |row| {
        text(cpu(row)?.station_a_ns)
    }),
    ("cpu_station_b_ns", "CPU time of station B's tools", |row| {
        text(cpu(row)?.station_b_ns)
    }),
    (
        "cpu_dut_ns",
        "CPU time of the device's processes; empty if it runs on separate machines",
        |row| text(cpu(row)?.dut_ns?),
    ),
    ("cpu_kernel_ns", "the rest of the busy time", |row| {
        text(cpu(row)?.kernel_ns)
    }),
    ("cpu_busy_ns", "busy time of all cores", |row| {
        text(cpu(row)?.busy_ns)
    }),
];

fn cpu<'a>(row: &Context<'a>) -> Option<&'a Cpu> {
    measured(row.trial).map(|found| &found.cpu)
}
