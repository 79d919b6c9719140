//! Keys, each declared once: its declaration reads the value, fills the row in the documents, and
//! describes the key to editors.

use crate::document::parse;
use crate::map::Map;
use crate::node::{Node, Reported};
use crate::prefix::Prefix;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, Bytes, Layer, Ratio};

/// A key of a map.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) absent: Absent,
    pub(crate) meaning: &'static str,
    pub(crate) words: Option<&'static str>,
    pub(crate) range: Option<&'static str>,
    pub(crate) excludes: &'static [&'static str],
    pub(crate) apart: bool,
}

/// The value of a key that a file does not have.
#[derive(Debug, Clone, Copy)]
pub enum Absent {
    /// None: the key is required.
    Required,
    /// The value of this text, as a file would have it.
    Default(&'static str),
    /// A value that depends on more than this key; the words describe it in documents.
    Depends(&'static str),
}

/// The values that a key takes. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// On or off.
    Switch,
    /// A whole number.
    Integer(u64, u64),
    /// A duration with its unit.
    Time(Duration, Duration),
    /// A size in bytes with its unit.
    Size(u64, u64),
    /// A bit rate in bit/s at a layer, with its unit.
    BitRate(Layer, u64, u64),
    /// A ratio in per cent.
    Ratio(Ratio, Ratio),
    /// One of these names.
    Name(fn() -> Vec<&'static str>),
    /// A name of up to this many characters from `a-z`, `0-9` and `-`.
    Identifier(usize),
    /// Any text.
    Text,
    /// Text in the notation of this regular expression.
    Notation(&'static str),
    /// A path.
    Path,
    /// An IPv4 or IPv6 address.
    Ip,
    /// An IPv4 address.
    Ipv4,
    /// An address with a port.
    SocketAddress,
    /// An IP prefix.
    Prefix,
    /// The word, or the other value.
    Or(&'static str, &'static Self),
    /// A list.
    List(&'static Self),
    /// A list of at least one value, or a single value.
    OneOrMany(&'static Self),
    /// A map with these keys.
    Map(&'static [Key]),
    /// A map with values as its keys.
    Entries(&'static Self),
    /// Any of these forms.
    Any(&'static [Self]),
}

impl Key {
    /// A key; documents and editors show its meaning.
    #[must_use]
    pub const fn new(
        name: &'static str,
        value: Value,
        absent: Absent,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            value,
            absent,
            meaning,
            words: None,
            range: None,
            excludes: &[],
            apart: false,
        }
    }

    /// Describes the value in documents by these words, not by the words of its [`Value`].
    #[must_use]
    pub const fn words(self, words: &'static str) -> Self {
        Self {
            words: Some(words),
            ..self
        }
    }

    /// The same for the range, in tables with a column for it.
    #[must_use]
    pub const fn range(self, range: &'static str) -> Self {
        Self {
            range: Some(range),
            ..self
        }
    }

    /// Keys of the same map that cannot be given with this one.
    #[must_use]
    pub const fn excludes(self, others: &'static [&'static str]) -> Self {
        Self {
            excludes: others,
            ..self
        }
    }

    /// Documents its map in a separate table, not below its own row.
    #[must_use]
    pub const fn apart(self) -> Self {
        Self {
            apart: true,
            ..self
        }
    }
}

impl Value {
    /// The names of a list for [`Node::one_of`].
    pub fn names<T>(known: &[(&'static str, T)]) -> Vec<&'static str> {
        known.iter().map(|(name, _)| *name).collect()
    }

    /// The keys of the map, or of the maps in the list.
    pub(crate) const fn keys(&self) -> Option<&'static [Key]> {
        match self {
            Self::Map(keys) => Some(keys),
            Self::List(item) | Self::OneOrMany(item) | Self::Or(_, item) => item.keys(),
            _ => None,
        }
    }
}

/// A type that can be read as a [`Value`].
pub trait FromNode: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// When the node has none in the declared range.
    ///
    /// # Panics
    /// When the type cannot have the declared values.
    fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported>;
}

/// Implements [`FromNode`] for a type by the pattern of its [`Value`].
macro_rules! from_node {
    ($($type:ty: $value:pat => $read:expr;)*) => { $(
        impl FromNode for $type {
            fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
                match *value {
                    $value => $read(node),
                    ref other => unreachable!("{other:?} is not read as {}", stringify!($type)),
                }
            }
        }
    )* };
}

from_node! {
    bool: Value::Switch => Node::bool;
    u8: Value::Integer(min, max) => integer(min, max);
    u16: Value::Integer(min, max) => integer(min, max);
    u32: Value::Integer(min, max) => integer(min, max);
    u64: Value::Integer(min, max) => integer(min, max);
    usize: Value::Integer(min, max) => integer(min, max);
    Duration: Value::Time(min, max) => |node: Node<'_>| node.duration(min..=max);
    Bytes: Value::Size(min, max) => |node: Node<'_>| node.size(Bytes::new(min)..=Bytes::new(max));
    BitRate: Value::BitRate(layer, min, max) => |node: Node<'_>| node.bit_rate(layer, min..=max);
    Ratio: Value::Ratio(min, max) => |node: Node<'_>| node.ratio(min..=max);
    PathBuf: Value::Path => Node::path;
    IpAddr: Value::Ip => Node::ip;
    Ipv4Addr: Value::Ipv4 => Node::ipv4;
    SocketAddr: Value::SocketAddress => Node::socket_address;
    Prefix: Value::Prefix => Node::prefix;
}

fn integer<T>(min: u64, max: u64) -> impl FnOnce(Node<'_>) -> Result<T, Reported>
where
    T: Copy + std::fmt::Display + PartialOrd + TryFrom<u64>,
{
    let bound = |bound| {
        T::try_from(bound)
            .ok()
            .expect("the type has the declared range")
    };
    move |node| node.integer(bound(min)..=bound(max))
}

impl FromNode for String {
    fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
        match *value {
            Value::Identifier(most) => node.identifier(1..=most),
            _ => node.text(),
        }
        .map(str::to_owned)
    }
}

/// `None` is the word of [`Value::Or`].
impl<T: FromNode> FromNode for Option<T> {
    fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
        match *value {
            Value::Or(word, other) => node.word_or(word, |node| T::from_node(node, other)),
            ref other => unreachable!("{other:?} has no word for nothing"),
        }
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
        match *value {
            Value::List(item) => node.list(|node| T::from_node(node, item)),
            Value::OneOrMany(item) => node.one_or_many(|node| T::from_node(node, item)),
            ref other => unreachable!("{other:?} is no list"),
        }
    }
}

/// The value of a map without entries: of the declared defaults.
///
/// # Panics
/// When a key without a default is required.
pub fn defaults<T>(keys: &'static [Key], read: impl FnOnce(&Map<'_>) -> Result<T, Reported>) -> T {
    parse("default", "{}")
        .and_then(|map| map.decode(|root| root.keys(keys, read)))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

impl<'d> Node<'d> {
    /// Reads a map with declared keys. As [`map`](Self::map), `read` must request every known key
    /// before it returns with `?`.
    ///
    /// # Errors
    /// When the node is no map, or `read` fails.
    pub fn keys<T>(
        self,
        keys: &'static [Key],
        read: impl FnOnce(&Map<'d>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        self.map_with(keys, read)
    }
}

impl Map<'_> {
    /// The value of a declared key: from the file, or the declared default.
    ///
    /// # Errors
    /// When the file has another value, or lacks a required key.
    ///
    /// # Panics
    /// When the key is not declared, or not for values of this type.
    pub fn get<T: FromNode>(&self, name: &'static str) -> Result<T, Reported> {
        let value = self.declared(name).value;
        self.read(name, |node| T::from_node(node, &value))
    }

    /// As [`get`](Self::get), with a reader; it reads the default, too.
    ///
    /// # Errors
    /// When `read` fails, or the file lacks a required key.
    ///
    /// # Panics
    /// When the key is not declared.
    pub fn read<T>(
        &self,
        name: &'static str,
        read: impl for<'n> FnOnce(Node<'n>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        match (self.optional(name), self.declared(name).absent) {
            (Some(node), _) => read(node),
            (None, Absent::Default(text)) => {
                let default = parse("default", text).expect("a declared default is a value");
                read(Node::root(&default))
            }
            (None, _) => self.required(name).and_then(read),
        }
    }

    /// The value of a declared key, if the file has it.
    ///
    /// # Errors
    /// When it has another value.
    ///
    /// # Panics
    /// When the key is not declared, or not for values of this type.
    pub fn find<T: FromNode>(&self, name: &'static str) -> Result<Option<T>, Reported> {
        let value = self.declared(name).value;
        self.optional(name)
            .map(|node| T::from_node(node, &value))
            .transpose()
    }

    /// As [`get`](Self::get), with a check of the value.
    ///
    /// # Errors
    /// As [`get`](Self::get), and when `check` fails.
    ///
    /// # Panics
    /// When the key is not declared, or not for values of this type.
    pub fn get_with<T: FromNode, U>(
        &self,
        name: &'static str,
        check: impl for<'n> FnOnce(Node<'n>, T) -> Result<U, Reported>,
    ) -> Result<U, Reported> {
        let value = self.declared(name).value;
        self.read(name, |node| check(node, T::from_node(node, &value)?))
    }

    /// As [`find`](Self::find), with a check of the value.
    ///
    /// # Errors
    /// As [`find`](Self::find), and when `check` fails.
    ///
    /// # Panics
    /// When the key is not declared, or not for values of this type.
    pub fn find_with<T: FromNode, U>(
        &self,
        name: &'static str,
        check: impl FnOnce(Node<'_>, T) -> Result<U, Reported>,
    ) -> Result<Option<U>, Reported> {
        let value = self.declared(name).value;
        self.optional(name)
            .map(|node| check(node, T::from_node(node, &value)?))
            .transpose()
    }

    /// The declared value of a key.
    ///
    /// # Panics
    /// When the key is not declared.
    pub(crate) fn declared(&self, name: &str) -> &'static Key {
        self.declared
            .iter()
            .find(|key| key.name == name)
            .unwrap_or_else(|| panic!("the key `{name}` is not declared"))
    }
}
