//! Short flows.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("flows", "Short flows", |run, out| {
    out.tables(tables::flows(run));
});
