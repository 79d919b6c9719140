//! Charts of crypto devices: speed over an axis, how long devices survive, and a batch by its times
//! without failure.

pub(crate) mod batch;
pub(crate) mod speed;
pub(crate) mod survival;

use crate::layout::{PALETTE_COLORS, Run};

/// The devices' places in the palette; where two have the same, the later one takes the next that
/// is free.
fn colors(run: &Run<'_>, duts: &[&str]) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for dut in duts {
        let own = run.color(dut);
        let free = |color: &usize| !taken.contains(color);
        let others = 1..PALETTE_COLORS;
        let color = [own].into_iter().chain(others).find(free).unwrap_or(own);
        taken.push(color);
    }
    taken
}

/// Names with the class of their colour, cut to a width.
fn legend(run: &Run<'_>, duts: &[&str], colors: &[usize]) -> Vec<(String, String)> {
    let named = duts.iter().zip(colors);
    named
        .map(|(dut, color)| {
            let name = super::shortened_name(&run.label(dut), 260.0);
            (format!("fill-{color}"), name)
        })
        .collect()
}
