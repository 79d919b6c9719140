//! Results of whole journals.

mod cells;
mod claims;
mod compared;
mod device_trials;
mod devices;
mod disturbed;
mod fixture;
mod frame_fixture;
mod frames;
mod hybrids;
mod keys;
mod published;
mod scaling;
mod soak;
mod tester;
mod tools;
mod warnings;
