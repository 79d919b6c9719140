//! What disturbs a trial from outside spoils its figure or is recorded beside it.

use crate::frames::{frames, load, short};
use crate::trials::{TestLab, cell, encrypting, plan, tcp};
use journal::record::{Cpu, Measured, Outcome, PathPlace};
use plan::{Adapter, Cell, Direction};
use std::process::{Child, Command};
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Bench, NodeId};
use testing::busy;

const PATIENCE: Duration = Duration::from_secs(10);
const ATTEMPTS: usize = 10;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "programs_that_take_the_cores_spoil_the_figure",
        programs_that_take_the_cores_spoil_the_figure,
    ),
    (
        "a_queue_that_drops_on_the_cipher_link_is_named",
        a_queue_that_drops_on_the_cipher_link_is_named,
    ),
];

/// Busy loops that end with the test.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(count: usize) -> Self {
        let hog = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            // It may be gone already.
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The readings of a trial and why it is invalid.
fn readings(lab: &mut TestLab, cell: &Cell) -> (Measured, Vec<String>) {
    match lab.record(cell).outcome {
        Outcome::Measured(measured) => (*measured, Vec::new()),
        Outcome::Invalid { measured, reasons } => (*measured, reasons),
        Outcome::Failed { reason } => panic!("{reason}"),
    }
}

fn programs_that_take_the_cores_spoil_the_figure() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let mut lab = TestLab::build();
    let cell = cell(Adapter::Direct, 1, false, tcp(2));
    let _hogs = Hogs::start(2 * cores);
    let (measured, reasons) = readings(&mut lab, &cell);
    let cpu = measured.cpu;
    assert!(cpu.taken_percent().unwrap() > Cpu::TAKEN_PERCENT, "{cpu:?}");
    // With two busy loops for each core there is no idle time.
    assert!(cpu.was_taken_from_path(), "{cpu:?}");
    let own = "machine-was-ours: other programs took ";
    assert!(
        reasons.iter().any(|reason| reason.starts_with(own)),
        "{reasons:#?}"
    );
}

/// Twice the rate that the queue passes on is offered to it.
fn a_queue_that_drops_on_the_cipher_link_is_named() {
    let mut lab = TestLab::build();
    let cell = frames(encrypting(), short(Direction::Both), load(1000));
    lab.lab
        .configure(trial::links(&plan(&cell), &cell))
        .unwrap();
    let words = "tc qdisc add dev w0 root tbf rate 1mbit burst 3000 limit 3000";
    let queue = Program::new(words.split(' '));
    let node = lab.lab.node(NodeId::Gw1);
    assert_eq!(node.run(queue, PATIENCE).unwrap().code, Some(0));
    for _ in 0..ATTEMPTS {
        let (measured, reasons) = readings(&mut lab, &cell);
        let lost = &measured.evidence.lost_at;
        let [one] = &lost[..] else {
            // A busy machine loses some elsewhere, too.
            continue;
        };
        assert_eq!(one.places, [PathPlace::CipherLink], "{one:?}");
        assert_eq!(one.before.at, "gw1/cipher_tx_packets");
        assert_eq!(one.behind.at, "gw1/w0 sent");
        let own = "links-lossless: packets vanished outside every device, between gw1 and gw2: ";
        assert!(
            reasons.iter().any(|reason| reason.starts_with(own)),
            "{reasons:#?}"
        );
        return;
    }
    busy::too_busy("it cannot be told where packets are lost".to_owned());
}
