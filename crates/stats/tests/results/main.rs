//! What is made of whole journals.

mod cells;
mod claims;
mod compared;
mod disturbed;
mod fixture;
mod frame_fixture;
mod frames;
mod scaling;
mod tools;
mod warnings;
