//! The check of a NAT between the gateways.

use super::failure::then_repeat;
use super::{ObservedPath, check};
use journal::record::{Check, Explanation};
use plan::Adapter;
use std::collections::BTreeMap;

/// Checks that every packet of a tunnel that left a NAT towards gw2 had the NAT's address. In clear
/// the flows that B began keep their addresses.
pub(crate) fn addresses_translated(path: &ObservedPath<'_>) -> Option<Check> {
    let of = |counter: &str| -> BTreeMap<&str, u64> {
        let counted = path.dut_counters.iter();
        let counted = counted.filter_map(|(name, count)| {
            let (node, name) = name.split_once('/')?;
            (node.starts_with("nat") && name == counter).then_some((node, *count))
        });
        counted.collect()
    };
    let (translated, untranslated) = (of("translated_packets"), of("untranslated_packets"));
    let words: Vec<String> = translated
        .iter()
        .map(|(nat, count)| {
            let others = untranslated.get(nat).copied().unwrap_or_default();
            format!(
                "{nat} passed {count} packets on with its own address and {others} with another one"
            )
        })
        .collect();
    if words.is_empty() {
        return None;
    }
    let detail = words.join("; ");
    let adapter = &path.cell.dut.adapter;
    if matches!(
        adapter,
        Adapter::Direct | Adapter::Router { .. } | Adapter::Bridge
    ) {
        let detail = format!("{detail}; in clear, flows that B began keep their addresses");
        return check("addresses-translated", None, detail);
    }
    let sent = path.counters.get("gw1/w0").map_or(0, |it| it.tx_packets);
    let passed_by = untranslated.iter().find(|(_, count)| **count > 0);
    let idle = translated.iter().find(|(_, count)| **count == 0);
    let difference = match (passed_by, idle) {
        (Some((nat, count)), _) => {
            format!("{count} packets left {nat} towards gw2 with an address that is not its own")
        }
        (None, Some((nat, _))) => {
            format!("gw1 sent {sent} packets, and {nat} passed none on with its own address")
        }
        (None, None) => return check("addresses-translated", None, detail),
    };
    let failure = Explanation::new(
        difference,
        "the rules or the connection tracking of the NAT were changed, or are full",
        then_repeat("look at them with `nft list ruleset` while the run is up"),
    );
    check("addresses-translated", failure, detail)
}
