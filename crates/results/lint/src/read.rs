//! Readers: a file's text to a [`Document`], with all mistakes of the file at their places.

mod beside;
mod columns;
mod comment;
mod counts;
mod csv;
mod decimals;
mod grid;
mod guess;
mod heading;
mod keys;
mod left_out;
mod markdown;
mod markup;
mod pairs;
mod report;
mod results;
mod speed;
mod statements;
mod table;
mod toml;

use crate::document::Document;
use crate::source::Source;
use std::path::Path;
use yaml::{FILE_BYTES_MAX, Mistakes, Place};

/// The longest file accepted: a `results.json` has thousands of estimates, other files 1 MiB.
pub const RESULTS_BYTES_MAX: usize = 64 * FILE_BYTES_MAX;

/// A published table is read by people; longer ones are no tables.
const LINE_BYTES_MAX: usize = 16 << 10;
const FIGURES_MAX: usize = 20_000;

/// Reads a file by the end of its name: `.toml`, `.csv`, `.md`, `.txt` or `.json`.
///
/// # Errors
/// All mistakes of the file. Another end of name, or a file that is too long, is one.
pub fn read(file: &str, text: &str) -> Result<Document, Mistakes> {
    let end = Path::new(file).extension().and_then(|end| end.to_str());
    let whole = Place::whole_file(file);
    let most = match end {
        Some("json") => RESULTS_BYTES_MAX,
        _ => FILE_BYTES_MAX,
    };
    if text.len() > most {
        let what = format!("the file is longer than {} MiB", most >> 20);
        return Err(whole
            .mistake(what, "split it, or leave out what is no table")
            .into());
    }
    // Spreadsheets begin a file with a mark of its encoding.
    let source = Source::new(file, text.strip_prefix('\u{feff}').unwrap_or(text));
    let is_run = end == Some("json");
    if let Some(line) = source.longer_line(LINE_BYTES_MAX).filter(|_| !is_run) {
        let what = format!("line {line} is longer than {} KiB", LINE_BYTES_MAX >> 10);
        return Err(whole.mistake(what, "tables have one row a line").into());
    }
    let mut document = match end {
        Some("toml") => toml::read(&source),
        Some("csv") => csv::read(&source),
        Some("txt") => csv::read_speed(&source),
        Some("md") => markdown::read(&source),
        Some("json") => results::read(&source),
        _ => {
            let what = "the name does not end in .toml, .csv, .md, .txt or .json";
            let help = "tables are read as TOML, CSV, Markdown or the text of `openssl speed`, and runs from their \
                        results.json";
            return Err(whole.mistake(what, help).into());
        }
    };
    let figures = document.figure_count();
    if figures > FIGURES_MAX && !is_run {
        let what = format!("the file has {figures} figures, more than {FIGURES_MAX}");
        return Err(whole.mistake(what, "split it").into());
    }
    // After the whole file: a table may name one that follows it.
    if !source.is_broken() {
        statements::check_references(&source, &document);
    }
    for table in &mut document.tables {
        // After all cells are read, as it depends on every figure of the table.
        table.find_precision();
    }
    source.finish(document)
}
