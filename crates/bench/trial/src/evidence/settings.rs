//! The check that the path did not change during the trial.

use super::check;
use super::failure::{first_of, then_repeat};
use journal::record::{Check, Explanation, PathSettings, SettingChange};

/// Changes that are listed.
const LISTED_MAX: usize = 6;

/// Checks that no link, address, route, rule, queue, policy, kernel parameter or offload changed
/// during the trial: a figure belongs to one path.
pub(crate) fn path_unchanged(settings: Option<&PathSettings>) -> Option<Check> {
    let changes = &settings?.changes;
    let detail = match changes.len() {
        0 => "no link, address, route, routing rule, queue, IPsec policy, kernel parameter or offload of the path changed: \
              read before and after, and every change in between would have been reported by the kernels"
            .to_owned(),
        count => {
            let listed: Vec<String> = changes.iter().take(LISTED_MAX).map(words).collect();
            let more = match count.saturating_sub(LISTED_MAX) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            format!("the path changed during the trial: {}{more}", listed.join("; "))
        }
    };
    let failure = (!changes.is_empty()).then(|| {
        let difference: Vec<String> = changes.iter().map(words).collect();
        let difference = format!("the path changed during the trial: {}", first_of(&difference));
        if changes.iter().all(SettingChange::is_lost_tunnel) { Explanation::new(
                difference,
                "the device authenticated itself anew and set up fewer tunnels than it had: it asked for the networks of \
                 all in one, and the station agrees to those of one tunnel",
                then_repeat(
                    "give the device a pair of traffic selectors for each tunnel, or let it authenticate itself anew less \
                     often than a trial lasts",
                ),
            ) } else { Explanation::new(
                difference,
                "another program configures the links or routes (a network manager, a VPN client, a script), or the \
                 device does so itself",
                then_repeat("stop what changes it"),
            ) }
    });
    check("path-unchanged", failure, detail)
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
