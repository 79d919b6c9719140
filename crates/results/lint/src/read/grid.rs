//! Converts a table of texts, from CSV or Markdown, to a table of figures.
//!
//! 1. Each text is read without its markup ([`markup`]).
//! 2. A row or column with several figures per cell becomes several ([`pairs`]). Counts are left
//!    out ([`counts`]).
//! 3. Keys that are not stated are guessed from the headings, and remarked ([`guess`]).
//! 4. Columns of text are left out; the first ones belong to the names of rows.
//! 5. The unambiguous numbers of a column, or else of the table, determine its decimal mark
//!    ([`decimals`]).
//!
//! After a mistake reading goes on with a likely value, so that all mistakes of a file are listed.

use super::columns::{self, Raw, columns, split};
use super::keys::{Keys, figure};
use super::left_out::{without_others, without_texts, without_unknown_units};
use super::markup::Text;
use super::{counts, decimals, guess, heading, markup, pairs, report, speed, statements, table};
use crate::document::{Axis, Document, Footnote, Remark, Table};
use crate::figure::Figure;
use crate::marks::{Decimal, Evidence, plain};
use crate::source::Source;
use crate::unit::Unit;
use yaml::Place;

/// What surrounds a table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around<'a> {
    /// The line of text above it.
    pub(super) above: &'a str,
    /// Whether it has no keys at all.
    pub(super) is_bare: bool,
    /// Advice on adding keys.
    pub(super) help: &'static str,
    /// The place of keys, in short.
    pub(super) stated_in: &'static str,
    /// The kind of the file.
    pub(super) form: Form,
}

/// Forms of tables that differ in what their numbers and cells may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// Any table.
    #[default]
    Any,
    /// Cells separated by semicolons, as programs write them where the decimal mark is a comma.
    Semicolons,
    /// Output of `openssl speed`: input sizes, and bytes per second.
    Speed,
    /// A report of this program: a cell that is no figure is left out.
    Report,
}

/// Keys of grids.
struct Stated {
    axis: Option<Axis>,
    mean: Option<String>,
    decimal: Option<Decimal>,
    parts: Option<Vec<String>>,
}

/// Reads a table below its keys. The first line holds the names of the columns, the first column
/// holds the names of the rows.
pub(super) fn read(
    keys: &Keys<'_>,
    lines: Vec<Vec<Text>>,
    around: Around<'_>,
    document: &mut Document,
) {
    // Before the key `skip` is looked at: mixes and claims in the comment of a skipped table may
    // refer to other tables.
    statements::read(keys, document);
    let mut lines = lines.into_iter();
    document.numbered += usize::from(lines.len() > 0);
    if table::is_skipped(keys) {
        return;
    }
    let Some(mut heading) = lines.next() else {
        return keys.refuse_without_table();
    };
    let mut table = table::read(keys, &format!("table {}", document.numbered));
    table.is_result = around.form == Form::Report;
    if around.is_bare {
        table.place = heading[0].1.clone();
    }
    let stated = stated(keys, &mut table);
    keys.refuse_others();
    let source = keys.source;
    let corner = markup::name(&heading[0].0).text;
    let width = heading.len();
    // With keys, a row of another length is a mistake. Later steps index the cells of a row by
    // column.
    let mut lines: Vec<Vec<Text>> = lines
        .filter(|line| around.is_bare || has_width(source, line, width, &table))
        .map(|mut line| {
            // In a table without keys, rows are cut or completed as GitHub shows them.
            let end = table.place.clone();
            line.resize_with(width, || (String::new(), end.clone()));
            line
        })
        .collect();
    let mut left_out = Vec::new();
    if matches!(around.form, Form::Any | Form::Semicolons) {
        lines = pairs::split_rows(&heading, lines);
        // Before anything is read: a count is no evidence for decimal marks, and may be any text.
        left_out = counts::take(&mut heading, &mut lines, &table.id, |name| {
            let is_mix = document.mixes.iter().any(|mix| mix.name == name);
            is_mix || stated.mean.as_deref() == Some(name)
        });
    }
    let mut names: Vec<Text> = Vec::new();
    for line in &lines {
        names.push((markup::name(&line[0].0).text, line[0].1.clone()));
    }
    let raw = columns(&heading, &lines);
    let mut raw: Vec<Raw> = raw
        .into_iter()
        .flat_map(|column| split(source, column, stated.parts.as_deref(), around.is_bare))
        .collect();
    if around.form == Form::Report {
        report::without_marks(&mut raw);
    }
    // The decimal mark comes before the question whether a column is text: `1,5` is a figure only
    // if the comma is known to be a decimal mark.
    let mut decimals = decimals::each(&raw, stated.decimal);
    let sizes = take_sizes(&stated, &corner, &mut names, &mut raw, &mut decimals);
    if around.is_bare {
        let is_kept = |(column, decimal): (&Raw, &Option<Decimal>)| {
            columns::is_of_rates(column, decimal.unwrap_or(Decimal::Point))
        };
        if !raw.iter().zip(&decimals).any(is_kept) {
            // A table of words, unless cells among the words look like rates or times.
            let first = lines.iter().flat_map(|line| line.iter().skip(1));
            let first = first.map(|(text, _)| markup::cell(text).text);
            if let Some(text) = first.into_iter().find(|text| counts::has_own_unit(text)) {
                document.remarks.push(Remark {
                    place: table.place.clone(),
                    what: format!(
                        "{} is not read, because no column is mostly figures, although it has `{text}`: put each kind of \
                         figures into a column of its own, or state its keys in {}",
                        table.id, around.stated_in
                    ),
                });
            }
            return;
        }
    }
    raw = without_texts(
        raw,
        &decimals,
        stated.axis,
        &mut names,
        (source, around.is_bare, document, &table),
    );
    raw = without_others(
        raw,
        (stated.axis, stated.mean.as_deref()),
        &corner,
        document,
        &table,
    );
    // After the columns of text are gone: their headings would spoil the guess of the axis, and
    // rows are read by the axis.
    let guessed = guess_keys(
        &mut table,
        &stated,
        &corner,
        &raw,
        (&names, sizes.as_ref()),
        around,
    );
    table.rows = names
        .iter()
        .enumerate()
        .map(|(at, (name, place))| match &sizes {
            Some(sizes) => {
                let size = sizes.names[at].clone();
                table::row(source, place, name, size, table.axis, document)
            }
            None => table::row(source, place, "", name.clone(), table.axis, document),
        })
        .collect();
    // Commas in the columns of text are no evidence for a decimal mark, so only the rest counts.
    let whole = decimals::whole_table(&raw);
    fill(
        source,
        &mut table,
        raw,
        &stated,
        (whole, around.form, around.is_bare),
        document,
    );
    // A prefix takes its unit from the column or the table, so both must be complete.
    let has_mistake = table::resolve_prefixes(source, &mut table);
    without_unknown_units(&mut table, around.is_bare, document);
    let is_empty = around.form == Form::Report && table.cells().next().is_none();
    if around.is_bare && (table.columns.is_empty() || is_empty) {
        return;
    }
    let is_unknown = table.cells().any(|cell| cell.unit().is_none());
    // Nobody declared this table for lint: a figure without a unit stops a bare table here, with
    // the advice for tables without keys, before `check` reports it with other advice.
    if around.is_bare && is_unknown {
        if has_mistake || around.form == Form::Report {
            return;
        }
        let what = "the table does not state what it holds: its figures have no unit";
        return source.mistake(&table.place, what, around.help);
    }
    if let Some(name) = &stated.mean
        && !heading
            .iter()
            .any(|(text, _)| markup::name(text).text == *name)
    {
        keys.mistake(
            format!("`{name}` is no column of the table"),
            "use the name of a column in `mean_frame_rate`",
        );
    }
    // Only for a table that is kept: remarks about the guesses for a dropped table would confuse.
    document.remarks.extend(guessed);
    document.remarks.extend(left_out);
    if !has_mistake {
        table::check(source, &table, document);
    }
    document.tables.push(table);
}

fn stated(keys: &Keys<'_>, table: &mut Table) -> Stated {
    let axis = table::axis(keys, table);
    let mean = keys.text("mean_frame_rate");
    let decimal = keys.optional("decimal").and_then(|value| {
        let text = value.text()?;
        match text.as_str() {
            "comma" => Some(Decimal::Comma),
            "point" => Some(Decimal::Point),
            _ => {
                let what = format!("`{text}` is no decimal mark");
                value.mistake(what, "write \"comma\" or \"point\"");
                None
            }
        }
    });
    let parts = keys.optional("parts").map(|value| value.list());
    let parts = parts.map(|list| list.iter().filter_map(|it| it.text()).collect());
    Stated {
        axis,
        mean,
        decimal,
        parts,
    }
}

/// Frame sizes as rows.
struct Sizes {
    /// The heading above them.
    heading: String,
    /// One for each row, as printed.
    names: Vec<String>,
}

/// Takes the frame sizes of the rows out of the names, or out of another column: of one row for
/// each size of each device. The names are then those of the devices.
fn take_sizes(
    stated: &Stated,
    corner: &str,
    names: &mut [Text],
    columns: &mut Vec<Raw>,
    decimals: &mut Vec<Option<Decimal>>,
) -> Option<Sizes> {
    let is_stated = match stated.axis {
        None => false,
        Some(Axis::Rates | Axis::Devices) => true,
        Some(_) => return None,
    };
    let first: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let is_first = guess::are_frames(corner, &first);
    let found = columns.iter().position(|column| {
        let cells: Vec<&str> = column.cells.iter().map(|(text, _)| text.as_str()).collect();
        guess::are_frames(&column.name, &cells)
    });
    match found {
        Some(at) if !is_first => {
            decimals.remove(at);
            let column = columns.remove(at);
            // An empty name repeats the one above it, as merged cells do.
            for at in 1..names.len() {
                if names[at].0.is_empty() {
                    names[at].0 = names[at - 1].0.clone();
                }
            }
            Some(Sizes {
                heading: column.name,
                names: column.cells.into_iter().map(|(text, _)| text).collect(),
            })
        }
        // With a stated axis each row that is no size is a mistake.
        _ if is_first || is_stated => Some(Sizes {
            heading: corner.to_owned(),
            names: names
                .iter_mut()
                .map(|(name, _)| std::mem::take(name))
                .collect(),
        }),
        _ => None,
    }
}

/// Guesses the kind of columns and the unit if the keys do not state them; a remark states both.
fn guess_keys(
    table: &mut Table,
    stated: &Stated,
    corner: &str,
    columns: &[Raw],
    (names, sizes): (&[Text], Option<&Sizes>),
    around: Around<'_>,
) -> Option<Remark> {
    let mut guessed: Vec<String> = Vec::new();
    // `k` behind every figure and sizes above them are the form of `openssl speed`, also in CSV.
    let is_known = table.unit.is_some() || !matches!(stated.axis, None | Some(Axis::Bytes));
    let is_speed = !is_known && (around.form == Form::Speed || speed::is_like(columns));
    let is_mean = |column: &&Raw| Some(&column.name) == stated.mean.as_ref();
    table.axis = stated.axis.unwrap_or_else(|| {
        if is_speed {
            guessed.push("columns = \"bytes\"".to_owned());
            return Axis::Bytes;
        }
        let headings = columns.iter().filter(|column| !is_mean(column));
        let headings: Vec<&str> = headings.map(|column| column.name.as_str()).collect();
        let axis = match sizes {
            Some(sizes) => {
                let rows: Vec<&str> = sizes.names.iter().map(String::as_str).collect();
                guess::axis(&sizes.heading, &headings, &rows, true)
            }
            None => {
                let rows: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
                guess::axis(corner, &headings, &rows, false)
            }
        };
        guessed.push(format!("columns = \"{}\"", table::axis_name(axis)));
        axis
    });
    let has_units = || {
        let with_unit = |column: &Raw| {
            let own = column.cells.iter().any(|(text, place)| {
                Figure::parse(text, place).is_ok_and(|figure| figure.unit.is_some())
            });
            own || heading::with_unit(&column.name).1.is_some()
        };
        columns.iter().all(with_unit)
    };
    if is_speed {
        table.unit = Unit::parse("B/s");
        guessed.push("unit = \"B/s\"".to_owned());
    } else if table.unit.is_none() && table.axis != Axis::Rates && !has_units() {
        table.unit = guess::unit(corner, around.above);
        if let Some(unit) = &table.unit {
            guessed.push(format!("unit = \"{}\"", unit.text));
        }
    }
    // Without these two the rule that finds most impossible figures is silent.
    let has_sizes = matches!(table.axis, Axis::Frame) || table.has_size_rows();
    let link = if has_sizes && table.link_bps.is_none() {
        ", with `link` (the rate of the link, as `link = \"10 Gbit/s\"`) and `layer` (`\"L1\"`, `\"L2\"`, `\"IP\"` or \
         `\"payload\"`) to compare its rates with the link"
    } else {
        ""
    };
    let from = if is_speed {
        "as of `openssl speed`, where `k` is 1000 bytes per second"
    } else {
        "from its headings"
    };
    (!guessed.is_empty()).then(|| Remark {
        place: table.place.clone(),
        what: format!(
            "keys of {} are guessed {from}: {}; state them in {}{link}",
            table.id,
            guessed.join(", "),
            around.stated_in
        ),
    })
}

/// Reads the figures of each column.
fn fill(
    source: &Source,
    table: &mut Table,
    columns: Vec<Raw>,
    stated: &Stated,
    (whole, form, is_bare): (Evidence, Form, bool),
    document: &mut Document,
) {
    let mut unclear = None;
    for raw in columns {
        let is_mean = Some(&raw.name) == stated.mean.as_ref();
        let column =
            (!is_mean).then(|| table::column(source, &raw.place, &raw.name, table, document));
        // A column without any unit in a table without keys is not checked, and makes no mistakes.
        let is_ignored = is_bare && !is_mean && has_no_unit(&raw, table);
        // After a mistake the column is read with both marks, so that all its mistakes are found.
        let found = match stated.decimal {
            None if !is_ignored => decimals::of(source, &raw, whole, form == Form::Semicolons),
            stated => stated,
        };
        if unclear.is_none() && stated.decimal.is_none() && decimals::is_point_unclear(&raw, whole)
        {
            unclear = decimals::with_mark(&raw, '.');
        }
        let has_unit = column.as_ref().is_some_and(|column| column.unit.is_some());
        for (number, (row, cell)) in table.rows.iter_mut().zip(&raw.cells).enumerate() {
            let (text, place) = cell;
            let read = match form {
                _ if markup::is_missing(text) => None,
                _ if is_ignored => Figure::parse(&plain(text, Decimal::Point), place).ok(),
                Form::Report => {
                    report::figure(&plain(text, found.unwrap_or(Decimal::Point)), place)
                }
                _ => match pairs::parts(text) {
                    Some(_) => {
                        let first = pairs::refuse(source, cell);
                        first.and_then(|first| cell_figure(source, &first, place, found))
                    }
                    None => cell_figure(source, text, place, found),
                },
            };
            let notes = raw.notes.iter();
            let notes = notes.filter(|(at, _)| at.is_none_or(|at| at == number));
            // Above a unit of the table, which the row states more precisely.
            let of_row = heading::of_row(&row.name).filter(|_| !has_unit);
            let read = read.map(|figure| match of_row {
                Some(unit) if figure.unit.is_none() => Figure {
                    // A prefix alone is completed later.
                    text: match figure.prefix {
                        None => format!("{} {}", figure.text, unit.text),
                        Some(_) => figure.text,
                    },
                    unit: Some(unit),
                    ..figure
                },
                _ => figure,
            });
            if read.is_some() {
                document.footnotes.extend(notes.map(|(at, mark)| Footnote {
                    mark: mark.clone(),
                    place: at.map_or(&raw.place, |_| place).clone(),
                    table: table.id.clone(),
                    is_explained: false,
                }));
            }
            if is_mean {
                let unit = heading::with_unit(&raw.name).1;
                row.mean_frame_rate = read.map(|mean| table::mean(source, mean, unit))
            } else {
                row.cells.push(read)
            }
        }
        table.columns.extend(column);
    }
    let marked = table.rows.iter().filter_map(|row| {
        let mark = row.name.chars().last().filter(|c| markup::is_dagger(*c))?;
        let has_figure = row.cells.iter().any(Option::is_some);
        has_figure.then(|| Footnote {
            mark: mark.to_string(),
            place: row.place.clone(),
            table: table.id.clone(),
            is_explained: false,
        })
    });
    document.footnotes.extend(marked);
    if let Some((text, place)) = unclear {
        document.remarks.push(Remark {
            place,
            what: format!(
                "the points of {}, as in `{text}`, are read as decimal marks, and may separate thousands: state \
                 `decimal = \"point\"` or `decimal = \"comma\"`",
                table.id
            ),
        });
    }
}

/// Reports a row of another length than the heading: merged cells, or a mark that splits a cell.
fn has_width(source: &Source, line: &[Text], wide: usize, table: &Table) -> bool {
    if line.len() == wide {
        return true;
    }
    if let Some((name, place)) = line.first() {
        let what = format!(
            "row `{name}` of table `{}` has {} cells, and its heading {wide}",
            table.id,
            line.len()
        );
        let help = "repeat merged cells in each column, write `-` for an empty one, and put a cell with the delimiter \
                    in quotes";
        source.cell_mistake(place, what, help);
    }
    false
}

/// Whether neither the table nor a row, the heading or a cell of a column states a unit.
fn has_no_unit(column: &Raw, table: &Table) -> bool {
    let in_row = || {
        table
            .rows
            .iter()
            .any(|row| heading::of_row(&row.name).is_some())
    };
    let in_cell = || {
        column
            .cells
            .iter()
            .any(|(text, _)| counts::has_own_unit(text))
    };
    let is_of_names = matches!(table.axis, Axis::Names | Axis::Devices) && table.unit.is_none();
    is_of_names && heading::with_unit(&column.name).1.is_none() && !in_row() && !in_cell()
}

/// Reads a cell with the decimal mark of its column. If that is ambiguous, which is reported, the
/// cell has either mark.
fn cell_figure(
    source: &Source,
    text: &str,
    place: &Place,
    decimal: Option<Decimal>,
) -> Option<Figure> {
    let with = |decimal| plain(text, decimal);
    match decimal {
        Some(decimal) => figure(source, &with(decimal), place),
        None => {
            let comma = Figure::parse(&with(Decimal::Comma), place).ok();
            comma.or_else(|| figure(source, &with(Decimal::Point), place))
        }
    }
}
