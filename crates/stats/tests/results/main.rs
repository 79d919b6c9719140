//! What is made of whole journals.

mod cells;
mod disturbed;
mod fixture;
mod frame_fixture;
mod frames;
mod warnings;
