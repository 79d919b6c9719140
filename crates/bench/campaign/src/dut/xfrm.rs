//! Reads IPsec by the kernel.

use super::entry::{
    COMMON_SUITE, Duts, INSECURE, LEGACY, NAME, Variants, WeakAllowed, common_suite,
};
use super::settings::SETTINGS;
use crate::axis::Axes;
use plan::{Adapter, Xfrm};
use wire::Suite;
use yaml::{Key, Map, Reported};

pub(super) const KEYS: &[Key] = &[NAME, COMMON_SUITE, LEGACY, INSECURE, SETTINGS];

/// A suite that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let (allowed, axes) = (WeakAllowed::read(map), Axes::of(map));
    let suites = allowed.suites(&axes, common_suite);
    axes.done()?;
    let duts = Variants::of(Suite::Aes256Gcm).by(&suites, |it, suite| {
        *it = suite;
        suite.name()
    });
    Ok(duts.duts(|suite| Adapter::Xfrm(Xfrm { suite })))
}
