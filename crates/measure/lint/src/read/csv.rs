//! CSV (RFC 4180) below lines that begin with `#`, which hold the table's keys.

use super::grid::{self, Text};
use super::keys::Keys;
use crate::document::Document;
use crate::source::Source;
use csv::{ReaderBuilder, StringRecord};

pub(super) fn read(source: &Source) -> Document {
    let mut document = Document::default();
    let text = &source.text;
    let keys_end: usize = text
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('#') || line.trim().is_empty())
        .map(str::len)
        .sum();
    let (comment, table) = text.split_at(keys_end);
    if table.is_empty() {
        let place = source.place(&(0..1));
        source.mistake(
            &place,
            "the file has no table",
            "write the rows below the keys",
        );
        return document;
    }
    let lines = records(source, keys_end, table);
    // Blanks of the same width, so that places in the keys are places in the file.
    let bare: String = comment
        .split_inclusive('\n')
        .map(|line| line.replacen('#', " ", 1))
        .collect();
    Keys::parse(source, 0, &bare, |keys| {
        grid::read(keys, lines, &mut document)
    });
    document
}

fn records(source: &Source, base: usize, table: &str) -> Vec<Vec<Text>> {
    let heading = table.lines().next().unwrap_or_default();
    let marks = [b'\t', b';', b','];
    let mark = marks
        .into_iter()
        .find(|mark| heading.contains(*mark as char));
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(mark.unwrap_or(b','))
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
