//! Checks of names, texts and files from outside, made at the place of use.
//!
//! Anything that a peer, a server, another user or a file of unknown origin provides passes one of
//! four functions before it takes effect:
//!
//! - [`Component`] and [`RelativePath`]: a name before it becomes part of a path;
//! - [`visible`], [`visible_lines`] and [`visible_styled`]: a text before it reaches a terminal;
//! - [`read_bytes`], [`read_text`], [`output`] and [`Lines`]: input of unknown length, before it
//!   fills memory; [`read_wiped`] also wipes that memory;
//! - `Writers::check` (feature `writers`): a file that decides whom or what to trust, before it is
//!   believed.
//!
//! [`create_durable`] creates the files that hold secrets, [`replace`] those that others read
//! meanwhile.

#![forbid(unsafe_code)]

mod lines;
mod name;
mod read;
mod replace;
mod run;
mod secret;
mod text;
#[cfg(feature = "writers")]
mod writers;

pub use lines::{Line, Lines};
pub use name::{Component, NameError, RelativePath, is_identifier};
pub use read::{open_regular, read_bytes, read_from, read_text};
pub use replace::replace;
pub use run::{output, output_within};
pub use secret::{create_durable, read_wiped, sync_folder};
pub use text::{escaped, unescaped, visible, visible_lines, visible_styled};
#[cfg(feature = "writers")]
pub use writers::{Insecure, Writers};
