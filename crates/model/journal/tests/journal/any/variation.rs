//! Proptest strategies for delay variation.

use journal::record::{DelayVariation, Ipdv, Pdv};
use proptest::option;
use proptest::prelude::*;

pub(super) fn variation() -> impl Strategy<Value = DelayVariation> {
    let pdv = (any::<[u64; 2]>(), any::<[Option<u64>; 3]>());
    let ipdv = (any::<u64>(), any::<[i64; 3]>(), any::<[Option<i64>; 2]>());
    (pdv, option::of(ipdv)).prop_map(|(([p50_ns, max_ns], [p90_ns, p99_ns, p99_9_ns]), ipdv)| {
        DelayVariation {
            pdv: Pdv {
                p50_ns,
                p90_ns,
                p99_ns,
                p99_9_ns,
                max_ns,
            },
            ipdv: ipdv.map(|(pairs, [min_ns, p50_ns, max_ns], [p1_ns, p99_ns])| Ipdv {
                pairs,
                min_ns,
                p1_ns,
                p50_ns,
                p99_ns,
                max_ns,
            }),
        }
    })
}
