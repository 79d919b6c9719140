//! The generator and the analyser from outside: against a wire that does harm, and against other dissectors.

mod analyser;
mod generator;
mod golden;
mod hostile;
mod sealed;
mod stations;
mod wire_tap;
