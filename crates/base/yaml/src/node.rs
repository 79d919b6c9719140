//! Nodes: cursors into a document, each with its place.

use crate::document::{Document, not_understood};
use crate::source::Region;
use crate::tree::{Kind, NodeId, Step, Tree};
use crate::{Mistake, Mistakes, Place};

/// A value in the file: a scalar, a list or a map.
///
/// A getter returns the value, or reports a mistake at the node's place and returns [`Reported`].
#[derive(Debug, Clone, Copy)]
pub struct Node<'d> {
    pub(crate) document: &'d Document,
    pub(crate) id: NodeId,
    /// The node whose path messages show: for an item of a scalar-or-list, the list.
    pub(crate) path_of: NodeId,
    /// A bare name from [`Node::variant`], which may be read as a map without keys.
    pub(crate) bare: bool,
}

/// Proof that a mistake has been reported; only this crate creates one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported(pub(crate) ());

/// A value with the place it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub place: Place,
}

impl Document {
    /// Decodes the file. The closure may continue after a mistake to find more; its value is
    /// returned only when there are no mistakes.
    ///
    /// # Errors
    /// All mistakes found by it and by the parser, in file order.
    pub fn decode<'d, T>(
        &'d self,
        read: impl FnOnce(Node<'d>) -> Result<T, Reported>,
    ) -> Result<T, Mistakes> {
        let value = read(Node::root(self));
        // Mistakes are not reported again by a second decoding of the same document.
        let sink = self.sink.take();
        match (sink.into_mistakes(), value) {
            (Some(mistakes), _) => Err(mistakes),
            (None, Ok(value)) => Ok(value),
            // A `Reported` exists only together with a mistake, so this one came from another
            // document.
            (None, Err(Reported(()))) => Err(not_understood(&self.source.file)),
        }
    }
}

impl<'d> Node<'d> {
    pub(crate) const fn root(document: &'d Document) -> Self {
        Self {
            document,
            id: Tree::ROOT,
            path_of: Tree::ROOT,
            bare: false,
        }
    }

    pub(crate) const fn child(self, id: NodeId) -> Self {
        Self {
            document: self.document,
            id,
            path_of: id,
            bare: false,
        }
    }

    pub(crate) fn kind(self) -> &'d Kind {
        &self.document.tree.item(self.id).kind
    }

    /// Its place: that of the scalar itself; for a map, a list or an empty value, that of its key
    /// if it has one.
    pub fn place(self) -> Place {
        let own = self.document.tree.item(self.id).region;
        // A map or a list may have many lines, and nothing has no text to mark: carets below the
        // key are clearer.
        let is_text = matches!(self.kind(), Kind::Scalar { .. }) && !self.is_empty();
        let region = if is_text {
            own
        } else {
            self.key_region().unwrap_or(own)
        };
        self.place_at(region)
    }

    fn place_at(self, region: Region) -> Place {
        let source = &self.document.source;
        // Keys are part of the content too.
        let path = if source.secret {
            String::new()
        } else {
            self.document.tree.path(self.path_of)
        };
        source.place(region, path)
    }

    fn key_region(self) -> Option<Region> {
        match &self.document.tree.item(self.id).parent {
            Some((_, Step::Key(_, region))) => Some(*region),
            Some((_, Step::Index(_))) | None => None,
        }
    }

    /// The key of this value, or of the list that contains it.
    pub(crate) fn key_name(self) -> Option<String> {
        let mut id = self.id;
        loop {
            match &self.document.tree.item(id).parent {
                Some((_, Step::Key(name, _))) => return Some(name.to_string()),
                Some((list, Step::Index(_))) => id = *list,
                None => return None,
            }
        }
    }

    /// The key of this value, or the value itself when it is a bare name.
    pub(crate) fn own_name(self) -> Option<&'d str> {
        match (self.kind(), &self.document.tree.item(self.id).parent) {
            (Kind::Scalar { text, .. }, _) if self.bare => Some(text),
            (_, Some((_, Step::Key(name, _)))) => Some(name),
            (_, Some((_, Step::Index(_))) | None) => None,
        }
    }

    /// Reports a mistake at this node.
    pub fn mistake(self, what: impl Into<String>, help: impl Into<String>) -> Reported {
        self.put(|| self.place().mistake(what, help))
    }

    /// The place of its key; its own place when it has no key.
    pub(crate) fn key_place(self) -> Place {
        let own = self.document.tree.item(self.id).region;
        self.place_at(self.key_region().unwrap_or(own))
    }

    /// Reports a mistake at this node's key.
    pub(crate) fn key_mistake(self, what: impl Into<String>, help: impl Into<String>) -> Reported {
        self.put(|| self.key_place().mistake(what, help))
    }

    /// Whether it is a map.
    pub fn is_map(self) -> bool {
        matches!(self.kind(), Kind::Map(_))
    }

    /// Reports a mistake at a stored place.
    pub fn mistake_at(
        self,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.put(|| place.mistake(what, help))
    }

    fn put(self, mistake: impl FnOnce() -> Mistake) -> Reported {
        let mut sink = self.document.sink.borrow_mut();
        // The mistake is made only if it is kept: its place copies the line and builds the path,
        // and a file of 1 MiB can have a mistake in each value.
        if !sink.count_if_full() {
            sink.put(mistake());
        }
        Reported(())
    }

    /// Reports that the node is not of the expected kind.
    pub(crate) fn wrong_kind(self, expected: &str) -> Reported {
        let found = match self.kind() {
            // The alias itself has been reported.
            Kind::Refused => return Reported(()),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
            Kind::Scalar { .. } if self.is_empty() => "nothing".to_owned(),
            Kind::Scalar { text, .. } if text.is_empty() => "empty text".to_owned(),
            Kind::Scalar { text, .. } => self.quote(text, "something else"),
        };
        // An engine is named `null`, and YAML has the word for nothing.
        let is_null = matches!(self.kind(), Kind::Scalar { text, .. } if text == "null");
        let help = match (self.is_empty(), self.key_region()) {
            (true, _) if is_null => "`null` is YAML for nothing: write `\"null\"` for the word",
            (true, Some(_)) => "write a value after the key, or remove the key",
            _ => "",
        };
        self.mistake(format!("expected {expected}, found {found}"), help)
    }

    /// The file's text in quotes, or `instead` when the file holds secrets.
    pub(crate) fn quote(self, text: &str, instead: &str) -> String {
        self.document.source.quote(text, instead)
    }

    /// Whether the value is missing: empty, `~` or `null`.
    pub(crate) fn is_empty(self) -> bool {
        match self.kind() {
            Kind::Scalar { text, quoted } => !quoted && matches!(text.as_str(), "" | "~" | "null"),
            _ => false,
        }
    }

    /// The value with this node's place.
    pub fn spanned<T>(self, value: T) -> Spanned<T> {
        Spanned {
            value,
            place: self.place(),
        }
    }

    /// Reads a list, including the items after a mistaken one.
    ///
    /// # Errors
    /// When it is no list, or `read` fails for an item.
    pub fn list<T>(
        self,
        read: impl FnMut(Self) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        match self.kind() {
            Kind::List(items) => collect(items.iter().map(|item| self.child(*item)), read),
            _ => {
                let reported = self.wrong_kind("a list");
                // An alias has already been reported.
                if !self.is_empty() && !matches!(self.kind(), Kind::Refused) {
                    let mut sink = self.document.sink.borrow_mut();
                    sink.amend_help("write its items in brackets: `[one, another]`");
                }
                Err(reported)
            }
        }
    }

    /// Reads a list of at least one item, or a single item without a list.
    ///
    /// # Errors
    /// When the list is empty, or `read` fails for an item.
    pub fn one_or_many<T>(
        self,
        mut read: impl FnMut(Self) -> Result<T, Reported>,
    ) -> Result<Vec<T>, Reported> {
        match self.kind() {
            Kind::List(items) if items.is_empty() => Err(self.mistake(
                "the list is empty",
                "give at least one value, or remove the key",
            )),
            Kind::List(items) => {
                let item = |item: &NodeId| Self {
                    // A single value has no index in its path, so the same value in a list has
                    // none.
                    path_of: self.path_of,
                    ..self.child(*item)
                };
                collect(items.iter().map(item), read)
            }
            _ => read(self).map(|value| vec![value]),
        }
    }
}

/// Reads all items, then fails if any failed.
fn collect<'d, T>(
    nodes: impl Iterator<Item = Node<'d>>,
    read: impl FnMut(Node<'d>) -> Result<T, Reported>,
) -> Result<Vec<T>, Reported> {
    let results: Vec<_> = nodes.map(read).collect();
    results.into_iter().collect()
}
