//! Single loads and their loss.

use crate::fixture::{SECOND_NS, journal};
use crate::frame_fixture::{add, assert_close, cell, trial};
use journal::record::{FrameResult, FrameTrial};
use plan::{Mrr, Procedure};
use stats::Results;

/// The repeats sent different numbers of frames, so the mean of their ratios is another number.
#[test]
fn the_loss_beside_two_rates_is_of_these_rates() {
    let test = Mrr {
        max_load: None,
        trials: 1,
        trial_ns: SECOND_NS,
        drain_ns: 0,
    };
    let cell = cell("auto", 64, Procedure::Mrr(test));
    let mut run = journal(vec![cell.clone()], 2, 8);
    for (repeat, sent, received) in [(1, 1_000, 500), (2, 200, 190)] {
        let own = FrameTrial {
            duration_ns: SECOND_NS,
            elapsed_ns: SECOND_NS,
            sent,
            ..trial(sent, received)
        };
        let found = FrameResult {
            trials: vec![own],
            ..FrameResult::default()
        };
        add(&mut run, &cell, repeat, found);
    }
    let results = Results::of(&run);
    let load = &results.cells[0].frames().unwrap().mrr().unwrap().load;
    assert_close(load.lost_ppm.mean, 275_000.0);
    assert_close(load.offered.frames_per_s.mean, 600.0);
    assert_close(load.not_forwarded_ppm(), 425_000.0);
}
