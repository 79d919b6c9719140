//! What is made of whole journals.

mod cells;
mod fixture;
mod frames;
mod warnings;
