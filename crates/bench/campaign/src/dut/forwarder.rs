//! Reads boxes that forward in clear.

use super::entry::{Duts, NAME, Variants};
use super::settings::SETTINGS;
use crate::axis::Axes;
use plan::Adapter;
use yaml::Absent::Default;
use yaml::{Key, Map, Reported, Value};

#[rustfmt::skip]
pub(super) const ROUTER: &[Key] = &[
    NAME,
    SETTINGS,
    Key::new("nat", Value::Axis(&Value::Switch), Default("off"),
        "Translate addresses and track connections (WAN-LAN), or route only (LAN-LAN). With both \
         values, the translating router is named `router nat`"),
];

/// Reads a router: whether it translates addresses. Of two, the one that does has it in its name.
pub(super) fn read_router(map: &Map<'_>) -> Result<Duts, Reported> {
    let axes = Axes::of(map);
    let routers = Variants::of(false).by(&axes.get("nat"), |it, nat| {
        *it = nat;
        if nat { "nat" } else { "" }
    });
    axes.done()?;
    Ok(routers.duts(|nat| Adapter::Router { nat }))
}
