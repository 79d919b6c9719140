//! Video.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section::result("video", "Video", |run, out| {
    out.tables(tables::video(run));
});
