//! Two sessions, and what can happen between them.

mod certificates;
mod create;
mod hostile;
mod opening;
mod quantum;
mod standing;
mod transport;
pub(super) mod world;
