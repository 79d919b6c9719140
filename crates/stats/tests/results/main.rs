//! What is made of whole journals.

mod cells;
mod claims;
mod disturbed;
mod compared;
mod fixture;
mod frame_fixture;
mod frames;
mod scaling;
mod warnings;
