//! Video.

use super::Section;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section::result("video", "Video", |run, out| {
    let how = "Solid: frames that the players showed as they are, of all repeats. Striped: missing or damaged.";
    out.chart("Frames shown undamaged", how, || {
        chart::applications::video(run, "video-frames")
    });
    out.tables(tables::video(run));
});
