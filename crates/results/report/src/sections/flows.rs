//! Short flows.

use super::Section;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section::result("flows", "Short flows", |run, out| {
    let how = "Bars: mean of the repeats. Whiskers: the farthest repeat's distance.";
    out.chart("Short flows per second", how, || {
        chart::applications::transactions(run, true, "flow-rates")
    });
    out.tables(tables::flows(run));
});
