//! Versions compared with the first one.

use crate::fixture::{journal, measured, record, tcp, transfer};
use crate::null_run::Noise;
use journal::record::Figures;
use plan::{Adapter, Cell, Encryptor, Software};
use stats::{ContrastResult, Metric, Results};
use wire::Suite;

/// TCP through our encryptor of a version.
fn version(group: usize, workers: u16, name: &str) -> Cell {
    let mut cell = tcp(&format!("w{workers} {name}"));
    cell.group = format!("tcp{group}");
    cell.id = format!("tcp{group}/w{workers}-{name}");
    cell.dut.adapter = Adapter::Cipherbench(Encryptor {
        workers,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    cell.dut.software = Software {
        version: Some(name.to_owned()),
        program: Some(format!("./{name}")),
        ..Software::default()
    };
    cell
}

fn versions(cells: &[(Cell, u64)]) -> Vec<ContrastResult> {
    let all = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(all, 5, 8);
    for (cell, megabytes) in cells {
        for repeat in 1..=5 {
            let megabytes = megabytes + u64::from(repeat % 2);
            record(&mut run, &cell.id, repeat, measured(transfer(megabytes)));
        }
    }
    let mut found = Results::of(&run).contrasts;
    found.retain(|one| one.contrast == "versions" && one.metric == Metric::PayloadThroughput);
    found
}

#[test]
fn each_version_is_compared_with_the_first_and_changed_cells_come_first() {
    let found = versions(&[
        (version(0, 1, "old"), 1000),
        (version(0, 1, "new"), 1000),
        (version(1, 1, "old"), 1000),
        (version(1, 1, "new"), 900),
        (version(1, 1, "newer"), 500),
        // Other settings have a separate first version.
        (version(1, 2, "old"), 2000),
        (version(1, 2, "new"), 2000),
    ]);
    let shown: Vec<_> = found
        .iter()
        .map(|one| (&*one.cell, &*one.twin_cell, one.differs))
        .collect();
    let expected = [
        ("tcp1/w1-newer", "tcp1/w1-old", Some(true)),
        ("tcp1/w1-new", "tcp1/w1-old", Some(true)),
        ("tcp0/w1-new", "tcp0/w1-old", Some(false)),
        ("tcp1/w2-new", "tcp1/w2-old", Some(false)),
    ];
    assert_eq!(shown, expected);
    assert_eq!(found[0].setting, "newer");
    assert!((found[0].ratio.mean - 0.5).abs() < 0.01, "{found:#?}");
}

#[test]
fn programs_of_other_environments_or_without_a_version_are_not_compared() {
    let mut other = version(0, 1, "new");
    let variables = [("GOGC".to_owned(), "off".to_owned())];
    other.dut.software.environment = variables.into();
    let mut installed = version(0, 1, "installed");
    installed.dut.software = Software::default();
    let found = versions(&[(version(0, 1, "old"), 1000), (other, 500), (installed, 500)]);
    assert_eq!(found, []);
}

/// Two names for one program: 400 cells, 200 comparisons of each quantity.
#[test]
fn two_names_for_one_program_differ_in_no_cell() {
    let cells: Vec<Cell> = (0..200)
        .flat_map(|group| ["a", "b"].map(|name| version(group, 1, name)))
        .collect();
    let mut random = Noise(2027);
    let (runs, mut wrong) = (100, 0);
    for _ in 0..runs {
        let mut run = journal(cells.clone(), 3, 8);
        for cell in &cells {
            for repeat in 1..=3 {
                let mut found = transfer(0);
                if let Figures::Transfer(transfer) = &mut found.figures {
                    let bytes = 1e9 * (1.0 + 0.03 * random.normal());
                    transfer.received_bytes = bytes as u64;
                }
                record(&mut run, &cell.id, repeat, measured(found));
            }
        }
        let results = Results::of(&run);
        let all = results.contrasts.iter();
        let found: Vec<_> = all.filter(|one| one.contrast == "versions").collect();
        assert!(found.len() >= 200);
        // By any quantity.
        wrong += usize::from(found.iter().any(|one| one.differs == Some(true)));
    }
    // 5 %, and two standard deviations of that many runs.
    assert!(wrong <= 9, "{wrong} of {runs} runs accuse a version");
}
