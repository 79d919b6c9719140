//! Whole documents of made-up runs.
//!
//! Golden files are compared byte for byte. After a change that is meant, renew them and read the
//! difference:
//!
//! ```text
//! UPDATE_GOLDEN=1 cargo test -p cipherbench-report
//! git diff crates/results/report/tests/golden docs/schema
//! ```

mod answer;
mod attack;
mod captures;
mod charts;
mod classes;
mod compared;
mod coordinates;
mod cycles;
mod damaged;
mod device;
mod disk;
mod disturbed;
mod first_screen;
mod fixture;
mod frames;
mod golden;
mod html;
mod insecure;
mod kinds;
mod known;
mod layout;
mod machine;
mod scaling;
mod sittings;
mod soak;
mod tunnels;

use journal::Journal;
use report::{Folders, Report};

/// The full form for a terminal.
fn terminal(journal: &Journal, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
    let report = Report::of(journal).for_people();
    report.terminal(files, width, color)
}

/// The short form for a terminal.
fn brief(journal: &Journal, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
    let report = Report::of(journal).for_people();
    report.brief(files, width, color)
}
