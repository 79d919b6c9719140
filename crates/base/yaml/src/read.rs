//! Maps with declared keys: values of the declared types and ranges, or the declared defaults.

use crate::document::parse;
use crate::key::{Absent, Key, Value, flat};
use crate::map::Map;
use crate::node::{Node, Reported, Spanned};
use crate::prefix::Prefix;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use units::{BitRate, Bytes, Ratio};

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

/// Implements [`FromNode`] for types of numbers.
macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl FromNode for $type {
            fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
                number(node, value)
            }
        }
    )* };
}

numbers! { u8 u16 u32 u64 usize }

/// A number; of a quantity the number of bytes, bit/s, nanoseconds, millionths or per cents.
fn number<T>(node: Node<'_>, value: &Value) -> Result<T, Reported>
where
    T: Copy + std::fmt::Display + PartialOrd + TryFrom<u64>,
{
    // A declared bound beyond the type is a mistake of this program.
    let fit = |number| {
        T::try_from(number)
            .ok()
            .expect("the type has the declared range")
    };
    let number = match *value {
        Value::Integer(min, max) => return node.integer(fit(min)..=fit(max)),
        Value::Size(min, max) => node.size(Bytes::new(min)..=Bytes::new(max))?.get(),
        Value::BitRate(layer, min, max) => node.bit_rate(layer, min..=max)?.bps(),
        Value::Ratio(min, max) => node.ratio(min..=max)?.ppm(),
        Value::Percent(min, max) => node.percent(min..=max)?.into(),
        Value::Time(min, max) => {
            u64::try_from(node.duration(min..=max)?.as_nanos()).unwrap_or(u64::MAX)
        }
        ref other => unreachable!("{other:?} is no number"),
    };
    Ok(fit(number))
}

impl<T: FromNode> FromNode for Spanned<T> {
    fn from_node(node: Node<'_>, value: &Value) -> Result<Self, Reported> {
        T::from_node(node, value).map(|value| node.spanned(value))
    }
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
    // An empty map, so each key has its default.
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
        self.get_with(name, |_, value| Ok(value))
    }

    /// As [`get`](Self::get), with the value's place; a default has the map's.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    ///
    /// # Panics
    /// When the key is not declared, or not for values of this type.
    pub fn spanned<T: FromNode>(&self, name: &'static str) -> Result<Spanned<T>, Reported> {
        let found: Spanned<T> = self.get(name)?;
        Ok(match self.optional(name) {
            Some(_) => found,
            None => self.node().spanned(found.value),
        })
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
                // The default is read as a file's text would be, so a default out of its range
                // fails in tests.
                let default = parse("default", text).expect("a declared default is a value");
                read(Node::root(&default))
            }
            // A key that depends on others is read by `find` unless it is required.
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
        self.find_with(name, |_, value| Ok(value))
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

    /// The declared values of a key.
    ///
    /// # Panics
    /// When the key is not declared.
    #[must_use]
    pub fn value(&self, name: &str) -> &'static Value {
        &self.declared(name).value
    }

    /// The declaration of a key.
    ///
    /// # Panics
    /// When the key is not declared.
    pub(crate) fn declared(&self, name: &str) -> &'static Key {
        flat(self.declared)
            .into_iter()
            .find(|key| key.name == name)
            .unwrap_or_else(|| panic!("the key `{name}` is not declared"))
    }
}
