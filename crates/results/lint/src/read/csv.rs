//! CSV (RFC 4180) below lines that begin with `#`, which hold the table's keys.

use super::grid::{self, Around, Form};
use super::keys::Keys;
use super::markup::Text;
use super::speed;
use crate::document::{Document, Remark};
use crate::source::Source;
use csv::{ReaderBuilder, StringRecord};

/// The beginning of Excel's line with the separator of a file.
const SEPARATOR: &str = "sep=";
/// The separators that this line may state.
const SEPARATORS: [char; 5] = [';', ',', '|', ':', '\t'];
/// How keys are added.
const HELP: &str = "state them above the table in lines that begin with `#`: `# unit = \"Mbit/s\"`, \
                    `# columns = \"frame\"`";
/// The first columns of our own results.
const OWN: [&str; 3] = ["cell", "group", "dut"];
/// The first character of a note below the table.
const NOTES: [char; 16] = [
    '*', '†', '‡', '§', '¶', '[', '⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹',
];

pub(super) fn read(source: &Source) -> Document {
    let mut document = Document::default();
    let text = &source.text;
    let mut separator = None;
    let mut keys_end = 0;
    // The keys, with blanks for all other text, so that places in the keys are places in the file.
    let mut bare = String::new();
    for line in text.split_inclusive('\n') {
        let stated = line.get(..SEPARATOR.len());
        let is_separator = stated.is_some_and(|it| it.eq_ignore_ascii_case(SEPARATOR));
        if is_separator {
            separator = line[SEPARATOR.len()..].bytes().next();
            let width = line.trim_end_matches('\n').len();
            // One blank per byte: places count bytes from the start of the file.
            bare.push_str(&" ".repeat(width));
            bare.push_str(&line[width..]);
        } else if holds_keys(line) || line.trim().is_empty() {
            bare.push_str(&line.replacen('#', " ", 1));
        } else {
            break;
        }
        keys_end += line.len();
    }
    // Only the lines before the heading hold keys: a later row may begin with `#`.
    let table = &text[keys_end..];
    if table.is_empty() {
        let place = source.place(&(0..1));
        source.mistake(
            &place,
            "the file has no table",
            "write the rows below the keys",
        );
        return document;
    }
    let around = Around {
        above: "",
        is_bare: bare.trim().is_empty(),
        help: HELP,
        stated_in: "lines above it that begin with `#`",
        form: Form::Any,
    };
    let outputs = speed::tables(source, keys_end..text.len());
    if !outputs.is_empty() {
        read_outputs(source, outputs, &bare, around, &mut document);
        return document;
    }
    let mark = separator_of(table, separator);
    let mut lines = records(source, keys_end, table, mark);
    let notes = notes_below(&mut lines);
    let around = Around {
        form: if mark == b';' {
            Form::Semicolons
        } else {
            Form::Any
        },
        ..around
    };
    if is_own_results(&lines) {
        document.remarks.push(Remark {
            place: source.place(&(0..1)),
            what: "this is a `results.csv` of Cipherbench, with a line for each repeat, and not checked: check the \
                   `results.json` beside it"
                .to_owned(),
        });
        return document;
    }
    Keys::parse(source, 0, &bare, |keys| {
        grid::read(keys, lines, around, &mut document);
    });
    for footnote in &mut document.footnotes {
        // A note may be written `1)` or `1:` for the mark `[1]`.
        let sign = footnote.mark.trim_matches(['[', ']', '^']);
        footnote.is_explained = notes.iter().any(|note| note.contains(sign));
    }
    document
}

/// Whether these are the lines of a `results.csv`: repeats of one cell are no copies of each other.
fn is_own_results(lines: &[Vec<Text>]) -> bool {
    let heading = lines.first();
    heading.is_some_and(|line| {
        let names = line.iter().map(|(name, _)| name.as_str());
        names.take(OWN.len()).eq(OWN)
    })
}

/// Whether a line above the table holds keys. A table may have the heading `#` above the numbers of
/// its rows, and no key begins with a separator.
fn holds_keys(line: &str) -> bool {
    let rest = line.strip_prefix('#');
    rest.is_some_and(|rest| !rest.starts_with(SEPARATORS))
}

/// Takes the notes below a table out of its lines: lines with a single cell that begins with a
/// mark.
fn notes_below(lines: &mut Vec<Vec<Text>>) -> Vec<String> {
    let mut notes = Vec::new();
    // The heading always stays, so a file with a single marked cell remains a table.
    while let Some(last) = lines.last().filter(|_| lines.len() > 1) {
        let mut shown = last.iter().filter(|(text, _)| !text.is_empty());
        let (Some((text, _)), None) = (shown.next(), shown.next()) else {
            break;
        };
        if !text.starts_with(NOTES) {
            break;
        }
        notes.push(text.clone());
        lines.pop();
    }
    notes
}

/// Reads the output of `openssl speed` from a file that holds nothing else to check.
pub(super) fn read_speed(source: &Source) -> Document {
    let mut document = Document::default();
    let outputs = speed::tables(source, 0..source.text.len());
    if outputs.is_empty() {
        let what = "no table of `openssl speed` is in the file";
        let help = "give a file with another table a name that ends in .csv or .md";
        source.mistake(&source.place(&(0..1)), what, help);
    }
    let around = Around {
        above: "",
        is_bare: true,
        help: HELP,
        stated_in: "a file whose name ends in .csv, in lines above it that begin with `#`",
        form: Form::Any,
    };
    read_outputs(source, outputs, "", around, &mut document);
    document
}

/// Reads tables of `openssl speed`. The keys are of the first.
fn read_outputs(
    source: &Source,
    outputs: Vec<speed::TextTable>,
    keys: &str,
    around: Around<'_>,
    document: &mut Document,
) {
    let mut keys = keys;
    for output in outputs {
        let around = Around {
            is_bare: keys.trim().is_empty(),
            form: Form::Speed,
            ..around
        };
        Keys::parse(source, 0, keys, |keys| {
            grid::read(keys, output.lines, around, document);
        });
        keys = "";
    }
}

/// The separator of a table: the stated one, or the first that its heading has.
fn separator_of(table: &str, stated: Option<u8>) -> u8 {
    let heading = table.lines().next().unwrap_or_default();
    // The comma comes last: with another separator it may be a decimal mark or part of a heading.
    let marks = [b'\t', b';', b','];
    let found = marks
        .into_iter()
        .find(|mark| heading.contains(*mark as char));
    let is_known = |mark: &u8| SEPARATORS.contains(&char::from(*mark));
    stated.filter(is_known).or(found).unwrap_or(b',')
}

fn records(source: &Source, base: usize, table: &str, mark: u8) -> Vec<Vec<Text>> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(mark)
        .from_reader(table.as_bytes());
    let mut lines = Vec::new();
    let mut record = StringRecord::new();
    // A slice of valid UTF-8 has no other errors: rows may have any length.
    while reader.read_record(&mut record).unwrap_or(false) {
        let start = record.position().map_or(0, |it| it.byte() as usize);
        lines.push(texts(source, base, table, start, &record));
    }
    lines
}

/// The fields with their places: the reader reports the record's alone.
fn texts(
    source: &Source,
    base: usize,
    table: &str,
    start: usize,
    record: &StringRecord,
) -> Vec<Text> {
    let mut from = start;
    let field = |field: &str| {
        // A field with doubled quotes is not in the file as the reader returns it. Its place is
        // then the start of the search.
        let found = table.get(from..).and_then(|rest| rest.find(field));
        let at = found.map_or(from, |at| from + at);
        from = at + field.len();
        let length = field.trim().len().max(1);
        let lead = field.len() - field.trim_start().len();
        let range = base + at + lead..base + at + lead + length;
        (field.trim().to_owned(), source.place(&range))
    };
    record.iter().map(field).collect()
}
