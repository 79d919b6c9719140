//! The check that the tools' packets arrive with the class of service that they were sent with.

use super::failure::{count, nothing_seen, then_repeat_or};
use super::{ToolObserved, check};
use journal::record::{Check, Explanation};
use std::collections::BTreeMap;

/// Allowed packets of other classes in any sample: a tool's control connection has no class.
const OTHERS_ENOUGH: u64 = 4;

/// Checks that the receiving station received the class of the cell; `None` without one. The class
/// of the outer header is a property of the device, and no condition of the figure.
pub(super) fn class_arrived(observed: &ToolObserved<'_>) -> Option<Check> {
    let asked = observed.path.cell.stations?.dscp?.name();
    let found = observed.path.received_dscp?;
    let all: u64 = found.values().sum();
    let own = found.get(asked).copied().unwrap_or(0);
    let others = all - own;
    let [_, to] = observed.stations();
    let detail = format!(
        "of {all} packets sampled as station {to} received them {own} had the class {asked}{}; between the \
         gateways {}",
        listed(found, asked),
        in_words(observed.path.cipher.map(|cipher| &cipher.link.dscp))
    );
    let failure = (others > OTHERS_ENOUGH.max(all / 10)).then(|| {
        Explanation::new(
            format!(
                "{} received by station {to} had another class than {asked}",
                count(others, all, "sampled packet")
            ),
            "the tool did not set the class, or the device or the path changes the class of inner packets",
            then_repeat_or(
                "look for rules that set the class (`nft list ruleset`, `tc filter show`)",
                "leave `dscp` out",
            ),
        )
    });
    let empty = || nothing_seen(own, &format!("packet of the class {asked} was received"));
    check("class-arrived", failure.or_else(empty), detail)
}

/// The packets of other classes, with a comma before them.
fn listed(found: &BTreeMap<String, u64>, asked: &str) -> String {
    let others = found.iter().filter(|(class, _)| *class != asked);
    others
        .map(|(class, packets)| format!(", {packets} {class}"))
        .collect()
}

fn in_words(outer: Option<&BTreeMap<String, u64>>) -> String {
    match outer {
        Some(outer) if !outer.is_empty() => {
            let all = outer.iter();
            let all: Vec<_> = all
                .map(|(class, packets)| format!("{packets} had {class}"))
                .collect();
            all.join(", ")
        }
        _ => "no class was seen".to_owned(),
    }
}
