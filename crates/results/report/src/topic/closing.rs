//! The sections after the figures: warnings, environment, cells, method and limits.

mod environment;
mod prose;

use crate::kit::section::{Block, Section};
use environment::environment;
use prose::{limits, method};

pub(super) const WARNINGS: Section =
    Section::annex("warnings", "Before you use these figures", |run, out| {
        if !run.results.warnings.is_empty() {
            out.push(Block::Warnings);
        }
    })
    .named("Warnings");

pub(super) const ENVIRONMENT: Section = Section::annex("environment", "Environment", |run, out| {
    out.table(environment(run));
});

pub(super) const CELLS: Section = Section::annex("cells", "Cells and commands", |_, out| {
    out.push(Block::Cells);
})
.in_chapter("Commands");

pub(super) const METHOD: Section = Section::annex("method", "Method", |run, out| {
    out.push(Block::Prose(method(run)));
})
.named("Method and limits");

pub(super) const LIMITS: Section =
    Section::annex("limits", "What these figures do not mean", |run, out| {
        out.push(Block::Prose(limits(run)));
    })
    .named("")
    .in_chapter("Limits");
