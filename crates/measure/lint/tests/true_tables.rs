//! Tables whose figures are true have no finding; one that is changed beyond rounding has a finding
//! at that cell.

use lint::{Finding, Rule};
use proptest::prelude::*;
use std::fmt::Write;

/// Frame sizes of the tables.
const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

fn check(text: &str) -> Vec<Finding> {
    let document =
        lint::read("t.csv", text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    lint::check(&document)
}

fn shown(findings: &[Finding]) -> String {
    let arithmetic = findings
        .iter()
        .map(|it| format!("{}: {}\n", it.rule.id(), it.arithmetic));
    arithmetic.collect()
}

/// Where a finding is: line and column of the file.
fn spot(finding: &Finding) -> (usize, usize) {
    let spot = finding
        .place
        .spot
        .as_ref()
        .expect("a table's cell has a line");
    (spot.line, spot.column)
}

/// Rates in Mbit/s of devices whose frames cost `cost_ns` each and `byte_ns` for each byte, on a
/// link of 10 Gbit/s; with the mean frame rate.
fn device_table(devices: &[(f64, f64)], decimals: usize) -> String {
    let mut text = String::from(
        "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# link = \"10 Gbit/s\"\n# columns = \"frame\"\n\
         # mean_frame_rate = \"mean\"\ndevice,64,128,256,512,1024,1280,1518,mean\n",
    );
    for (at, (cost_ns, byte_ns)) in devices.iter().enumerate() {
        let rate = |size: u32| {
            let line = 10e9 / (8.0 * f64::from(size + 20));
            line.min(1e9 / (cost_ns + byte_ns * f64::from(size)))
        };
        let _ = write!(text, "D{at}");
        for size in SIZES {
            let _ = write!(
                text,
                ",{:.decimals$}",
                rate(size) * 8.0 * f64::from(size) / 1e6
            );
        }
        let mean = SIZES.iter().map(|size| rate(*size)).sum::<f64>() / SIZES.len() as f64;
        let _ = writeln!(text, ",{mean:.0}");
    }
    text
}

/// Rows of one frame rate with its bit rates.
fn layer_table(rows: &[(u32, f64)], decimals: usize) -> String {
    let mut text = String::from(
        "# columns = \"rates\"\nframe,frames/s,L1 [Mbit/s],L2 [Mbit/s],IP [Mbit/s],payload [Mbit/s]\n",
    );
    for (size, frames) in rows {
        let _ = write!(text, "{size},{frames:.0}");
        for bytes in [size + 20, *size, size - 18, size - 46] {
            let _ = write!(
                text,
                ",{:.decimals$}",
                frames.round() * 8.0 * f64::from(bytes) / 1e6
            );
        }
        text.push('\n');
    }
    text
}

/// Changes the cell of a line and a field, both from 0, and returns its column from 1.
fn change(text: &str, line: usize, field: usize, factor: f64) -> (String, usize) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut fields: Vec<String> = lines[line].split(',').map(str::to_owned).collect();
    let decimals = fields[field]
        .split_once('.')
        .map_or(0, |(_, after)| after.len());
    let value: f64 = fields[field].parse().unwrap();
    fields[field] = format!("{:.decimals$}", value * factor);
    let column = fields[..field].iter().map(|it| it.len() + 1).sum::<usize>() + 1;
    lines[line] = fields.join(",");
    (lines.join("\n"), column)
}

proptest! {
    #[test]
    fn rates_of_devices_have_no_finding(
        devices in prop::collection::vec((100.0f64..20_000.0, 0.0f64..8.0), 1..6),
        decimals in 0usize..4,
    ) {
        let text = device_table(&devices, decimals);
        let found = check(&text);
        // Rows of devices that are as fast as the link may be equal, and are not reported either.
        prop_assert!(found.is_empty(), "{}\n{text}", shown(&found));
    }

    #[test]
    fn a_wrong_mean_is_found_in_its_row(
        devices in prop::collection::vec((100.0f64..20_000.0, 0.0f64..8.0), 1..4),
        row in 0usize..4,
        factor in prop_oneof![0.5f64..0.97, 1.03f64..2.0],
    ) {
        let row = row % devices.len();
        let (text, column) = change(&device_table(&devices, 2), 6 + row, 8, factor);
        let found = check(&text);
        prop_assert_eq!(found.len(), 1, "{}\n{}", shown(&found), text);
        prop_assert_eq!(found[0].rule, Rule::MeanDiffers);
        prop_assert_eq!(spot(&found[0]), (7 + row, column));
    }

    #[test]
    fn swapped_digits_are_named(
        cost_ns in 8_000.0f64..20_000.0,
        field in 2usize..7,
    ) {
        let text = device_table(&[(cost_ns, 0.0)], 1);
        let lines: Vec<&str> = text.lines().collect();
        let old = lines[6].split(',').nth(field).unwrap().to_owned();
        let mut digits: Vec<char> = old.chars().collect();
        digits.swap(0, 1);
        let new: String = digits.iter().collect();
        let share: f64 = new.parse::<f64>().unwrap() / old.parse::<f64>().unwrap();
        prop_assume!(!(0.85..=1.15).contains(&share) && !new.starts_with(['0', '.']) && old != new);
        let changed = text.replacen(&format!(",{old},"), &format!(",{new},"), 1);
        let found = check(&changed);
        let mean = found.iter().find(|it| it.rule == Rule::MeanDiffers);
        let mean = mean.expect("a mean that differs");
        let named = format!("with {old} instead of {new} at {} B", SIZES[field - 1]);
        prop_assert!(mean.meaning.contains(&named), "{named}: {}", mean.meaning);
    }

    #[test]
    fn rates_of_layers_follow_from_the_frame_rate(
        rows in prop::collection::vec((64u32..1519, 10_000.0f64..10_000_000.0), 1..6),
        decimals in 0usize..4,
        changed_row in 0usize..6,
        field in 2usize..6,
        factor in prop_oneof![0.5f64..0.98, 1.02f64..2.0],
    ) {
        let text = layer_table(&rows, decimals);
        let found = check(&text);
        prop_assert!(found.is_empty(), "{}\n{text}", shown(&found));

        let row = changed_row % rows.len();
        let (text, column) = change(&text, 2 + row, field, factor);
        let found = check(&text);
        // A change of 2 % of a few Mbit/s vanishes when no decimals are printed.
        let printed: f64 = text.lines().nth(2 + row).unwrap().split(',').nth(field).unwrap().parse().unwrap();
        prop_assume!(printed > 100.0 || decimals > 1);
        prop_assert_eq!(found.len(), 1, "{}\n{}", shown(&found), text);
        prop_assert_eq!(found[0].rule, Rule::LayersDisagree);
        prop_assert_eq!(spot(&found[0]), (3 + row, column));
    }

    #[test]
    fn a_rate_above_the_link_is_found(
        size in 0usize..7,
        above in 1.002f64..3.0,
    ) {
        let most = 1e3 * f64::from(SIZES[size]) / f64::from(SIZES[size] + 20);
        let at = |rate: f64| {
            format!(
                "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# link = \"1 Gbit/s\"\n# columns = \"frame\"\n\
                 device,{}\nA,{rate:.1}\n",
                SIZES[size]
            )
        };
        prop_assert!(check(&at(most)).is_empty());
        let found = check(&at(most * above));
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!((found[0].rule, spot(&found[0])), (Rule::ExceedsLink, (6, 3)));
    }

    #[test]
    fn percentages_that_add_up_have_no_finding(cuts in prop::collection::btree_set(1u32..1000, 1..6)) {
        // Shares of 100 % in steps of 0.1 %.
        let ends: Vec<u32> = cuts.iter().copied().chain([1000]).collect();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let parts: Vec<f64> = starts.zip(&ends).map(|(from, to)| f64::from(to - from) / 10.0).collect();
        let shown = |parts: &[f64]| -> String {
            parts.iter().map(|part| format!("{part:.1}")).collect::<Vec<_>>().join(", ")
        };
        let read = |parts: &str| {
            let text = format!("[[sum]]\nwhat = \"shares\"\nparts = [{parts}]\ntotal = 100.0\n");
            lint::check(&lint::read("t.toml", &text).unwrap())
        };
        prop_assert_eq!(read(&shown(&parts)), []);
        let mut wrong = parts;
        // More than the rounding of seven figures.
        wrong[0] += 0.6;
        let found = read(&shown(&wrong));
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(found[0].rule, Rule::SumDiffers);
    }
}
