//! Bisections of real git repositories and real builds, measured by a simulation of known truth.

mod bad_input;
mod programs;
mod resume;
mod revisions;
mod settings;
mod support;
