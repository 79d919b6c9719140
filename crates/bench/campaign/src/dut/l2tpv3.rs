//! Reads L2TPv3 by the kernel.

use super::entry::{Entry, Variants, name};
use crate::axis::axis;
use plan::{L2tpEncapsulation, L2tpv3};
use yaml::{Map, Reported};

/// An encapsulation that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Entry<L2tpv3>, Reported> {
    let name = name(map, "l2tpv3");
    let known = L2tpEncapsulation::ALL.map(|it| (it.name(), it));
    let usual = L2tpEncapsulation::Udp;
    let encapsulations = axis(map, "encapsulation", usual, |node| {
        node.one_of("encapsulation", &known)
    });
    let settings = L2tpv3 {
        encapsulation: usual,
    };
    Variants::of(settings)
        .by(encapsulations, |it, encapsulation| {
            it.encapsulation = encapsulation;
            encapsulation.name()
        })
        .named(name)
}
