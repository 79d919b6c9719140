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
        // A change of 2 % of a few Mbit/s vanishes when no decimals are printed, or may be one of a
        // figure that was cut off.
        let printed: f64 = text.lines().nth(2 + row).unwrap().split(',').nth(field).unwrap().parse().unwrap();
        prop_assume!(printed > 200.0 || decimals > 1);
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
/// Rules of the findings, each once.
fn rules(findings: &[Finding]) -> Vec<Rule> {
    let mut rules: Vec<Rule> = findings.iter().map(|it| it.rule).collect();
    rules.sort();
    rules.dedup();
    rules
}

/// Frames per second of a device with a cost per frame and per byte, on a link.
fn frame_rate(size: f64, (cost_ns, byte_ns): (f64, f64), link: f64) -> f64 {
    let line = link / (8.0 * (size + 20.0));
    line.min(1e9 / (cost_ns + byte_ns * size))
}

/// Frame rates by size, in units of `scale` frames per second.
fn frames_table(devices: &[(f64, f64)], (unit, scale): (&str, f64), decimals: usize) -> String {
    let sizes: Vec<String> = SIZES.iter().map(u32::to_string).collect();
    let mut text = format!(
        "# unit = \"{unit}\"\n# link = \"1 Gbit/s\"\n# columns = \"frame\"\ndevice,{}\n",
        sizes.join(",")
    );
    for (at, device) in devices.iter().enumerate() {
        let _ = write!(text, "D{at}");
        for size in SIZES {
            let rate = frame_rate(f64::from(size), *device, 1e9) / scale;
            let _ = write!(text, ",{rate:.decimals$}");
        }
        text.push('\n');
    }
    text
}

/// A row with a mix of 7 × 64, 4 × 570 and 1 × 1518 B, which takes the time of its frames.
fn mix_table(device: (f64, f64), sizes: &[u32], factor: f64, decimals: usize) -> String {
    let names: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let mut text = format!(
        "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# columns = \"frame\"\n# [[mix]]\n# name = \"IMIX\"\n\
         # frame = [64, 570, 1518]\n# weights = [7, 4, 1]\ndevice,{},IMIX\nA",
        names.join(",")
    );
    let link = 10e9;
    for size in sizes {
        let size = f64::from(*size);
        let rate = frame_rate(size, device, link) * size * 8.0 / 1e6;
        let _ = write!(text, ",{rate:.decimals$}");
    }
    let mix = [(7.0, 64.0), (4.0, 570.0), (1.0, 1518.0)];
    let time: f64 = mix
        .iter()
        .map(|(weight, size)| weight / frame_rate(*size, device, link))
        .sum();
    let bytes: f64 = mix.iter().map(|(weight, size)| weight * size).sum();
    let _ = writeln!(text, ",{:.decimals$}", factor * bytes * 8.0 / time / 1e6);
    text
}

/// The same figures with sizes and mix as rows, and frame rates alone.
fn mix_rows(device: (f64, f64), factor: f64) -> String {
    let mix = [(7.0, 64.0), (4.0, 570.0), (1.0, 1518.0)];
    let rate = |size| frame_rate(size, device, 10e9);
    let time: f64 = mix.iter().map(|(weight, size)| weight / rate(*size)).sum();
    format!(
        "# columns = \"rates\"\n# [[mix]]\n# name = \"IMIX\"\n# frame = [64, 570, 1518]\n# weights = [7, 4, 1]\n\
         frame,frames/s\n64,{:.0}\n570,{:.0}\n1518,{:.0}\nIMIX,{:.0}\n",
        rate(64.0),
        rate(570.0),
        rate(1518.0),
        factor * 12.0 / time
    )
}

/// Minimum, three percentiles, maximum and mean of a sample.
fn statistics(sample: &[f64]) -> [f64; 6] {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    [at(0.0), at(0.5), at(0.95), at(0.99), at(1.0), mean]
}

/// The same as a table, in milliseconds.
fn percentile_table(values: [f64; 6], is_in_rows: bool) -> String {
    let names = ["min", "p50", "p95", "p99", "max", "avg"];
    let shown = values.map(|value| format!("{value:.2}"));
    let lines: Vec<String> = if is_in_rows {
        names
            .iter()
            .zip(&shown)
            .map(|(name, value)| format!("{name},{value}"))
            .collect()
    } else {
        vec![format!("ping,{}", shown.join(","))]
    };
    let heading = if is_in_rows {
        "of,latency".to_owned()
    } else {
        format!("of,{}", names.join(","))
    };
    format!(
        "# unit = \"ms\"\n# columns = \"columns\"\n{heading}\n{}\n",
        lines.join("\n")
    )
}

/// A table and its baseline, with rates by row and column.
fn with_device(clear: &[f64], factor: f64) -> String {
    let list = |rates: Vec<String>| rates.join(", ");
    let table = |id: &str, more: &str, rates: Vec<String>| {
        format!(
            "[[table]]\nid = \"{id}\"\n{more}unit = \"Mbit/s\"\nmtu = [1300, 1400, 1500]\nfigures = {{ A = [{}] }}\n",
            list(rates)
        )
    };
    let shown = |factor: f64| {
        clear
            .iter()
            .map(|rate| format!("{:.2}", rate * factor))
            .collect()
    };
    let baseline = "baseline = \"clear\"\n";
    format!(
        "{}{}",
        table("clear", "", shown(1.0)),
        table("encrypted", baseline, shown(factor))
    )
}

fn check_toml(text: &str) -> Vec<Finding> {
    let document = lint::read("t.toml", text).unwrap_or_else(|it| panic!("{it}\n{text}"));
    lint::check(&document)
}

/// IPv4 bytes on the link for an IP packet of that length, computed here apart from the program.
fn carried_bytes(encapsulation: &str, packet: u32) -> u32 {
    let padded = |length: u32, to: u32| length.div_ceil(to) * to;
    match encapsulation {
        "WireGuard" => 20 + 8 + 16 + padded(packet, 16) + 16,
        "ESP aes-256-gcm" => 20 + 8 + 8 + padded(packet + 2, 4) + 16,
        "ESP in UDP aes-256-gcm" => 20 + 8 + 8 + 8 + padded(packet + 2, 4) + 16,
        "ESP aes-128-cbc-hmac-sha1" => 20 + 8 + 16 + padded(packet + 2, 16) + 12,
        "GRE" => 20 + 4 + packet,
        "IPIP" => 20 + packet,
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn frame_rates_of_devices_have_no_finding(
        devices in prop::collection::vec((100.0f64..20_000.0, 0.0f64..8.0), 1..6),
        unit in prop_oneof![Just(("pps", 1.0, 0)), Just(("kpps", 1e3, 1)), Just(("Mpps", 1e6, 4))],
        row in 0usize..6,
        field in 1usize..8,
        above in 1.01f64..3.0,
    ) {
        let (name, scale, decimals) = unit;
        let text = frames_table(&devices, (name, scale), decimals);
        let found = check(&text);
        prop_assert!(found.is_empty(), "{}\n{text}", shown(&found));

        let row = row % devices.len();
        let size = f64::from(SIZES[field - 1]);
        let factor = above * 1e9 / (8.0 * (size + 20.0)) / frame_rate(size, devices[row], 1e9);
        let (text, column) = change(&text, 4 + row, field, factor);
        // A rate of few digits may round back to the limit.
        prop_assume!(above > 1.1 || decimals != 1 || size < 600.0);
        let found = check(&text);
        let link = found.iter().find(|it| it.rule == Rule::ExceedsLink);
        let link = link.unwrap_or_else(|| panic!("{}\n{text}", shown(&found)));
        prop_assert_eq!(spot(link), (5 + row, column));
    }

    #[test]
    fn payload_through_a_tunnel_is_at_most_what_the_encapsulation_leaves(
        encapsulation in prop_oneof![
            Just("WireGuard"), Just("ESP aes-256-gcm"), Just("ESP in UDP aes-256-gcm"),
            Just("ESP aes-128-cbc-hmac-sha1"), Just("GRE"), Just("IPIP"),
        ],
        mtu in 600u32..9000,
        udp in any::<bool>(),
        share in 0.1f64..1.0,
        above in 1.03f64..2.0,
    ) {
        let (transport, headers) = if udp { ("UDP", 28) } else { ("TCP", 40) };
        let wire = f64::from(carried_bytes(encapsulation, mtu) + 38);
        let most = 1e3 * f64::from(mtu - headers) / wire;
        let at = |rate: f64| check(&format!(
            "# unit = \"Mbit/s\"\n# layer = \"payload\"\n# transport = \"{transport}\"\n# link = \"1 Gbit/s\"\n\
             # encapsulation = \"{encapsulation}\"\n# columns = \"mtu\"\nflows,{mtu}\n1,{rate:.1}\n"
        ));
        for rate in [most, most * share] {
            let found = at(rate);
            prop_assert!(found.is_empty(), "{}", shown(&found));
        }
        let found = at(most * above);
        prop_assert_eq!(found.len(), 1, "{}", shown(&found));
        prop_assert_eq!((found[0].rule, spot(&found[0])), (Rule::ExceedsLink, (8, 3)));
    }

    #[test]
    fn rates_of_mixes_follow_from_those_of_their_sizes(
        device in (100.0f64..20_000.0, 0.0f64..8.0),
        has_570 in any::<bool>(),
        decimals in 1usize..4,
        factor in prop_oneof![1.2f64..3.0, 0.05f64..0.2],
    ) {
        let sizes: &[u32] = if has_570 { &[64, 570, 1518] } else { &[64, 512, 1024, 1518] };
        let text = mix_table(device, sizes, 1.0, decimals);
        let found = check(&text);
        prop_assert!(found.is_empty(), "{}\n{text}", shown(&found));

        // Between two sizes the time of a frame is known by both, so all three are columns.
        let text = mix_table(device, &[64, 570, 1518], factor, decimals);
        let found = check(&text);
        let slowest = frame_rate(1518.0, device, 10e9);
        let mean = 12.0 / [(7.0, 64.0), (4.0, 570.0), (1.0, 1518.0)]
            .iter()
            .map(|(weight, size)| weight / frame_rate(*size, device, 10e9))
            .sum::<f64>();
        prop_assume!(factor > 1.0 || factor * mean < 0.8 * slowest);
        prop_assert_eq!(rules(&found), [Rule::MixDiffers], "{}\n{}", shown(&found), text);
        prop_assert_eq!(rules(&check(&mix_rows(device, 1.0))), []);
        prop_assert_eq!(rules(&check(&mix_rows(device, factor))), [Rule::MixDiffers]);
    }

    #[test]
    fn mixes_as_rows_follow_from_their_mean_size(
        mean in 100.0f64..1400.0,
        frames in 10_000.0f64..10_000_000.0,
        factor in prop_oneof![0.5f64..0.98, 1.02f64..2.0],
    ) {
        let at = |factor: f64| check(&format!(
            "# columns = \"rates\"\n# [[mix]]\n# name = \"IMIX\"\n# mean = {mean:.0}\nframe,frames/s,L2 [Mbit/s]\n\
             IMIX,{frames:.0},{:.3}\n",
            factor * frames.round() * 8.0 * mean / 1e6
        ));
        let found = at(1.0);
        prop_assert!(found.is_empty(), "{}", shown(&found));
        prop_assert_eq!(rules(&at(factor)), [Rule::LayersDisagree]);
    }

    #[test]
    fn statistics_of_a_sample_are_in_order(
        sample in prop::collection::vec(0.01f64..100.0, 1..200),
        is_in_rows in any::<bool>(),
        low in 0usize..5,
        high in 0usize..5,
    ) {
        let mut values = statistics(&sample);
        let found = check(&percentile_table(values, is_in_rows));
        prop_assert!(found.is_empty(), "{}", shown(&found));

        // Neighbours in the last digit may be in order before they are rounded.
        let distance = (values[low] - values[high]).abs();
        prop_assume!(!(1e-9..=0.03).contains(&distance));
        values.swap(low, high);
        let text = percentile_table(values, is_in_rows);
        let expected: &[Rule] = if distance < 1e-9 { &[] } else { &[Rule::StatisticsOutOfOrder] };
        prop_assert_eq!(rules(&check(&text)), expected, "{}", text);
    }

    #[test]
    fn a_device_is_faster_by_little_or_by_much(
        clear in prop::collection::vec(100.0f64..200.0, 3),
        loss in 0.3f64..1.0,
        little in 1.001f64..1.009,
        much in 1.02f64..2.0,
    ) {
        // Ascending, as rates by MTU.
        let mut clear = clear;
        clear.sort_by(f64::total_cmp);
        prop_assert_eq!(rules(&check_toml(&with_device(&clear, loss))), []);
        prop_assert_eq!(rules(&check_toml(&with_device(&clear, little))), [Rule::FasterByLittle]);
        prop_assert_eq!(rules(&check_toml(&with_device(&clear, much))), [Rule::FasterWithDevice]);
    }

    #[test]
    fn a_row_that_a_twin_has_is_missed(rows in 3usize..8, gone in 0usize..8, base in 10.0f64..90.0) {
        let table = |id: &str, shift: f64, without: Option<usize>| {
            let rows = (0..rows).filter(|row| Some(*row) != without).map(|row| {
                let rate = base + shift + row as f64;
                format!("D{row} = [{rate:.1}, {:.1}]\n", 2.0 * rate)
            });
            let rows: String = rows.collect();
            format!("[[table]]\nid = \"{id}\"\nunit = \"Mbit/s\"\nmtu = [576, 1500]\n[table.figures]\n{rows}")
        };
        let both = |without| check_toml(&format!("{}{}", table("in", 0.0, None), table("out", 0.3, without)));
        prop_assert_eq!(rules(&both(None)), []);
        let gone = gone % rows;
        let found = both(Some(gone));
        prop_assert_eq!(rules(&found), [Rule::RowMissing], "{}", shown(&found));
        let named = format!("has row D{gone} as well");
        prop_assert!(found[0].arithmetic.contains(&named), "{}", found[0].arithmetic);
    }

    #[test]
    fn a_bit_rate_that_falls_is_found_and_other_rates_may_fall(
        rate in 100.0f64..900.0,
        falls in prop_oneof![0.5f64..0.98, 0.992f64..1.0],
    ) {
        let at = |unit: &str| check(&format!(
            "# unit = \"{unit}\"\n# columns = \"bytes\"\nof,64,1024\nA,{rate:.3},{:.3}\n", rate * falls
        ));
        let expected: &[Rule] = if falls < 0.98 { &[Rule::NotMonotonic] } else { &[] };
        prop_assert_eq!(rules(&at("MB/s")), expected);
        prop_assert_eq!(rules(&at("operations/s")), []);
        prop_assert_eq!(rules(&at("kpps")), []);
    }

    #[test]
    fn a_footnote_is_missed_only_where_there_is_none(
        mark in prop_oneof![Just("*"), Just("†"), Just("[1]"), Just("[^a]"), Just("¹")],
        rate in 100.0f64..900.0,
    ) {
        let table = format!("| of | rate |\n| --- | --- |\n| A | {rate:.1} Mbit/s{mark} |\n");
        let check = |text: &str| rules(&lint::check(&lint::read("t.md", text).unwrap()));
        prop_assert_eq!(check(&table), [Rule::FootnoteMissing]);
        let colon = if mark == "[^a]" { ":" } else { "" };
        prop_assert_eq!(check(&format!("{table}\n{mark}{colon} with one core\n")), []);
        let csv = format!("of,rate\nA,{rate:.1} Mbit/s{mark}\n");
        prop_assert_eq!(rules(&self::check(&csv)), [Rule::FootnoteMissing]);
        prop_assert_eq!(rules(&self::check(&format!("{csv}{mark} with one core\n"))), []);
    }

    #[test]
    fn one_number_is_read_alike_in_every_form(value in 1_000_000u64..999_999_999) {
        let digits = value.to_string();
        let grouped = |mark: &str| -> String {
            let mut text = String::new();
            for (at, digit) in digits.chars().enumerate() {
                if at > 0 && (digits.len() - at).is_multiple_of(3) {
                    text.push_str(mark);
                }
                text.push(digit);
            }
            text
        };
        for cell in [
            digits.clone(), grouped(","), grouped("."), grouped(" "), grouped("'"), grouped("\u{a0}"),
            format!("**{digits}**"), format!("`{digits}`"), format!("{digits}.0"), format!("{digits},0"),
            format!("{}e3", grouped("").parse::<f64>().unwrap() / 1e3),
        ] {
            let text = format!("# unit = \"pps\"\n# columns = \"columns\"\nof;rate\nA;{cell}\n");
            let document = lint::read("t.csv", &text).unwrap_or_else(|it| panic!("{it}"));
            let read = document.tables[0].cells().next().unwrap().figure.value;
            prop_assert!((read / value as f64 - 1.0).abs() < 1e-12, "{}: {}", cell, read);
        }
    }
}
