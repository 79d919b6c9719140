//! Maps: requests for keys by name, and mistakes for keys that were not requested.

use crate::key::{Key, flat};
use crate::names;
use crate::node::{Node, Reported, Spanned};
use crate::tree::{Kind, NodeId, Step};
use std::cell::RefCell;

/// The keys of a map during [`Node::map`].
#[derive(Debug)]
pub struct Map<'d> {
    node: Node<'d>,
    entries: &'d [NodeId],
    asked: RefCell<Vec<&'static str>>,
    /// Required keys that the file does not have.
    missing: RefCell<Vec<&'static str>>,
    /// Empty for a map without declared keys.
    pub(crate) declared: &'static [Key],
}

impl<'d> Map<'d> {
    pub(crate) const fn new(
        node: Node<'d>,
        entries: &'d [NodeId],
        declared: &'static [Key],
    ) -> Self {
        Self {
            node,
            entries,
            asked: RefCell::new(Vec::new()),
            missing: RefCell::new(Vec::new()),
            declared,
        }
    }

    /// The map as a node, for its place.
    pub const fn node(&self) -> Node<'d> {
        self.node
    }

    /// The value of a key; `None` when the file does not have it.
    pub fn optional(&self, key: &'static str) -> Option<Node<'d>> {
        // A key that is read without its declaration would be in no document and in no schema.
        debug_assert!(
            self.declared.is_empty() || flat(self.declared).iter().any(|known| known.name == key),
            "the key `{key}` is not declared"
        );
        let mut asked = self.asked.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
        let entry = self.entries.iter().find(|entry| self.key(**entry) == key)?;
        Some(self.node.child(*entry))
    }

    /// The value of a required key.
    ///
    /// # Errors
    /// When the file does not have it.
    pub fn required(&self, key: &'static str) -> Result<Node<'d>, Reported> {
        self.optional(key).ok_or_else(|| {
            // Reported by `finish`: whether another key was meant to be this one is known when all
            // have been requested.
            let mut missing = self.missing.borrow_mut();
            if !missing.contains(&key) {
                missing.push(key);
            }
            Reported(())
        })
    }

    /// Reads the value of a key, or takes the default when the file does not have it.
    ///
    /// # Errors
    /// When `read` fails.
    pub fn with_default<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(Node<'d>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        self.optional(key).map_or(Ok(default), read)
    }

    /// Reports each key that was not requested as a mistake, and each required key that is missing;
    /// a mistyped key is one mistake, not also a missing one.
    pub(crate) fn finish(&self) {
        let asked = self.asked.borrow();
        let mut missing = self.missing.take();
        for entry in self.entries {
            let key = self.key(*entry);
            if !asked.contains(&key) {
                let document = self.node.document;
                let what = format!("{} is not known here", document.source.the("key", key));
                let lacking = names::nearest(key, missing.iter().copied());
                missing.retain(|missing| Some(*missing) != lacking);
                let meant = lacking.or_else(|| names::nearest(key, asked.iter().copied()));
                // The nearest known name would show a part of a secret file.
                let meant = meant.filter(|_| !document.source.secret);
                // `{ mtu: 1,500 B }` is a map of two keys.
                let is_number = key.starts_with(|c: char| c.is_ascii_digit());
                let help = if is_number && self.node.child(*entry).is_empty() {
                    "a comma begins another key within { }: write the number before it without a comma".to_owned()
                } else {
                    names::question(meant) + &names::list("key", &asked)
                };
                self.node.child(*entry).key_mistake(what, help);
            }
        }
        for key in missing {
            let what = match self.node.own_name() {
                Some(name) => format!("{} has no key `{key}`", self.node.quote(name, "the map")),
                None => format!("the key `{key}` is missing"),
            };
            let declared = flat(self.declared);
            let declared = declared.iter().find(|known| known.name == key);
            let help = declared.map_or_else(
                || "it is required".to_owned(),
                |declared| format!("it is required: {}", declared.clause()),
            );
            self.node.mistake(what, help);
        }
    }

    fn key(&self, entry: NodeId) -> &'d str {
        match &self.node.document.tree.item(entry).parent {
            Some((_, Step::Key(name, _))) => name,
            // Keys are the only way to a map's entries.
            _ => "",
        }
    }
}

impl<'d> Node<'d> {
    /// Reads a map. `read` must request every known key *before* it returns with `?`, since keys
    /// that were not requested are mistakes. A bare name from [`Node::variant`] is a map without
    /// keys.
    ///
    /// # Errors
    /// When the node is no map, or `read` fails.
    pub fn map<T>(self, read: impl FnOnce(&Map<'d>) -> Result<T, Reported>) -> Result<T, Reported> {
        self.map_with(&[], read)
    }

    pub(crate) fn map_with<T>(
        self,
        declared: &'static [Key],
        read: impl FnOnce(&Map<'d>) -> Result<T, Reported>,
    ) -> Result<T, Reported> {
        let entries: &[NodeId] = match &self.document.tree.item(self.id).kind {
            Kind::Map(entries) => entries,
            // A bare name has the defaults of all its keys; a required one is reported as
            // missing.
            _ if self.bare => &[],
            _ => return Err(self.wrong_kind("a map of keys and values")),
        };
        let map = Map::new(self, entries, declared);
        let value = read(&map);
        // Also after a mistake: unknown keys are found in the same run.
        map.finish();
        value
    }

    /// Reads a map whose keys are values themselves: `read` gets each key with its place, and its
    /// value. Every entry is read even when some have mistakes.
    ///
    /// # Errors
    /// When the node is no map, or `read` fails for an entry.
    pub fn entries<T>(
        self,
        mut read: impl FnMut(Spanned<&'d str>, Self) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        let Kind::Map(entries) = &self.document.tree.item(self.id).kind else {
            return Err(self.wrong_kind("a map of keys and values"));
        };
        // Collected first: a short-circuit at the first mistake would leave later entries unread.
        let results: Vec<_> = entries
            .iter()
            .map(|entry| {
                let value = self.child(*entry);
                let key = Spanned {
                    value: value.own_name().unwrap_or_default(),
                    place: value.key_place(),
                };
                read(key, value)
            })
            .collect();
        results.into_iter().collect()
    }

    /// Whether the node, or a value of this map, is this text.
    fn has_value(self, wanted: &str) -> bool {
        match &self.document.tree.item(self.id).kind {
            Kind::Scalar { text, .. } => text == wanted,
            Kind::Map(entries) => entries.iter().any(|entry| {
                let kind = &self.document.tree.item(*entry).kind;
                matches!(kind, Kind::Scalar { text, .. } if text == wanted)
            }),
            Kind::List(_) | Kind::Refused => false,
        }
    }

    /// Reads a named alternative: `name` alone, or `name: { … }` as a map of one key. Returns the
    /// value for the name and the node that holds its settings.
    ///
    /// # Errors
    /// When it is neither, or the name is not among the known ones.
    pub fn variant<T: Copy>(
        self,
        noun: &str,
        known: &[(&'static str, T)],
    ) -> Result<(T, Self), Reported> {
        let Kind::Map(entries) = &self.document.tree.item(self.id).kind else {
            return Ok((self.one_of(noun, known)?, Self { bare: true, ..self }));
        };
        let Some((first, others)) = entries.split_first() else {
            return Err(self.wrong_kind(&format!("a {noun}")));
        };
        let first = self.child(*first);
        let name = first.key_name().unwrap_or_default();
        let Some((_, value)) = known.iter().find(|(known, _)| *known == name) else {
            let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
            // `kind: mrr`, or `frames: { procedure: mrr }`.
            let meant = names.iter().find(|name| first.has_value(name));
            let help = match meant.filter(|_| !self.document.source.secret) {
                Some(meant) => format!(
                    "the {noun} is the key itself: write `{meant}: {{ … }}`, with its keys in the braces"
                ),
                None => names::help(&name, noun, &names),
            };
            let what = format!("{} is not known", self.document.source.the(noun, &name));
            return Err(first.key_mistake(what, help));
        };
        match others.first() {
            None => Ok((*value, first)),
            Some(other) => {
                let other = self.child(*other);
                let key = other.key_name().unwrap_or_default();
                // An empty first key is the usual slip in block style: the settings are indented
                // as far as the name, and become its siblings.
                let help = if first.is_empty() {
                    format!("indent it further than `{name}`, so that it belongs to it")
                } else {
                    format!("put it into the braces of `{name}`, or give it a `- ` of its own")
                };
                let what = format!(
                    "{} is at the same level as `{name}`",
                    self.quote(&key, "a key")
                );
                Err(other.key_mistake(what, help))
            }
        }
    }
}
