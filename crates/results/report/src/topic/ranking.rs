//! Devices in order, group by group.

mod chart;
pub(crate) mod columns;

use crate::kit::cells::{late_mark, reason_cell};
use crate::kit::format::{Scale, apart, capitalized, counted, ratio_number, ratio_with};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Kind, Table};
use crate::layout::Run;
use crate::layout::groups::{GroupWords, words_of};
use crate::order::unique;
use stats::{CellResult, Rank, RankedBy, Ranking, Standing};

const READING: &str = "Bars, or marks on a logarithmic axis: mean of the repeats. Lines: its interval; devices whose lines \
                       overlap are not distinguishable, and the number before a name is the \
                       range from its best to its worst possible rank. Outlined: insecure. Without a number: for reference.";

pub(super) const SECTION: Section = Section::result("ranking", "Ranking", |run, out| {
    let tables = rankings(run, out.is_short());
    let overview = overview(run);
    let has_overview = !overview.is_empty();
    out.tables(overview);
    for (index, (found, rows)) in ranked(run).iter().zip(tables).enumerate() {
        let id = format!("ranking-{index}");
        let draw = || Some(chart::draw(run, found, &id));
        out.folded_chart(has_overview, caption(found), READING, draw);
        out.table(rows);
    }
});

/// A ranking, and the ranking of the same group by CPU time, if any.
pub(crate) struct Ranked<'r> {
    pub(crate) main: &'r Ranking,
    pub(crate) efficiency: Option<&'r Ranking>,
    pub(crate) words: GroupWords,
}

/// All rankings, each with its ranking by CPU time.
pub(crate) fn ranked<'r>(run: &'r Run<'_>) -> Vec<Ranked<'r>> {
    let rankings = &run.results.rankings;
    let words = run.group_words();
    let of = |main: &'r Ranking| Ranked {
        main,
        efficiency: rankings
            .iter()
            .find(|other| other.group == main.group && other.by.is_efficiency()),
        words: words_of(&words, &main.group),
    };
    let main = rankings.iter().filter(|found| !found.by.is_efficiency());
    main.map(of).collect()
}

/// With more repeats than this, intervals of means and of ratios seldom disagree.
const FEW_REPEATS: u32 = 4;
/// Maximum groups side by side in one table.
const GROUPS_MAX: usize = 8;

/// Each device's figure and rank, devices as rows and groups as columns. Empty for a single group.
fn overview(run: &Run<'_>) -> Vec<Table> {
    let ranked = ranked(run);
    if ranked.len() < 2 {
        return Vec::new();
    }
    ranked
        .chunks(GROUPS_MAX)
        .map(|groups| side_by_side(run, groups))
        .collect()
}

fn side_by_side(run: &Run<'_>, groups: &[Ranked<'_>]) -> Table {
    let note = "mean of the repeats, and in brackets the rank; a range is from the best to the \
                worst possible rank, if the ratios of two devices within the same repeats do not decide; without a rank: \
                for reference";
    let mut table = Table::new("Ranking: all figures", note).labels(["Device"]);
    for found in groups {
        let group = found.words.name.clone();
        table = table.figures_of(group, [capitalized(quantity(found.main.by))]);
    }
    let places = |found: &Ranked<'_>| {
        let all = found.main.places.iter().chain(&found.main.references);
        all.map(|place| name(run, place)).collect::<Vec<_>>()
    };
    let without = |found: &Ranked<'_>| found.main.without_figure.clone();
    let names = groups.iter().flat_map(places);
    // Devices with a figure in any group come first.
    let names = unique(names.chain(groups.iter().flat_map(without)));
    for device in names {
        let cells = groups.iter().map(|found| {
            let main = found.main;
            let mut all = main.places.iter().chain(&main.references);
            let place = all.find(|place| name(run, place) == device);
            match place {
                Some(place) => {
                    let mark = run.cell(&place.cell).map_or("", late_mark);
                    Cell::plain(figure_with_rank(main.by, place) + mark)
                }
                None if main.without_figure.contains(&device) => without_figure(run, main, &device),
                None => Cell::missing(),
            }
        });
        let cells: Vec<Cell> = cells.collect();
        table.push([Cell::label(device)].into_iter().chain(cells).collect());
    }
    table
}

fn without_figure(run: &Run<'_>, ranking: &Ranking, device: &str) -> Cell {
    let mut cells = run.results.cells.iter();
    let own = cells.find(|cell| cell.group == ranking.group && cell.dut == device);
    own.map_or_else(Cell::missing, |cell| match reason_cell(cell) {
        // The table of reasons contains the sentence.
        reason if reason.kind == Kind::Reason => {
            Cell::word(reason.text.split(':').next().unwrap_or_default())
        }
        other => other,
    })
}

/// `7.05 Gbit/s (1–3)`; for a reference, only the figure.
fn figure_with_rank(by: RankedBy, place: &Standing) -> String {
    let value = scale(by, place.value).value(place.value);
    match place.rank {
        Some(rank) => format!("{value} ({})", rank_text(Some(rank))),
        None => value,
    }
}

/// One table per group; `short` omits the rank by CPU time and the ratio to the yardstick.
fn rankings(run: &Run<'_>, short: bool) -> Vec<Table> {
    let mut ranked = ranked(run);
    if short {
        ranked.iter_mut().for_each(|found| found.efficiency = None);
    }
    let tables = ranked.iter().map(|found| table(run, found, short));
    tables.collect()
}

fn table(run: &Run<'_>, found: &Ranked<'_>, short: bool) -> Table {
    let main = found.main;
    let mut table = Table::new(format!("Ranking: {}", caption(found)), note(run, found))
        .labels(["Rank", "Device"])
        // A rank that several devices share is printed in each of their rows.
        .whole()
        .figures(["Mean", "95 % interval", "Of the best"]);
    let yardstick = !short && has_yardstick(main);
    if yardstick {
        table = table.figures([format!("Of {}", main.yardstick)]);
    }
    if found.efficiency.is_some() {
        table = table.figures(["Per CPU-second"]);
    }
    for place in main.places.iter().chain(&main.references) {
        table.push(row(run, found, place, yardstick));
    }
    for dut in &main.without_figure {
        let cells = run.results.cells.iter();
        let mut own = cells.filter(|cell| cell.group == main.group);
        let Some(cell) = own.find(|cell| cell.dut == *dut) else {
            continue;
        };
        let mut cells = vec![
            Cell::label("–"),
            Cell::label(cell.dut.clone()),
            reason_cell(cell),
        ];
        cells.resize_with(table.columns.len(), Cell::missing);
        table.push(cells);
    }
    table
}

/// The ranked quantity: `payload throughput, TCP, MTU 1400 B, 1 core`.
fn caption(found: &Ranked<'_>) -> String {
    format!("{}, {}", quantity(found.main.by), found.words.name)
}

const fn quantity(by: RankedBy) -> &'static str {
    match by {
        RankedBy::PayloadThroughput => "payload throughput",
        RankedBy::RoundTripP50 => "median round trip",
        RankedBy::FrameRate => "frame rate",
        RankedBy::LatencyP50 => "median latency at the lowest load",
        RankedBy::ReflectedP50 => "median round trip of frames at the lowest load",
        RankedBy::PayloadBitsPerCpuSecond => "payload per CPU-second",
        RankedBy::IpBitsPerCpuSecond => "IP bits per CPU-second",
    }
}

fn note(run: &Run<'_>, found: &Ranked<'_>) -> String {
    let main = found.main;
    let mut parts = vec![found.words.common.clone()];
    // In the first part, which the short form also prints.
    if let Some(apart) = apart(main.apart_ns) {
        let separator = if parts[0].is_empty() { "" } else { ", " };
        parts[0].push_str(separator);
        parts[0].push_str(&apart);
    }
    parts.push(if main.higher_is_better {
        "more is better".into()
    } else {
        "less is better".into()
    });
    parts.push(match run.plan().repeats {
        1 => "one repeat: no interval, and no order is sure".into(),
        repeats => format!("intervals: 95 %, Student's t on logarithms of {repeats} repeats"),
    });
    parts.push(
        "of the best: geometric mean of the ratios within the repeats that both have, from which the quotient of the means \
         of all repeats may differ, with its interval (Student's t on logarithms, 5 % over all pairs of devices of all rankings by this \
         quantity, Holm); ranks: a device is above another where the interval of their ratio excludes 1; else it may be on \
         either side, and a rank is the range from the best to the worst possible"
            .into(),
    );
    if (2..=FEW_REPEATS).contains(&run.plan().repeats) {
        parts.push(format!(
            "with {} repeats the interval of a ratio is wide: ranks may be undecided though the intervals of the means do \
             not overlap",
            run.plan().repeats
        ));
    }
    let places = main.places.iter();
    let mut cells = places.filter_map(|place| run.cell(&place.cell));
    if cells.any(|cell| cell.figure().is_some_and(|it| it.min <= 0.0)) {
        parts.push(
            "a repeat of 0 has no ratio: the ratio of such a device is that of the means, without an interval, and the \
             differences of the repeats decide its rank"
                .into(),
        );
    }
    if has_yardstick(main) {
        parts.push(format!(
            "of {}: the same ratio to that device, without its interval, which decides no rank",
            main.yardstick
        ));
    }
    if run.plan().repeats > 1 {
        parts.push(
            "any two devices, with their interval and what would decide: cipherbench compare RUN --match OLD=NEW".into(),
        );
    }
    if found.efficiency.is_some() {
        parts.push(
            "CPU-seconds are those of the whole machine, followed by the rank by them".into(),
        );
    }
    parts.retain(|part: &String| !part.is_empty());
    parts.join("; ")
}

/// Whether the ratio to the yardstick differs from the ratio to the best.
fn has_yardstick(ranking: &Ranking) -> bool {
    let own = ranking.places.iter();
    let mut own = own.filter(|place| place.dut == ranking.yardstick);
    own.any(|place| {
        place
            .ratio_to_best
            .is_none_or(|ratio| (ratio - 1.0).abs() > 1e-9)
    })
}

fn row(run: &Run<'_>, found: &Ranked<'_>, place: &Standing, yardstick: bool) -> Vec<Cell> {
    let by = found.main.by;
    let scale = scale(by, place.value);
    let ratio = |ratio: Option<f64>| Cell::derived_or_missing(ratio.map(ratio_number));
    let mut cells = vec![
        Cell::label(rank_text(place.rank)),
        Cell::label(name(run, place) + run.cell(&place.cell).map_or("", late_mark)),
        Cell::plain(scale.value(place.value)),
        interval(place, &scale),
        Cell::derived_or_missing(to_best(place)),
    ];
    if yardstick {
        cells.push(ratio(place.ratio_to_yardstick));
    }
    if let Some(efficiency) = found.efficiency {
        let own = standing(efficiency, &place.cell);
        cells.push(Cell::or_missing(own.map(with_rank)));
    }
    cells
}

/// `0.43 (0.42–0.45)`: the ratio to the best, with its interval at the level of the ranking.
fn to_best(place: &Standing) -> Option<String> {
    let ends = place.ratio_to_best_low.zip(place.ratio_to_best_high);
    Some(ratio_with(place.ratio_to_best?, ends))
}

/// The ratios to the best that the repeats leave possible, over all other devices, as a clause:
/// `the others are within -2.1 to +1.8 % of it, larger differences are excluded`.
fn possible(run: &Run<'_>, found: &Ranked<'_>) -> String {
    let places = found.main.places.iter();
    // The best has no interval, as it is not compared with itself.
    let others: Vec<&Standing> = places
        .filter(|place| place.ratio_to_best != Some(1.0))
        .collect();
    let ends = others
        .iter()
        .map(|place| place.ratio_to_best_low.zip(place.ratio_to_best_high));
    // Without one of the intervals, no difference is excluded.
    let ends: Option<Vec<(f64, f64)>> = ends.collect();
    let ends = ends.and_then(|ends| {
        let low = ends.iter().map(|(low, _)| *low).reduce(f64::min)?;
        let high = ends.iter().map(|(_, high)| *high).reduce(f64::max)?;
        Some((low, high))
    });
    let subject = if others.len() == 1 {
        "the other is"
    } else {
        "the others are"
    };
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    match ends {
        None => {
            let cells = found.main.places.iter();
            let mut cells = cells.filter_map(|place| run.cell(&place.cell));
            let is_single = |cell: &CellResult| cell.figure().is_some_and(|it| it.n < 2);
            match cells.find(|cell| is_single(cell)) {
                Some(cell) => format!("one repeat of {} shows no scatter", run.label(&cell.dut)),
                None => "equal repeats show no scatter".to_owned(),
            }
        }
        Some((low, high)) if low < 1.0 / WIDE || high > WIDE => format!(
            "too few repeats, or too much scatter: {} to {} times it is possible",
            ratio_number(low),
            ratio_number(high)
        ),
        Some((low, high)) => format!(
            "{subject} within {} to {} % of it, larger differences are excluded",
            percent(low),
            percent(high)
        ),
    }
}

/// A ratio of this size either way, or a larger one, excludes nothing that a reader would expect.
const WIDE: f64 = 2.0;

/// `940 Mbit (1–5)`; for a reference, only the figure.
fn with_rank(place: &Standing) -> String {
    let value = Scale::si(place.value, "bit").value(place.value);
    match place.rank {
        Some(rank) => format!("{value} ({})", rank_text(Some(rank))),
        None => value,
    }
}

/// The device's entry in a ranking, or among its references.
fn standing<'r>(ranking: &'r Ranking, cell: &str) -> Option<&'r Standing> {
    let mut all = ranking.places.iter().chain(&ranking.references);
    all.find(|place| place.cell == cell)
}

/// The scale for printing figures.
fn scale(by: RankedBy, value: f64) -> Scale {
    match by {
        RankedBy::PayloadThroughput => Scale::si(value, "bit/s"),
        RankedBy::FrameRate => Scale::si(value, "pps"),
        RankedBy::RoundTripP50 | RankedBy::LatencyP50 | RankedBy::ReflectedP50 => {
            Scale::time(value)
        }
        RankedBy::PayloadBitsPerCpuSecond | RankedBy::IpBitsPerCpuSecond => Scale::si(value, "bit"),
    }
}

/// `7.05–7.20`, in the unit of the mean.
fn interval(place: &Standing, scale: &Scale) -> Cell {
    let ends = place.low.zip(place.high);
    Cell::or_missing(
        ends.map(|(low, high)| format!("{}–{}", scale.number(low), scale.number(high))),
    )
}

/// `1`, `2–4`; for a reference, a dash.
fn rank_text(rank: Option<Rank>) -> String {
    match rank {
        Some(Rank { first, last }) if first == last => first.to_string(),
        Some(Rank { first, last }) => format!("{first}–{last}"),
        None => "–".into(),
    }
}

/// The device's name, with its role if it is a baseline or a control.
fn name(run: &Run<'_>, place: &Standing) -> String {
    let Some(cell) = run.cell(&place.cell) else {
        return place.dut.clone();
    };
    if cell.baseline {
        format!("{} (baseline)", cell.dut)
    } else {
        run.label(&cell.dut)
    }
}

/// The best device of a ranking, and the devices that cannot be distinguished from it.
pub(crate) fn best(run: &Run<'_>, found: &Ranked<'_>) -> Option<String> {
    let main = found.main;
    let [first, others @ ..] = main.places.as_slice() else {
        return None;
    };
    let second = others.first()?;
    let scale = scale(main.by, first.value);
    let interval = first
        .low
        .zip(first.high)
        .map_or_else(String::new, |(low, high)| {
            format!(" (95 %: {}–{})", scale.number(low), scale.number(high))
        });
    // The best possible rank of a tied device is 1.
    let is_tied = |place: &&Standing| place.rank.is_some_and(|rank| rank.first == 1);
    let tied = others.iter().filter(is_tied).count();
    let what = capitalized(&caption(found));
    let leader = name(run, first);
    let value = scale.value(first.value);
    // One device alone is best, or no order is shown, or several may be best.
    Some(match tied {
        0 => {
            let ratio = to_best(second);
            let ratio = ratio.map_or_else(String::new, |ratio| format!(", {ratio} × that"));
            let next = name(run, second);
            format!("{what}: {leader} is best, {value}{interval}; next {next}{ratio}.")
        }
        tied if tied == others.len() => {
            let last = others.last().map_or_else(String::new, |last| {
                format!(" {}, {}", name(run, last), scale.value(last.value))
            });
            let (highest, lowest) = if main.higher_is_better {
                ("highest", "lowest")
            } else {
                ("lowest", "highest")
            };
            format!(
                "{what}: the repeats do not decide the order of {}; {highest} mean {leader}, {value}{interval}; {lowest}{last}; {}.",
                counted(main.places.len() as u64, "device"),
                possible(run, found)
            )
        }
        tied => format!(
            "{what}: {leader}, {value}{interval}, and {} not distinguishable as the best of {}.",
            match tied {
                1 => format!("{} is", name(run, second)),
                tied => format!("{tied} others are"),
            },
            main.places.len()
        ),
    })
}
