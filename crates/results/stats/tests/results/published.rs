//! Published figures are compared with what counts the same, and with nothing else.

use crate::fixture::*;
use crate::frame_fixture::{self, assert_close, found, throughput};
use crate::transfers::{both, going};
use RateDirection::{EachOfBoth, OneWay, SumOfBoth};
use RateKind::{Goodput, Throughput};
use RateLayer::{Ip, L1, L2, Payload};
use journal::Journal;
use plan::{
    Cell, Measurement, Published, PublishedUnit, RateBasis, RateDirection, RateKind, RateLayer,
    TransferDirection,
};
use stats::{PublishedResult, Results};

const PUBLISHED_BPS: u64 = 100_000_000;

fn beside(mut run: Journal, counts: Option<RateBasis>) -> PublishedResult {
    let cell = run.header.plan.cells[0].id.clone();
    run.header.plan.published = vec![Published {
        source: "a report".into(),
        system: "a box".into(),
        what: "traffic".into(),
        value: PUBLISHED_BPS,
        unit: PublishedUnit::BitsPerS,
        counts,
        at: None,
        cells: vec![cell],
    }];
    let [one] = &Results::of(&run).published[..] else {
        panic!("one published figure, one cell");
    };
    one.clone()
}

const fn counts(kind: RateKind, layer: RateLayer, direction: RateDirection) -> Option<RateBasis> {
    Some(RateBasis {
        kind,
        layer,
        direction,
    })
}

/// 500 MB in 2 s: 2 Gbit/s of payload.
fn transferred() -> Journal {
    let mut run = journal(vec![tcp("direct")], 1, 8);
    record(&mut run, "tcp/direct", 1, measured(transfer(500)));
    run
}

/// 500 MB each way in 2 s: the sum is 4 Gbit/s.
fn transferred_both_ways() -> Journal {
    let cell = going(tcp("direct"), TransferDirection::Duplex);
    let mut run = journal(vec![cell.clone()], 1, 8);
    record(&mut run, &cell.id, 1, both(transfer(500), transfer(500)));
    run
}

/// 10 000 frames/s of 1518 B without loss, in one direction or in both.
fn searched(duplex: bool) -> (Cell, Journal) {
    let mut cell = throughput("router", 1518);
    if let Measurement::Frames(test) = &mut cell.measurement {
        test.traffic.duplex = duplex;
    }
    let mut run = journal(vec![cell.clone()], 1, 8);
    frame_fixture::add(&mut run, &cell, 1, found(Some(10_000), Some(10_100)));
    (cell, run)
}

#[track_caller]
fn refused(found: &PublishedResult, words: &str) {
    assert!(
        found.measured.is_none() && found.ratio.is_none(),
        "{found:?}"
    );
    let why = found.refused.as_deref().unwrap_or_default();
    assert!(why.contains(words), "{words}: {why}");
}

#[test]
fn goodput_of_one_direction_stands_beside_the_same_only() {
    let found = beside(transferred(), counts(Goodput, Payload, OneWay));
    assert_close(found.ratio.unwrap(), 2e9 / PUBLISHED_BPS as f64);
    assert_eq!((found.refused, found.converted), (None, None));
    refused(
        &beside(transferred(), counts(Goodput, Payload, SumOfBoth)),
        "published is goodput of payload, sum of both directions; \
         measured is goodput of payload, one direction",
    );
    refused(
        &beside(transferred(), counts(Throughput, L2, OneWay)),
        "published is throughput at L2, one direction; measured is goodput of payload",
    );
    refused(
        &beside(transferred(), counts(Goodput, RateLayer::Unstated, OneWay)),
        "a layer that is not stated",
    );
    refused(&beside(transferred(), None), "does not record which layer");
}

#[test]
fn throughput_is_converted_to_the_published_layer_and_directions() {
    for (layer, frame_bytes) in [(L1, 1538.0), (L2, 1518.0), (Ip, 1500.0)] {
        let one_way = beside(searched(false).1, counts(Throughput, layer, OneWay));
        let bps = 10_000.0 * 8.0 * frame_bytes;
        assert_close(one_way.measured.unwrap().mean, bps);
        let words = one_way.converted.unwrap();
        assert!(
            words.starts_with("frame rate of one direction, at "),
            "{words}"
        );

        let sum = beside(searched(true).1, counts(Throughput, layer, SumOfBoth));
        assert_close(sum.ratio.unwrap(), 2.0 * bps / PUBLISHED_BPS as f64);
        assert!(sum.converted.unwrap().ends_with("times two"));

        let each = beside(searched(true).1, counts(Throughput, layer, EachOfBoth));
        assert_close(each.measured.unwrap().mean, bps);
    }
}

#[test]
fn throughput_does_not_stand_beside_goodput_sums_or_other_loads() {
    let sum = beside(searched(true).1, counts(Goodput, Payload, SumOfBoth));
    refused(
        &sum,
        "published is goodput of payload, sum of both directions; \
         measured is throughput at L2, sum of both directions",
    );
    let bps = 2.0 * 10_000.0 * 8.0 * 1518.0;
    assert_close(sum.measured_otherwise.unwrap().mean, bps);
    refused(
        &beside(searched(false).1, counts(Throughput, L2, SumOfBoth)),
        "measured is throughput at L2, one direction",
    );
    refused(
        &beside(searched(true).1, counts(Throughput, L2, OneWay)),
        "measured is throughput at L2, one of both directions",
    );
    refused(
        &beside(searched(true).1, counts(RateKind::Unstated, L2, SumOfBoth)),
        "a kind that is not stated",
    );
}

#[test]
fn a_load_with_some_loss_is_no_throughput() {
    let (_, mut run) = searched(false);
    if let Measurement::Frames(test) = &mut run.header.plan.cells[0].measurement
        && let plan::Procedure::Throughput(search) = &mut test.procedure
    {
        search.goals[0].criteria.loss_ratio_ppm = 5_000;
    }
    refused(
        &beside(run, counts(Throughput, L2, OneWay)),
        "the goals of the measured loads allow some",
    );
}

/// Every combination of what can be published with what can be measured: a ratio exists where kind,
/// layer and directions are the same, and a reason everywhere else.
#[test]
fn a_ratio_is_of_like_with_like_in_every_combination() {
    let kinds = [Goodput, Throughput, RateKind::Unstated];
    let layers = [L1, L2, Ip, Payload, RateLayer::Unstated];
    let directions = [OneWay, EachOfBoth, SumOfBoth, RateDirection::Unstated];
    type Case = (
        fn() -> Journal,
        RateKind,
        &'static [RateLayer],
        &'static [RateDirection],
    );
    let cases: [Case; 4] = [
        (transferred, Goodput, &[Payload], &[OneWay]),
        (transferred_both_ways, Goodput, &[Payload], &[SumOfBoth]),
        (|| searched(false).1, Throughput, &[L1, L2, Ip], &[OneWay]),
        (
            || searched(true).1,
            Throughput,
            &[L1, L2, Ip],
            &[EachOfBoth, SumOfBoth],
        ),
    ];
    for (journal, own_kind, own_layers, own_directions) in cases {
        assert_eq!(
            beside(journal(), None).ratio,
            None,
            "a journal that does not record what is counted"
        );
        for kind in kinds {
            for layer in layers {
                for direction in directions {
                    let found = beside(journal(), counts(kind, layer, direction));
                    let like = kind == own_kind
                        && own_layers.contains(&layer)
                        && own_directions.contains(&direction);
                    assert_eq!(found.ratio.is_some(), like, "{found:?}");
                    assert_eq!(found.refused.is_none(), like, "{found:?}");
                }
            }
        }
    }
}
