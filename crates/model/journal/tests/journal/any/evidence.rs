//! Strategies for evidence.

use super::text;
use crate::any_tester::lost;
use journal::record::*;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

pub(super) fn evidence() -> impl Strategy<Value = Evidence> {
    let explanation = (text(), text(), text())
        .prop_map(|(difference, cause, advice)| Explanation::new(difference, cause, advice));
    let check = (
        text(),
        any::<bool>(),
        text(),
        proptest::option::of(explanation),
    )
        .prop_map(|(name, passed, detail, explanation)| Check {
            name,
            passed,
            detail,
            explanation,
        });
    (
        vec(check, 0..3),
        btree_map(text(), any::<u64>(), 0..3),
        btree_map(text(), text(), 0..3),
        any::<[u64; 5]>(),
    )
        .prop_map(|(checks, dut_counters, dut_facts, seen)| Evidence {
            checks,
            received_dscp: dut_counters.clone(),
            drivers: [("a/eth1".to_owned(), dut_counters.clone())].into(),
            cipher_link: CipherLink {
                frames: seen[0],
                esp_frames: seen[1],
                marker_frames: seen[2],
                other_frames: seen[3],
                channel_frames: seen[4],
                spis: dut_facts.keys().cloned().collect(),
                dscp: dut_counters.clone(),
                opened: seen[1].is_multiple_of(2).then(|| OpenedPackets {
                    packets: seen[0],
                    opened: seen[1],
                    between_stations: seen[2],
                    not_whole: seen[3],
                    refused: dut_counters.clone(),
                }),
                contents: seen[0].is_multiple_of(2).then(|| SealedContents {
                    packets: seen[0],
                    bytes: seen[1],
                    chi_square_milli: seen[2],
                    repeated_blocks: seen[3],
                    not_whole: seen[4],
                }),
            },
            watch: seen[0].is_multiple_of(2).then(|| CipherWatch {
                foreign_frames: seen[0],
                marker_frames: seen[1],
                clear_sealed_frames: seen[3],
                foreign_bytes: seen[2],
                examples: dut_facts.values().cloned().collect(),
                interrupted: seen[1].is_multiple_of(2),
            }),
            interfaces: [("gw1/w0".to_owned(), InterfaceCounters::default())].into(),
            offloads: [("gw1/w0".to_owned(), dut_facts.clone())].into(),
            settings: seen[4].is_multiple_of(2).then(|| PathSettings {
                changes: vec![SettingChange {
                    node: "gw1".to_owned(),
                    at_ns: seen[1].is_multiple_of(2).then_some(seen[2]),
                    what: dut_facts.keys().cloned().collect(),
                }],
                queue_drops: dut_counters.clone(),
                stack: dut_counters.clone(),
                neighbour_frames: dut_counters.clone(),
            }),
            impaired: seen[2].is_multiple_of(2).then(|| Impaired {
                a_to_b: ImpairCounts {
                    received: seen[0],
                    lost_by_model: seen[1],
                    ..ImpairCounts::default()
                },
                ..Impaired::default()
            }),
            lost_at: lost(seen),
            taken_by: (0..seen[1] % 3)
                .map(|at| TakenBy {
                    name: format!("program {at}"),
                    process: 7,
                    percent: 60,
                })
                .collect(),
            dut_counters,
            dut_facts,
        })
}
