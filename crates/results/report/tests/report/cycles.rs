//! What documents say of cycles per packet.

use crate::fixture;
use crate::frames::table;
use crate::html::{parse, select, text};
use journal::Journal;
use journal::record::{CountsByRole, CpuCounts, Figures, Measured, Outcome};

/// Cycles of a packet: of the machine, of each station, of the DUT.
const MACHINE: u64 = 3000;
const STATION_A: u64 = 500;
const STATION_B: u64 = 250;
const DUT: u64 = 1000;

/// The same run on a machine with counters, where every packet cost the same.
fn with_counters(mut journal: Journal) -> Journal {
    journal.header.environment.hardware_counters = "cycles and instructions".into();
    for trial in &mut journal.trials {
        if let Outcome::Measured(measured) = &mut trial.outcome
            && let Some((packets, wall_ns)) = packets(measured)
        {
            let counts = |each: u64| CountsByRole {
                station_a: packets * STATION_A * each,
                station_b: packets * STATION_B * each,
                dut: Some(packets * DUT * each),
                machine: packets * MACHINE * each,
            };
            measured.cpu.counted = Some(CpuCounts {
                wall_ns,
                cycles: counts(1),
                instructions: counts(2),
            });
        }
    }
    journal
}

fn packets(measured: &Measured) -> Option<(u64, u64)> {
    match &measured.figures {
        Figures::Transfer(transfer) => {
            let datagrams = transfer.datagrams?;
            Some((datagrams.sent - datagrams.lost, transfer.duration_ns))
        }
        Figures::Frames(found) => {
            let trial = found.trials.get(found.evidence_trial?)?;
            Some((trial.received, trial.elapsed_ns.max(trial.duration_ns)))
        }
        _ => None,
    }
}

#[test]
fn without_counters_no_table_of_cycles_is_printed_and_the_reason_stands_with_the_machine() {
    const REASON: &str = "not available: this system does not see those of its processor";
    for mut journal in [fixture::quick(), fixture::frame_tests()] {
        journal.header.environment.hardware_counters = REASON.into();
        let (html, page) = parse(&journal);
        let titles = select(&page, "caption .title");
        assert!(
            !titles
                .iter()
                .any(|title| text(*title).starts_with("Cycles"))
        );
        assert_eq!(html.matches(REASON).count(), 1);
    }
}

#[test]
fn cycles_and_instructions_per_packet_stand_beside_cpu_time() {
    for (journal, caption) in [
        (fixture::quick(), "Cycles per packet, UDP"),
        (fixture::frame_tests(), "Cycles per frame, throughput"),
    ] {
        let journal = with_counters(journal);
        let (_, page) = parse(&journal);
        let found = table(&page, caption);
        let titles: Vec<&str> = found[0]
            .iter()
            .rev()
            .take(6)
            .rev()
            .map(String::as_str)
            .collect();
        assert_eq!(
            titles,
            [
                "Cycles, all",
                "Less A, B",
                "Device's",
                "Instr., all",
                "Less A, B",
                "Device's"
            ]
        );
        let row = found
            .iter()
            .find(|row| row.iter().any(|cell| cell == "3000"));
        let row = row.unwrap_or_else(|| panic!("{found:?}"));
        let figures = &row[row.len() - 6..];
        assert!(figures[1].starts_with("2250"), "{figures:?}");
        assert!(figures[4].starts_with("4500"), "{figures:?}");
        let others = [0, 2, 3, 5].map(|column| figures[column].as_str());
        assert_eq!(others, ["3000", "1000", "6000", "2000"]);
        let markdown = report::build(&journal).markdown;
        assert!(markdown.contains(caption), "{caption}");
    }
}
