//! Trials and runs on benches that are scripted: no lab, no privilege.

mod bench;
mod busy;
mod counters;
mod frames;
mod hosts;
mod measure;
mod progress;
mod run;
mod sealed;
mod spoilt;
mod stations;
