//! Trials and runs on a bench that is scripted: no lab, no privilege.

mod bench;
mod measure;
mod run;
