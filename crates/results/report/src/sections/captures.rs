//! Captures of the trials: protocols, lengths and files.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("captures", "Captures", |run, out| {
    out.tables(tables::capture_protocols(run));
    out.tables(tables::capture_lengths(run));
    out.details("Files of the captures", tables::capture_files(run));
})
.not_brief();
