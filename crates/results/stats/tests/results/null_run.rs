//! Runs in which nothing differs: how often something is found all the same.

use crate::fixture::{journal, measured, record, tcp, transfer};
use journal::record::Figures;
use plan::{Adapter, Cell, Encryptor, KeySource};
use stats::{Metric, RankedBy, Results};
use wire::Suite;

/// Reproducible standard normal noise (SplitMix64; Box and Muller).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

/// A run of those cells whose throughput is the same but for noise of 3 %.
fn run(cells: &[Cell], repeats: u32, random: &mut Noise) -> Results {
    let mut run = journal(cells.to_vec(), repeats, 0);
    for repeat in 1..=repeats {
        for cell in cells {
            let mut found = transfer(0);
            if let Figures::Transfer(transfer) = &mut found.figures {
                let bytes = 1e9 * (1.0 + 0.03 * random.normal());
                transfer.received_bytes = bytes as u64;
            }
            record(&mut run, &cell.id, repeat, measured(found));
        }
    }
    Results::of(&run)
}

fn device(group: usize, name: &str, encryptor: Encryptor) -> Cell {
    let mut cell = tcp(name);
    cell.group = format!("tcp{group}");
    cell.id = format!("tcp{group}/{name}");
    cell.dut.adapter = Adapter::Cipherbench(encryptor);
    cell
}

/// Counts runs in which a finding is made.
fn wrong(runs: usize, mut is_found: impl FnMut(&mut Noise) -> bool) -> usize {
    let mut random = Noise(2026);
    (0..runs).filter(|_| is_found(&mut random)).count()
}

#[test]
fn equal_devices_are_not_ranked_apart() {
    let plain = |name: &str| device(0, name, Encryptor::new(Suite::Aes256Gcm));
    let two = [plain("a"), plain("b")];
    let mut fifty: Vec<Cell> = (0..50).map(|n| plain(&n.to_string())).collect();
    for (place, cell) in fifty.iter_mut().enumerate() {
        // Ten groups of five.
        cell.group = format!("tcp{}", place % 10);
        cell.id = format!("{}/{}", cell.group, cell.dut.name);
    }
    fifty.sort_by(|a, b| a.group.cmp(&b.group));
    for (cells, runs, permille) in [(&two[..], 1000, 64), (&fifty, 400, 72)] {
        let found = wrong(runs, |random| {
            let results = run(cells, 3, random);
            let by = RankedBy::PayloadThroughput;
            let mut rankings = results.rankings.iter().filter(|found| found.by == by);
            rankings.any(|ranking| {
                let last = ranking.places.len() as u32;
                let mut ranks = ranking.places.iter().filter_map(|place| place.rank);
                ranks.any(|rank| (rank.first, rank.last) != (1, last))
            })
        });
        // 5 %, and two standard deviations of that many runs.
        assert!(
            found * 1000 <= runs * permille,
            "{} devices: {found} of {runs}",
            cells.len()
        );
    }
}

#[test]
fn equal_sources_of_keys_differ_in_no_cell() {
    let cells: Vec<Cell> = (0..25)
        .flat_map(|group| {
            [KeySource::Static, KeySource::Pqc].map(|keys| {
                let encryptor = Encryptor::new(Suite::Aes256Gcm).with_keys(keys);
                device(group, keys.name(), encryptor)
            })
        })
        .collect();
    for repeats in [2, 3, 5] {
        let found = wrong(200, |random| {
            let costs = run(&cells, repeats, random).key_costs;
            let mut costs = costs
                .iter()
                .filter(|cost| cost.metric == Metric::PayloadThroughput);
            costs.any(|cost| cost.differs == Some(true))
        });
        assert!(found <= 10, "{repeats} repeats: {found} of 200");
    }
}

#[test]
fn equal_numbers_of_workers_neither_rise_nor_fall() {
    let cells: Vec<Cell> = (0..10)
        .flat_map(|group| {
            [1, 2, 4, 8, 16].map(|workers| {
                let encryptor = Encryptor {
                    workers,
                    ..Encryptor::new(Suite::Aes256Gcm)
                };
                device(group, &format!("w{workers}"), encryptor)
            })
        })
        .collect();
    let found = wrong(100, |random| {
        let results = run(&cells, 3, random);
        assert_eq!(results.scalings.len(), 10);
        let flat = |found: &stats::Scaling| {
            let top = found.stop_n.or(found.no_sure_gain_past_n);
            top == Some(1) && found.falls_from_n.is_none()
        };
        !results.scalings.iter().all(flat)
    });
    assert!(found <= 5, "{found} of 100");
}
