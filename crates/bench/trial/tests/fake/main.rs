//! Trials and runs on benches that are scripted: no lab, no privilege.

mod bench;
mod busy;
mod counters;
mod frames;
mod hosts;
mod measure;
mod run;
mod sealed;
mod spoilt;
mod stations;
