//! Suites of one device.

mod chart;

use crate::kit::cells::{FORMAT, reason_cell, with_repeats};
use crate::kit::fact::repeats;
use crate::kit::format::{Scale, percent, si};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::groups::{GroupWords, words_of};
use crate::layout::{Run, marked};
use crate::order::{grouped, unique};
use stats::{CeilingBasis, CellResult, Estimate, SuiteEntry, SuiteMatrix};
use wire::{Cipher, Hmac, Suite};

fn reading(run: &Run<'_>) -> String {
    format!(
        "From the oldest to the strongest. Bars, or marks on a logarithmic axis: mean of the repeats; \
         the line on a bar or behind it: the ceiling that packets of this length leave, where it is \
         not far above all figures. {} Beside them, what the suite adds to each packet, and the \
         share of the ceiling that was reached.",
        run.whiskers()
    )
}

pub(super) const SECTION: Section =
    Section::result("suites", "Suites: cipher by hash", |run, out| {
        let tables = suites(run, out.is_short());
        let overview = overview(run);
        let has_overview = !overview.is_empty();
        out.tables(overview);
        for (index, (matrix, rows)) in run.results.suites.iter().zip(tables).enumerate() {
            let id = format!("suites-{index}");
            let draw = || chart::draw(run, matrix, &id);
            out.folded_chart(has_overview, rows.caption.as_str(), reading(run), draw);
            out.table(rows);
        }
    })
    .named("Suites");

/// Heading of suites without a separate hash.
const AEAD: &str = "none (AEAD)";

/// Columns from the oldest hash to the strongest, then the hashes of GOST ciphers.
const HASHES: [&str; 8] = [
    "MD5",
    "SHA-1",
    "SHA-256",
    "SHA-512",
    "OMAC",
    "Magma-MGM",
    "Kuznyechik-MGM",
    AEAD,
];

/// A line of a cipher's block.
type Line = (&'static str, fn(&CellResult) -> Cell);

const LINES: [Line; 4] = [
    ("throughput", figure),
    ("overhead", overhead),
    ("ceiling", ceiling),
    ("reached", reached),
];

/// One table per matrix; `short` is for the end of a run.
fn suites(run: &Run<'_>, short: bool) -> Vec<Table> {
    let words = run.group_words();
    let of = |matrix: &SuiteMatrix| {
        // The settings that all its cells share are in the note, the others in the caption.
        let words = words_of(&words, &matrix.group);
        // With one hash per cipher, most of a matrix would be empty.
        if short || !is_crossed(matrix) {
            list(run, matrix, &words)
        } else {
            table(run, matrix, &words)
        }
    };
    run.results.suites.iter().map(of).collect()
}

/// Maximum settings side by side in one table.
const SETTINGS_MAX: usize = 8;

/// The throughput of each suite in each setting, suites as rows. Empty for a single setting.
fn overview(run: &Run<'_>) -> Vec<Table> {
    let words = run.group_words();
    let by_device = run.results.suites.iter().map(|one| (&one.device, one));
    let by_device = grouped(by_device).into_iter();
    let several = by_device.filter(|(_, matrices)| matrices.len() > 1);
    let tables = several.flat_map(|(device, matrices)| {
        let chunks = matrices.chunks(SETTINGS_MAX);
        let tables = chunks.map(|some| side_by_side(run, device, some, &words));
        tables.collect::<Vec<_>>()
    });
    tables.collect()
}

fn side_by_side(
    run: &Run<'_>,
    device: &str,
    matrices: &[&SuiteMatrix],
    words: &[(&str, GroupWords)],
) -> Table {
    let note = "mean of the repeats; in brackets: of the ceiling that packets of this length leave";
    let caption = format!("Suites of {device}: throughput");
    let mut table = Table::new(caption, note)
        .labels(["Suite"])
        .figures(matrices.iter().map(|one| words_of(words, &one.group).name));
    let entries = matrices.iter().flat_map(|matrix| &matrix.entries);
    for suite in unique(entries.map(entry_name)) {
        let cells = matrices.iter().map(|matrix| {
            let entry = matrix.entries.iter().find(|one| entry_name(one) == suite);
            let cell = entry.and_then(|entry| run.cell(&entry.cell));
            cell.map_or_else(Cell::missing, mean_of_ceiling)
        });
        let cells: Vec<Cell> = cells.collect();
        table.push([Cell::label(suite)].into_iter().chain(cells).collect());
    }
    table
}

/// `2.67 Gbit/s (51.3 %)`.
fn mean_of_ceiling(cell: &CellResult) -> Cell {
    let Some((found, unit)) = rate_of(cell) else {
        return reason_cell(cell);
    };
    let value = si(found.mean, unit);
    let share = cell.ceiling.as_ref().and_then(|found| found.reached);
    Cell::plain(match share {
        Some(share) => format!("{value} ({})", percent(100.0 * share)),
        None => value,
    })
}

/// Whether any cipher is combined with several hashes.
fn is_crossed(matrix: &SuiteMatrix) -> bool {
    let ciphers = unique(matrix.entries.iter().map(|entry| entry.cipher.as_str()));
    ciphers.len() < matrix.entries.len()
}

/// One row per suite.
fn list(run: &Run<'_>, matrix: &SuiteMatrix, words: &GroupWords) -> Table {
    let mut table = Table::new(
        format!("Suites of {}: {}", matrix.device, words.name),
        note(run, matrix, words),
    )
    .labels(["Suite"])
    .figures(["Throughput", "Overhead", "Reached"]);
    for entry in &matrix.entries {
        let Some(cell) = run.cell(&entry.cell) else {
            continue;
        };
        let label = entry_name(entry);
        table.push(vec![
            Cell::label(label),
            figure(cell),
            overhead(cell),
            reached(cell),
        ]);
    }
    table
}

/// `AES-256-CBC, SHA-512`; marked if insecure.
fn entry_name(entry: &SuiteEntry) -> String {
    let name = match &entry.hash {
        Some(hash) => format!("{}, {hash}", entry.cipher),
        None => entry.cipher.clone(),
    };
    marked(&name, entry.insecure.is_some())
}

fn table(run: &Run<'_>, matrix: &SuiteMatrix, words: &GroupWords) -> Table {
    let mut table = Table::new(
        format!("Suites of {}: {}", matrix.device, words.name),
        note(run, matrix, words),
    )
    .labels(["Cipher", ""]);
    let has = |title: &&str| matrix.entries.iter().any(|entry| hash(entry) == *title);
    // A run measures only some of them; columns without a figure are left out.
    let hashes: Vec<&str> = HASHES.into_iter().filter(has).collect();
    let is_insecure = |title: &str| {
        let mut own = matrix.entries.iter().filter(|entry| hash(entry) == title);
        own.any(has_insecure_hash)
    };
    // Marks are at the headings: next to figures, they would make the table wider than the page.
    table = table.figures(hashes.iter().map(|title| marked(title, is_insecure(title))));
    for cipher in unique(matrix.entries.iter().map(|entry| entry.cipher.as_str())) {
        let at = |title: &str| {
            let mut entries = matrix.entries.iter();
            entries.find(|entry| entry.cipher == cipher && hash(entry) == title)
        };
        let mut own = matrix.entries.iter().filter(|entry| entry.cipher == cipher);
        let label = marked(cipher, own.any(has_insecure_cipher));
        // Each cipher has a block with a row for each of these lines.
        for (name, of) in LINES {
            let cells = hashes.iter().map(|title| {
                let entry = at(title)?;
                Some(of(run.cell(&entry.cell)?))
            });
            let cells = cells.map(|cell| cell.unwrap_or_else(Cell::missing));
            let labels = [Cell::label(label.clone()), Cell::label(name)];
            table.push(labels.into_iter().chain(cells).collect());
        }
    }
    table
}

/// Whether the cipher is insecure with any hash.
fn has_insecure_cipher(entry: &SuiteEntry) -> bool {
    match Suite::from_name(&entry.suite) {
        // With a hash that is secure, only the cipher decides.
        Some(Suite::EncryptThenMac(cipher, _)) => Suite::EncryptThenMac(cipher, Hmac::Sha256)
            .insecure()
            .is_some(),
        _ => entry.insecure.is_some(),
    }
}

/// Whether the hash is insecure with any cipher.
fn has_insecure_hash(entry: &SuiteEntry) -> bool {
    match Suite::from_name(&entry.suite) {
        // With a cipher that is secure, only the hash decides.
        Some(Suite::EncryptThenMac(_, hmac)) => Suite::EncryptThenMac(Cipher::Aes256Cbc, hmac)
            .insecure()
            .is_some(),
        _ => false,
    }
}

fn hash(entry: &SuiteEntry) -> &str {
    entry.hash.as_deref().unwrap_or(AEAD)
}

fn note(run: &Run<'_>, matrix: &SuiteMatrix, words: &GroupWords) -> String {
    let mut parts = vec![words.common.clone(), format!("throughput: {FORMAT}")];
    let cells = || {
        let cells = matrix.entries.iter();
        cells.filter_map(|entry| run.cell(&entry.cell))
    };
    // The packets of all cells of a matrix are equally long before they are sealed.
    let packet = cells().find_map(|cell| cell.overhead.as_ref());
    parts.extend(packet.map(|found| {
        format!(
            "overhead: bytes that the suite adds to a packet of {:.0} B",
            found.packet_bytes
        )
    }));
    let basis = cells().find_map(|cell| cell.ceiling.as_ref());
    parts
        .extend(basis.map(|found| format!("reached: of the ceiling; {}", basis_words(run, found))));
    parts.join("; ")
}

/// The source of a matrix's ceilings.
fn basis_words(run: &Run<'_>, ceiling: &stats::Ceiling) -> String {
    match ceiling.basis {
        CeilingBasis::LineRate => {
            let rate = run.plan().lab.link_bps.unwrap_or(0);
            format!(
                "ceiling: rate of such packets on a link of {}",
                units::human::bit_rate(rate as f64)
            )
        }
        CeilingBasis::Baseline => {
            let id = ceiling.baseline_cell.as_deref().unwrap_or_default();
            let name = run.cell(id).map_or("the baseline", |cell| &cell.dut);
            format!(
                "ceiling: the links have no rate, so it is the figure of {name}, less the share \
                that the longer packets would take of a full line"
            )
        }
    }
}

fn figure(cell: &CellResult) -> Cell {
    let Some((found, unit)) = rate_of(cell) else {
        return reason_cell(cell);
    };
    let text = Scale::si(found.mean, unit).estimate(found);
    Cell::plain(with_repeats(text, cell))
}

/// The throughput of a cell with its unit: payload, or frames if frames are measured.
fn rate_of(cell: &CellResult) -> Option<(&Estimate, &'static str)> {
    let payload = cell.throughput_bps().map(|found| (found, "bit/s"));
    payload.or_else(|| Some((cell.frame_rate()?, "pps")))
}

fn overhead(cell: &CellResult) -> Cell {
    Cell::or_missing(cell.overhead.as_ref().map(overhead_words))
}

/// `+62 B (4.4 %)`.
fn overhead_words(overhead: &stats::Overhead) -> String {
    let bytes = overhead.overhead_bytes;
    // On average, padding may add a part of a byte.
    let decimals = if bytes.fract() == 0.0 { 0 } else { 1 };
    format!(
        "+{bytes:.decimals$} B ({})",
        percent(overhead.overhead_percent)
    )
}

fn ceiling(cell: &CellResult) -> Cell {
    let text = cell.ceiling.as_ref().and_then(|found| {
        let (most, unit) = match (found.payload_bps, found.frames_per_s) {
            (Some(most), _) => (most, "bit/s"),
            (None, most) => (most?, "pps"),
        };
        Some(si(most, unit))
    });
    Cell::or_missing(text)
}

fn reached(cell: &CellResult) -> Cell {
    let share = cell.ceiling.as_ref().and_then(|found| found.reached);
    Cell::derived_or_missing(share.map(|share| percent(100.0 * share)))
}

/// The fastest and the slowest suite.
pub(crate) fn finding(run: &Run<'_>, matrix: &SuiteMatrix) -> Option<String> {
    let figures = matrix.entries.iter().filter_map(|entry| {
        let cell = run.cell(&entry.cell)?;
        let (found, unit) = rate_of(cell)?;
        Some((entry, found, unit))
    });
    let by_mean = |a: &(_, &Estimate, _), b: &(_, &Estimate, _)| a.1.mean.total_cmp(&b.1.mean);
    let (best, most, unit) = figures.clone().max_by(by_mean)?;
    let (worst, least, _) = figures.min_by(by_mean)?;
    let text = |found: &Estimate| {
        let scale = Scale::si(found.mean, unit);
        format!("{} ({})", scale.value(found.mean), repeats(found, &scale))
    };
    let words = run.group_words();
    let name = words_of(&words, &matrix.group).name;
    let all = &run.results.suites;
    // Sentences about several devices would otherwise begin with the same words.
    let device = if all.iter().all(|other| other.device == matrix.device) {
        String::new()
    } else {
        format!(", {}", matrix.device)
    };
    Some(format!(
        "{name}{device}: fastest {}, {}; slowest {}, {}.",
        entry_name(best),
        text(most),
        entry_name(worst),
        text(least)
    ))
}
