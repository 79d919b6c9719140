//! Transactions over HTTP.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("http", "HTTP", |run, out| {
    out.tables(tables::http(run));
    out.tables(tables::http_times(run));
});
