//! Transactions over HTTP.

use super::Section;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section::result("http", "HTTP", |run, out| {
    let how = "Bars: mean of the repeats. Whiskers: the farthest repeat's distance.";
    out.chart("Transactions per second", how, || {
        chart::applications::transactions(run, false, "http-rates")
    });
    out.tables(tables::http(run));
    out.tables(tables::http_times(run));
});
