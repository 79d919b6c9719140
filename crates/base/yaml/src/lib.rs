//! YAML to checked values, with every mistake of a file located.
//!
//! A decoder is a closure over [`Node`] cursors. Each getter returns the value, or records a
//! mistake and returns [`Reported`]; so a decoder reads *all* keys first and uses `?` only at its
//! end:
//!
//! ```
//! struct Soak { name: String, hours: u16 }
//!
//! let soak = yaml::parse("soak.yaml", "name: night\nhours: 12\n")?.decode(|root| {
//!     root.map(|map| {
//!         let name = map.required("name").and_then(|node| node.text());
//!         let hours = map.with_default("hours", 8, |node| node.integer(1..=72));
//!         Ok(Soak { name: name?.to_owned(), hours: hours? })
//!     })
//! })?;
//! assert_eq!((soak.name.as_str(), soak.hours), ("night", 12));
//! # Ok::<(), yaml::Mistakes>(())
//! ```
//!
//! A map with declared keys ([`Key`]) is read by [`Node::keys`]; [`Map::get`] takes type, range and
//! default from the declaration. [`with_tables`] writes the same keys into a document, and
//! [`schema()`] describes them to editors.
//!
//! Unknown keys, duplicate keys and nodes of the wrong kind are mistakes; nothing is ignored.
//!
//! The input is a subset of YAML 1.2: one document of maps, lists and scalars, in block or flow
//! style. It deliberately has no anchors, aliases, merge keys, tags or complex keys: each is
//! rejected by name at its place. A scalar has no type of its own; the getter that reads it
//! decides, so `on` is not a surprise.
//!
//! Limits: [`FILE_BYTES_MAX`], [`DEPTH_MAX`], [`MISTAKES_MAX`].

#![forbid(unsafe_code)]

mod document;
mod key;
mod map;
mod mistake;
pub mod names;
mod node;
mod prefix;
mod read;
mod scalar;
mod schema;
mod sink;
mod source;
mod table;
mod tree;

pub use document::{Document, load, load_text, parse, parse_secret};
pub use key::{Absent, Key, Value};
pub use map::Map;
pub use mistake::{MISTAKES_MAX, Merged, Mistake, Mistakes, Place, Spot};
pub use node::{Node, Reported, Spanned};
pub use prefix::Prefix;
pub use read::{FromNode, defaults};
pub use schema::schema;
pub use table::with_tables;
pub use tree::DEPTH_MAX;

/// The longest file accepted: campaigns and configurations are a few kilobytes.
pub const FILE_BYTES_MAX: usize = 1 << 20;
