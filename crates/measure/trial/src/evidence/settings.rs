//! The check that the path stayed what it was at the start of the trial.

use super::check;
use journal::record::{Check, PathSettings, SettingChange};

/// Changes that are listed.
const LISTED_MAX: usize = 6;

/// No link, address, route, rule, queue, policy or offload changed during the trial: a figure is
/// that of one path.
pub(super) fn path_unchanged(settings: Option<&PathSettings>) -> Option<Check> {
    let changes = &settings?.changes;
    let detail = match changes.len() {
        0 => "no link, address, route, routing rule, queue, IPsec policy or offload of the path changed: read \
              before and after, and every change in between would have been reported by the kernels"
            .to_owned(),
        count => {
            let listed: Vec<String> = changes.iter().take(LISTED_MAX).map(words).collect();
            let more = match count.saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            format!(
                "the path changed during the trial: {}{more}; find out what changes it, and measure again",
                listed.join("; ")
            )
        }
    };
    check("path-unchanged", changes.is_empty(), detail)
}

fn words(change: &SettingChange) -> String {
    let SettingChange { node, at_ns, what } = change;
    match at_ns {
        Some(at_ns) => {
            let ms = at_ns / 1_000_000;
            format!("after {}.{:03} s {node} {what}", ms / 1000, ms % 1000)
        }
        None => format!("at the end {node} {what}"),
    }
}
