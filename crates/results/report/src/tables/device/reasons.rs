//! The devices' reasons for operations that they do not offer.

use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::table::{Cell, Table};
use stats::{CellResult, DeviceTestInfo, KatVerdict};

/// A device, a reason, and the operations not offered for it.
struct Reason {
    device: String,
    why: String,
    what: Vec<String>,
}

/// The operations that devices do not offer in the trials of a kind, one row per reason; `None` if
/// they offer everything.
pub(crate) fn not_offered(run: &Run<'_>, kind: DeviceKind) -> Option<Table> {
    let mut reasons: Vec<Reason> = Vec::new();
    let mut add = |device: String, why: &str, algorithm: &str, what: String| {
        // Reasons that differ only in the algorithm count as equal.
        let why = if algorithm.is_empty() {
            why.to_owned()
        } else {
            why.replace(algorithm, "it")
        };
        let equal = |one: &&mut Reason| one.device == device && one.why == why;
        match reasons.iter_mut().find(equal) {
            Some(one) if one.what.contains(&what) => {}
            Some(one) => one.what.push(what),
            None => reasons.push(Reason {
                device,
                why,
                what: vec![what],
            }),
        }
    };
    for (cell, info) in run.device_cells(kind) {
        let Some(found) = cell.device() else { continue };
        if let Some(why) = &found.not_offered {
            let operation = info.operation.clone().unwrap_or_else(|| "all".to_owned());
            let algorithm = operation.split(' ').next().unwrap_or_default().to_owned();
            add(run.label(&cell.dut), why, &algorithm, operation);
        }
        for one in found.kat().iter().flat_map(|kat| &kat.algorithms) {
            let cases = one.cases.iter();
            for case in cases.filter(|case| case.verdict == KatVerdict::NotOffered) {
                let why = case.detail.as_deref().unwrap_or_default();
                let what = if one.verdict == KatVerdict::NotOffered {
                    one.algorithm.clone()
                } else {
                    format!("{} {}", one.algorithm, case.case)
                };
                add(
                    device(run, cell, info, &one.member),
                    why,
                    &one.algorithm,
                    what,
                );
            }
        }
    }
    let note = "the reason as the device or its library reports it, or that of this program";
    let mut table = Table::new("Not offered, and why", note)
        .label("Device")
        .text("What")
        .text("Why");
    for Reason { device, why, what } in reasons {
        table.push(vec![
            Cell::label(device),
            Cell::plain(what.join(", ")),
            Cell::reason(why),
        ]);
    }
    table.with_rows()
}

fn device(run: &Run<'_>, cell: &CellResult, info: &DeviceTestInfo, member: &str) -> String {
    match info.members.as_slice() {
        [_] => run.label(&cell.dut),
        _ => member.to_owned(),
    }
}
