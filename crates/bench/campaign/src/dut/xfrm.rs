//! Reads IPsec by the kernel.

use super::entry::{Entry, Variants, WeakAllowed, common_suite, name, suites};
use plan::Xfrm;
use wire::Suite;
use yaml::{Map, Reported};

/// A suite that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Entry<Xfrm>, Reported> {
    let name = name(map, "xfrm");
    let allowed = WeakAllowed::read(map);
    let suites = suites(map, Suite::Aes256Gcm, &allowed, common_suite);
    let settings = Xfrm {
        suite: Suite::Aes256Gcm,
    };
    Variants::of(settings)
        .by(suites, |it, suite| {
            it.suite = suite;
            suite.name()
        })
        .named(name)
}
