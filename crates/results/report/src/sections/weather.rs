//! Devices under impairments of the path.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("weather", "Impairments", |run, out| {
    out.tables(tables::weather(run));
});
