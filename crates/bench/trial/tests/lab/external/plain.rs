//! Boxes that do not encrypt.

use super::lab_of;
use super::rack::{Does, Rack, adapter, shipped};
use crate::frames::{assert_all_came, frames, load, passes, short};
use crate::trials::{TestLab, cell, tcp};
use plan::{Direction, External};

/// Routers: what the tap sees is in clear, as it has to be.
pub(super) fn two_boxes() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let device = External {
        carrier: None,
        ports: Vec::new(),
        ..rack.device(Does::ForwardInClear)
    };
    let frames = frames(adapter(device), short(Direction::Both), load(200));
    let measured = lab.measured(&frames);
    assert_all_came(&measured, 200, 1);
    assert!(passes(&measured, "clear-text-visible"));
    assert_eq!(measured.cpu.dut_ns, None, "boxes have cores of their own");
    rack.assert_taken_down(1);
    drop(lab);
    assert!(rack.has_all_back());
}

/// One router, which tools and frames cross.
pub(super) fn router() {
    let rack = Rack::with_one_box();
    let mut lab = TestLab::on(&shipped("router.yaml"));
    let tools = cell(adapter(rack.router()), 1, false, tcp(1));
    lab.measured(&tools);
    let frames = frames(adapter(rack.router()), short(Direction::Both), load(200));
    let measured = lab.measured(&frames);
    assert_all_came(&measured, 200, 1);
    assert_eq!(measured.cpu.dut_ns, None, "boxes have cores of their own");
    drop(lab);
    assert!(rack.has_all_back());
}
