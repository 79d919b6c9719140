//! The sections after the figures: warnings, environment, cells, method and limits.

use super::{Block, Section};
use crate::{prose, tables};

pub(super) const WARNINGS: Section = Section {
    id: "warnings",
    name: "Warnings",
    title: "Before you use these figures",
    chapter: "Before you use these figures",
    answers: false,
    brief: false,
    blocks: |run, out| {
        if !run.results.warnings.is_empty() {
            out.found.push(Block::Warnings);
        }
    },
};

pub(super) const ENVIRONMENT: Section = Section {
    id: "environment",
    name: "Environment",
    title: "Environment",
    chapter: "Environment",
    answers: false,
    brief: false,
    blocks: |run, out| {
        if !out.is_short() {
            out.table(tables::environment(run));
        }
    },
};

pub(super) const CELLS: Section = Section {
    id: "cells",
    name: "Cells and commands",
    title: "Cells and commands",
    chapter: "Commands",
    answers: false,
    brief: false,
    blocks: |_, out| {
        if !out.is_short() {
            out.found.push(Block::Cells);
        }
    },
};

pub(super) const METHOD: Section = Section {
    id: "method",
    name: "Method and limits",
    title: "Method",
    chapter: "Method",
    answers: false,
    brief: false,
    blocks: |run, out| {
        if !out.is_short() {
            out.found.push(Block::Prose(prose::method(run)));
        }
    },
};

pub(super) const LIMITS: Section = Section {
    id: "limits",
    name: "",
    title: "What these figures do not mean",
    chapter: "Limits",
    answers: false,
    brief: false,
    blocks: |run, out| {
        if !out.is_short() {
            out.found.push(Block::Prose(prose::limits(run)));
        }
    },
};
