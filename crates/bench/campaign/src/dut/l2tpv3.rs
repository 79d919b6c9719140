//! Reads L2TPv3 by the kernel.

use super::entry::{Duts, NAME, Variants};
use super::settings::SETTINGS;
use crate::axis::Axes;
use plan::{Adapter, L2tpEncapsulation, L2tpv3};
use yaml::Absent::Default;
use yaml::{Key, Map, Reported, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    NAME,
    SETTINGS,
    Key::new("encapsulation",
        Value::Axis(&Value::Name(|| L2tpEncapsulation::ALL.map(L2tpEncapsulation::name).to_vec())),
        Default("udp"), "Transport of L2TPv3: UDP port 1701, or IP protocol 115"),
];

/// An encapsulation that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let axes = Axes::of(map);
    let known = L2tpEncapsulation::ALL.map(|it| (it.name(), it));
    let encapsulations = axes.read("encapsulation", |node| node.one_of("encapsulation", &known));
    axes.done()?;
    let duts = Variants::of(L2tpEncapsulation::Udp).by(&encapsulations, |it, encapsulation| {
        *it = encapsulation;
        encapsulation.name()
    });
    Ok(duts.duts(|encapsulation| Adapter::L2tpv3(L2tpv3 { encapsulation })))
}
