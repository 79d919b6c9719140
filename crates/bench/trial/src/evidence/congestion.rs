//! The check of the congestion control that a TCP transfer used.

use super::failure::then_repeat_or;
use super::{Load, ToolObserved, check};
use journal::record::{Check, Explanation};
use plan::Measurement;

/// Checks that the sender's kernel used the congestion control that the cell asks for.
pub(super) fn congestion_as_asked(observed: &ToolObserved<'_>) -> Option<Check> {
    let Measurement::Tcp {
        congestion: Some(asked),
        ..
    } = &observed.path.cell.measurement
    else {
        return None;
    };
    let Load::Transfer { transfer, .. } = &observed.load else {
        return None;
    };
    let used = transfer
        .tcp
        .as_ref()
        .and_then(|tcp| tcp.congestion.as_deref());
    let [from, _] = observed.stations();
    let found = match used {
        Some(used) => format!("the kernel of station {from} used congestion control {used}"),
        None => format!("nothing shows which congestion control the kernel of station {from} used"),
    };
    let failure = (used != Some(asked.as_str())).then(|| {
        Explanation::new(
            format!("{found}, not {asked}"),
            "the tool or the kernel ignored the setting",
            then_repeat_or(
                "look whether the kernel has it (`sysctl net.ipv4.tcp_available_congestion_control`)",
                "leave `congestion` out",
            ),
        )
    });
    check(
        "congestion-as-asked",
        failure,
        format!("{found}, asked for was {asked}"),
    )
}
