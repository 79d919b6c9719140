//! Tests of generator and analyser from outside: on a harmful wire, and against other dissectors.

mod analyser;
mod bridge;
mod generator;
mod golden;
mod hostile;
mod reflect;
mod sealed;
mod stations;
mod two_clocks;
mod wire_tap;
mod witness;
