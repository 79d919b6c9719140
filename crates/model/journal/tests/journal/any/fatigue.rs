//! Proptest strategies for fatigue trials.

use super::text;
use crate::fixture::cell_id;
use journal::record::{
    DeviceFatigue, FatigueCounts, FatiguePoint, FatigueProgress, FatigueSegment, Life,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(super) fn fatigue() -> impl Strategy<Value = FatigueSegment> {
    let life = any::<(u64, u64, bool)>().prop_map(|(began_ns, ended_ns, failed)| Life {
        began_ns,
        ended_ns,
        failed,
    });
    let point =
        any::<[u64; 3]>().prop_map(|[at_ns, right, bad]| FatiguePoint { at_ns, right, bad });
    let device = (
        any::<[u64; 5]>(),
        vec(life, 0..3),
        vec(point, 0..3),
        vec(text(), 0..3),
    )
        .prop_map(
            |([elapsed_ns, right, wrong, failed, crashes], lives, points, reasons)| DeviceFatigue {
                elapsed_ns,
                counts: FatigueCounts {
                    right,
                    wrong,
                    failed,
                    ..FatigueCounts::default()
                },
                crashes,
                lives,
                points,
                reasons,
                ..DeviceFatigue::default()
            },
        );
    (1..4_u32, any::<u64>(), vec(device, 0..3)).prop_map(|(start, started_unix_ns, devices)| {
        FatigueSegment {
            start,
            started_unix_ns,
            devices,
        }
    })
}

pub(super) fn fatigued() -> impl Strategy<Value = FatigueProgress> {
    (0..2_usize, 1..=3_u32, fatigue()).prop_map(|(cell, repeat, segment)| FatigueProgress {
        cell: cell_id(cell),
        repeat,
        devices: Vec::new(),
        segment,
    })
}
