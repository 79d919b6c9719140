//! Results of whole journals.

mod cells;
mod claims;
mod compared;
mod device_trials;
mod devices;
mod directions;
mod disturbed;
mod fixture;
mod frame_fixture;
mod frames;
mod hybrids;
mod keys;
mod machine;
mod monitored;
mod null_run;
mod path;
mod published;
mod resets;
mod scaling;
mod searches;
mod sittings;
mod soak;
mod stand_ins;
mod tester;
mod tools;
mod warnings;
