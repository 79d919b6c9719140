//! Parser events to a tree of nodes, each with its place.
//!
//! YAML features that this crate does not support (anchors, aliases, merge keys, tags, keys that
//! are not text, a second document, directives) become mistakes here; the tree remains usable so
//! that decoding can find further mistakes.

use crate::sink::Sink;
use crate::source::{Region, Source};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use std::collections::HashMap;
use std::rc::Rc;

/// Maps and lists deeper than this are refused.
pub const DEPTH_MAX: usize = 32;

pub(crate) type NodeId = usize;

/// All nodes of a document. Parents precede their children.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) region: Region,
    /// The parent node and the step from it to this one; `None` at the root.
    pub(crate) parent: Option<(NodeId, Step)>,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Scalar {
        text: String,
        quoted: bool,
    },
    List(Vec<NodeId>),
    Map(Vec<NodeId>),
    /// An alias: a mistake that has been reported.
    Refused,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Key(Rc<str>, Region),
    Index(usize),
}

impl Tree {
    pub(crate) const ROOT: NodeId = 0;

    pub(crate) fn item(&self, id: NodeId) -> &Item {
        &self.items[id]
    }

    /// Whether the root is a map with this key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        let is_key = |id: &NodeId| match &self.items[*id].parent {
            Some((_, Step::Key(name, _))) => &**name == key,
            Some((_, Step::Index(_))) | None => false,
        };
        self.children(Self::ROOT).iter().any(is_key)
    }

    fn children(&self, id: NodeId) -> &[NodeId] {
        match &self.items[id].kind {
            Kind::List(children) | Kind::Map(children) => children,
            Kind::Scalar { .. } | Kind::Refused => &[],
        }
    }

    /// The path from the root, for example `trials[0].tcp.mtu`.
    pub(crate) fn path(&self, mut id: NodeId) -> String {
        let mut steps = Vec::new();
        while let Some((parent, step)) = &self.items[id].parent {
            steps.push(step);
            id = *parent;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Key(name, _) => extend_path(&mut path, name),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
            }
        }
        path
    }
}

pub(crate) fn extend_path(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(&crate::source::shown(key));
}

/// Parses a text. Errors go to the sink; `None` when they leave nothing to decode.
pub(crate) fn build(source: &Source, text: &str, sink: &mut Sink) -> Option<Tree> {
    let mut builder = Builder {
        source,
        sink,
        tree: Tree::default(),
        frames: Vec::new(),
        skipped: 0,
    };
    for event in Parser::new_from_str(text) {
        let result = match event {
            Ok((event, span)) => builder.event(event, span),
            Err(error) => Err(builder.syntax_error(&error)),
        };
        // After a syntax error the events end, and open maps would look as if they had all their
        // keys.
        if result.is_err() {
            return None;
        }
    }
    if builder.tree.items.is_empty() {
        let start = Region {
            line: 1,
            column: 1,
            length: 1,
        };
        builder.report(start, "the file is empty", "");
        return None;
    }
    Some(builder.tree)
}

/// Parsing cannot continue usefully.
struct Stop;

struct Builder<'a> {
    source: &'a Source,
    sink: &'a mut Sink,
    tree: Tree,
    /// The open maps and lists.
    frames: Vec<Frame>,
    /// Open maps and lists inside a key that is not text.
    skipped: usize,
}

struct Frame {
    id: NodeId,
    /// `None` for lists.
    keys: Option<Keys>,
}

/// The keys of an open map: those seen, and the one whose value is next.
#[derive(Default)]
struct Keys {
    line_of: HashMap<Rc<str>, usize>,
    next: Option<Key>,
}

struct Key {
    name: Rc<str>,
    region: Region,
    /// A mistake that has been reported: its value is read and discarded.
    refused: bool,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let region = region(span);
        // Inside a key that is not text: its mistake is reported, and nothing in it belongs to
        // the tree.
        if self.skipped > 0 {
            match event {
                Event::SequenceStart(..) | Event::MappingStart(..) => self.skipped += 1,
                Event::SequenceEnd | Event::MappingEnd => self.skipped -= 1,
                _ => {}
            }
            return Ok(());
        }
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) => self.document(region)?,
            Event::Alias(_) => {
                self.report(region, "aliases are not supported", "write the value out");
                if self.expects_key() {
                    self.refuse_key(region)
                } else {
                    // The node remains, so that its key counts as given and is not reported as
                    // missing too.
                    self.attach(Kind::Refused, region);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(region, anchor, tag.is_some());
                if self.expects_key() {
                    self.key(&text, region)
                } else if style == ScalarStyle::Plain && self.continues_a_list(&text, region) {
                    self.report(
                        region,
                        "this item goes on in a line that begins with `- `",
                        "begin all items of a list in one column; text that holds ` - ` needs quotes",
                    );
                    self.attach(Kind::Refused, region);
                } else {
                    // Kept for getters of numbers: `"5"` is text, and a quoted `null` is a word.
                    let quoted = style != ScalarStyle::Plain;
                    self.attach(
                        Kind::Scalar {
                            text: text.into_owned(),
                            quoted,
                        },
                        region,
                    );
                }
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_properties(region, anchor, tag.is_some());
                self.open(Kind::List(Vec::new()), region)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_properties(region, anchor, tag.is_some());
                self.open(Kind::Map(Vec::new()), region)?;
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.frames.pop()),
        }
        Ok(())
    }

    fn document(&mut self, region: Region) -> Result<(), Stop> {
        if !self.tree.items.is_empty() {
            let help = "put it into a file of its own; a lone `---` or `...` can be removed";
            self.report(region, "a second document starts here", help);
            return Err(Stop);
        }
        // The parser makes no event of directives, so their line is searched for.
        if let Some(line) = self.source.directive_before(region.line) {
            let region = Region {
                line,
                column: 1,
                length: usize::MAX,
            };
            self.report(
                region,
                "directives are not supported",
                "remove this line and the `---` after it",
            );
        }
        Ok(())
    }

    /// Rejects anchors and tags; the node itself is still read.
    fn refuse_properties(&mut self, region: Region, anchor: usize, tag: bool) {
        if anchor > 0 {
            self.report(
                region,
                "anchors are not supported",
                "write the value where it is needed",
            );
        }
        if tag {
            self.report(
                region,
                "tags are not supported",
                "remove it: each key knows the type of its value",
            );
        }
    }

    /// Whether an item of a list holds the next one, which is indented further.
    fn continues_a_list(&self, text: &str, region: Region) -> bool {
        let is_item = self.frames.last().is_some_and(|frame| frame.keys.is_none());
        // A region over several lines has no length.
        is_item && region.length == usize::MAX && text.contains(" - ")
    }

    fn expects_key(&self) -> bool {
        let keys = self.frames.last().and_then(|frame| frame.keys.as_ref());
        keys.is_some_and(|keys| keys.next.is_none())
    }

    fn key(&mut self, name: &str, region: Region) {
        // YAML 1.1 merges maps by this key. As an unknown key it would get no useful help.
        if name == "<<" {
            self.report(region, "merge keys are not supported", "write the keys out");
            return self.refuse_key(region);
        }
        let name: Rc<str> = name.into();
        let Some(keys) = self.frames.last_mut().and_then(|frame| frame.keys.as_mut()) else {
            return;
        };
        let first = keys.line_of.get(&name).copied();
        keys.next = Some(Key {
            name: name.clone(),
            region,
            // The first of two equal keys applies. The second one's value must still be taken
            // from the events.
            refused: first.is_some(),
        });
        match first {
            None => drop(keys.line_of.insert(name, region.line)),
            Some(line) => {
                let what = format!("{} is given twice", self.source.the("key", &name));
                self.report(
                    region,
                    &what,
                    &format!("the first is on line {line}: remove one of them"),
                );
            }
        }
    }

    fn refuse_key(&mut self, region: Region) {
        if let Some(keys) = self.frames.last_mut().and_then(|frame| frame.keys.as_mut()) {
            keys.next = Some(Key {
                name: "?".into(),
                region,
                refused: true,
            });
        }
    }

    fn open(&mut self, kind: Kind, region: Region) -> Result<(), Stop> {
        if self.expects_key() {
            self.report(
                region,
                "a key must be text",
                "remove the `?`, or the brackets around the key",
            );
            self.refuse_key(region);
            // The end of this map or list is counted too, and ends the skipping.
            self.skipped = 1;
            return Ok(());
        }
        // Decoders and the conversion to JSON recurse by depth: the limit keeps their stack
        // small.
        if self.frames.len() == DEPTH_MAX {
            let what = format!("maps and lists are nested deeper than {DEPTH_MAX}");
            self.report(region, &what, "no file needs that: is a bracket left open?");
            return Err(Stop);
        }
        let keys = matches!(kind, Kind::Map(_)).then(Keys::default);
        let id = self.attach(kind, region);
        self.frames.push(Frame { id, keys });
        Ok(())
    }

    /// Adds a node to the innermost open map or list.
    fn attach(&mut self, kind: Kind, region: Region) -> NodeId {
        let id = self.tree.items.len();
        let mut parent = None;
        if let Some(frame) = self.frames.last_mut() {
            // Taking it makes the next event of this map a key again.
            let key = frame.keys.as_mut().and_then(|keys| keys.next.take());
            let refused = key.as_ref().is_some_and(|key| key.refused);
            let step = match key {
                Some(key) => Step::Key(key.name, key.region),
                None => Step::Index(self.tree.children(frame.id).len()),
            };
            parent = Some((frame.id, step));
            if !refused
                // A refused node stays out of its parent's children, so no decoder sees it. It is
                // still a parent itself, and the places below it have paths.
                && let Kind::List(children) | Kind::Map(children) =
                    &mut self.tree.items[frame.id].kind
            {
                children.push(id);
            }
        }
        self.tree.items.push(Item {
            kind,
            region,
            parent,
        });
        id
    }

    fn syntax_error(&mut self, error: &ScanError) -> Stop {
        let marker = error.marker();
        let region = Region {
            line: marker.line(),
            column: marker.col() + 1,
            length: 1,
        };
        let (what, help) = explain(error.info());
        self.report(region, &what, help);
        Stop
    }

    /// Adds a mistake to the sink, with the path that is open here.
    fn report(&mut self, region: Region, what: &str, help: &str) {
        let mut path = String::new();
        if let Some(frame) = self.frames.last() {
            path = self.tree.path(frame.id);
            match frame.keys.as_ref().map(|keys| &keys.next) {
                Some(Some(key)) => extend_path(&mut path, &key.name),
                Some(None) => {}
                None => path.push_str(&format!("[{}]", self.tree.children(frame.id).len())),
            }
        }
        if self.source.secret {
            path.clear();
        }
        self.sink
            .put(self.source.place(region, path).mistake(what, help));
    }
}

/// The region of an event. The parser counts columns in characters from 0.
fn region(span: Span) -> Region {
    let (start, end) = (span.start, span.end);
    // A region that continues on the next line is marked to the end of this one; `Source::place`
    // cuts it there.
    let length = if start.line() == end.line() {
        end.col().saturating_sub(start.col())
    } else {
        usize::MAX
    };
    Region {
        line: start.line(),
        column: start.col() + 1,
        length,
    }
}

/// Rewords the parser's message where a common slip causes it, and adds what to do.
fn explain(info: &str) -> (String, &'static str) {
    const QUOTE: &str = "text that begins so or holds `: ` or ` #` needs quotes";
    // The scanner's errors have no codes. A message that a new version rewords is shown as it is,
    // without help.
    let has = |part| info.contains(part);
    if has("mapping values are not allowed") {
        (
            "a `:` is not allowed here".to_owned(),
            "text that holds `: ` needs quotes; a key starts its own line",
        )
    } else if has("did not find expected key") || has("did not find expected '-'") {
        (
            "this line does not begin in the column of those that it belongs to".to_owned(),
            "begin all items of a list in one column, and all keys of a map in one column",
        )
    } else if has("tab") {
        ("a tab is not allowed here".to_owned(), "indent with spaces")
    } else if has("unexpected character") || has("found character that cannot start any token") {
        (info.replace('`', "'"), QUOTE)
    } else if has("unexpected end of stream") && has("quoted") {
        ("this quote is not closed".to_owned(), "")
    } else if has("bracket") || has("illegal placement of ':'") || has("',' or") {
        (
            info.to_owned(),
            "is a `[`, `{` or comma missing, or one too many, here or on the lines above?",
        )
    } else if has("unknown anchor") {
        (
            "aliases are not supported".to_owned(),
            "write the value out; text that begins with `*` needs quotes",
        )
    } else if has("recursion limit") {
        (
            "maps and lists are nested too deeply".to_owned(),
            "is a bracket left open?",
        )
    } else {
        (info.to_owned(), "")
    }
}
