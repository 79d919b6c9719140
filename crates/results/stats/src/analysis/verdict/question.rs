//! Builds the [`Question`] of a frame test's verdict from its cell and the rig's.

use super::{Bounded, Link, Question, Rig, Unit, judge};
use crate::analysis::calibration::rig;
use crate::analysis::cores::Contention;
use crate::analysis::significance::Level;
use crate::cell::{CellFigures, CellResult};
use crate::figures::estimate::Estimate;
use crate::figures::frames::{FrameFigures, FrameOutcome, Lengths, Verdict};
use crate::figures::overhead::Packets;
use journal::Journal;
use journal::record::Header;
use plan::{Adapter, Carrier, Cell, Direction, Encryptor, Form, FrameTest, Plan, Role};
use wire::Suite;

/// Gives each frame-test cell with a figure its verdict, and bursts their corrected buffer time.
pub(crate) fn judge_all(journal: &Journal, cells: &mut [CellResult]) {
    let plan = &journal.header.plan;
    let questions: Vec<Option<Question<'_>>> = plan
        .cells
        .iter()
        .zip(cells.iter())
        .map(|(planned, cell)| question(&journal.header, planned, cell, cells))
        .collect();
    // All comparisons with the rig are one question.
    let level = Level::of(questions.iter().flatten().filter_map(Question::p));
    let verdicts: Vec<Option<Verdict>> = questions
        .into_iter()
        // The level is known only when all questions are, so they are made without it.
        .map(|question| Some(judge(&Question { level, ..question? })))
        .collect();
    for (cell, verdict) in cells.iter_mut().zip(verdicts) {
        if let CellFigures::Frames(frames) = &mut cell.figures {
            frames.verdict = verdict;
        }
    }
    correct_buffers(plan, cells);
}

fn question<'a>(
    header: &Header,
    planned: &Cell,
    cell: &'a CellResult,
    all: &'a [CellResult],
) -> Option<Question<'a>> {
    let plan = &header.plan;
    let test = planned.measurement.frames()?;
    // A trial with a disturbance, or at loads of a service, does not measure how much a device
    // carries.
    if !test.procedure.plan().finds_capacity() {
        return None;
    }
    let frames = cell.frames()?;
    // A cell that measures the rig is not compared with itself.
    let rig = match rig(all, &cell.group) {
        Some(rig) if rig.id == cell.id => Rig::Itself,
        Some(rig) => match rig.frames().and_then(figure) {
            Some(value) => Rig::Known(&rig.id, value),
            None => Rig::NoFigure(&rig.id),
        },
        None => Rig::Unknown,
    };
    Some(Question {
        link: figure(frames).and_then(|rate| fuller_link(plan, planned, test, rate.mean)),
        rig,
        slower_suite: slower_suite(plan, planned, test),
        contention: Contention::of(header, planned, cell.cpu.as_ref(), None),
        // The figure and the bounds depend on the procedure; the fields above do not.
        ..of_procedure(test, frames)
    })
}

/// Returns the suite of a station that replaces a gateway, and the rig's, unless it is as fast as
/// the rig: with the same suite or AES-GCM. Stations next to the null engine do not encrypt.
fn slower_suite(plan: &Plan, cell: &Cell, test: &FrameTest) -> Option<[Suite; 2]> {
    let adapter = &cell.dut.adapter;
    let Carrier { form, suite, .. } = adapter.profile().carrier?;
    let mut group = plan.cells.iter().filter(|other| other.group == cell.group);
    let rigs = group.find_map(|other| match other.dut.adapter {
        Adapter::Straight { suite } => Some(suite),
        _ => None,
    })?;
    // The rig seals with AES-256-GCM unless the group has one suite, so a station with AES-GCM does
    // no more work than the rig. With both gateways in the path no station seals.
    let as_fast = adapter.encryptor().is_some_and(Encryptor::is_null)
        || (form == Form::Esp && suite == rigs)
        || matches!(suite, Suite::Aes256Gcm | Suite::Aes128Gcm)
        || test.traffic.direction == Direction::Both;
    (!as_fast).then_some([suite, rigs])
}

/// The quantity used to compare a DUT with the rig.
fn figure(frames: &FrameFigures) -> Option<&Estimate> {
    match &frames.back_to_back() {
        Some(burst) => Some(&burst.burst_frames),
        None => frames.frame_rate(),
    }
}

/// The part of the question that depends on the procedure alone.
fn of_procedure<'a>(test: &FrameTest, frames: &'a FrameFigures) -> Question<'a> {
    if let Some(found) = &frames.throughput {
        let Some(goal) = found.goals.first() else {
            return Question::default();
        };
        return Question {
            figure: goal.lower.as_ref().map(|rates| &rates.frames_per_s),
            upper: goal.upper.as_ref().map(|rates| &rates.frames_per_s),
            irregular: &goal.irregular,
            bounded: match goal.time_was_up {
                0 => bounded(&found.max_load_by),
                _ => Bounded::Time,
            },
            failed: goal.upper_account,
            allowed_ppm: goal.parameters.loss_ratio_ppm,
            ..Question::default()
        };
    }
    if let Some(burst) = &frames.back_to_back() {
        return Question {
            figure: Some(&burst.burst_frames),
            // A longer burst lost frames, so the figure is its upper bound too.
            upper: (!burst.longest_tried_passed).then_some(&burst.burst_frames),
            unit: Unit::Burst,
            failed: burst.failed_account,
            ..Question::default()
        };
    }
    let Some((fastest, highest)) = frames.fastest().zip(frames.loads().first()) else {
        return Question::default();
    };
    let lossy = highest.account.received < highest.account.intended;
    let rate = &fastest.forwarded.frames_per_s;
    Question {
        figure: Some(rate),
        // With loss the device was offered more than it carried: the forwarding rate is its limit,
        // and so an upper bound too.
        upper: lossy.then_some(rate),
        bounded: match test.procedure.plan().load() {
            Some(_) => Bounded::Given,
            None => Bounded::Generator,
        },
        // Of the highest load, which the device did not carry.
        failed: lossy.then_some(highest.account),
        ..Question::default()
    }
}

fn bounded(by: &[String]) -> Bounded {
    let all = |word: &str| !by.is_empty() && by.iter().all(|by| by == word);
    // Every repeat must have reached the line, but one that the generator bounded is enough: it may
    // have kept the mean low.
    if all("line-rate") {
        Bounded::Line
    } else if by.iter().any(|by| by == "generator") {
        Bounded::Generator
    } else {
        Bounded::Given
    }
}

/// Returns the fuller link at this frame rate: the clear side's, or, with a DUT that encrypts, the
/// cipher side's, since each frame is longer there.
fn fuller_link(plan: &Plan, cell: &Cell, test: &FrameTest, frames_per_s: f64) -> Option<Link> {
    let link_bps = plan.lab.link_bps?;
    // A burst's length is not a rate.
    if matches!(test.procedure, plan::Procedure::BackToBack(_)) {
        return None;
    }
    let (side, bits) = match cell.dut.adapter.profile().role {
        Role::Tunnel => {
            let packets = Packets::of_mix(&test.traffic.frames.mix);
            ("cipher", packets.line_bits(cell.carried_bytes()))
        }
        _ => ("clear", Lengths::of(&test.traffic).l1_bits()),
    };
    Some(Link {
        side,
        l1_bps: bits * frames_per_s,
        link_bps,
    })
}

/// A DUT's forwarding rate during a burst is its throughput, if another cell searched it with the
/// same traffic.
fn correct_buffers(plan: &Plan, cells: &mut [CellResult]) {
    let traffic = |place: usize| Some(&plan.cells[place].measurement.frames()?.traffic);
    // Copied out first: the cells are changed in the loop below.
    let searched: Vec<(usize, String, f64)> = cells
        .iter()
        .enumerate()
        .filter_map(|(place, cell)| {
            cell.frames()?.throughput.as_ref()?;
            Some((place, cell.id.clone(), cell.frame_rate()?.mean))
        })
        .collect();
    for (place, cell) in cells.iter_mut().enumerate() {
        let CellFigures::Frames(frames) = &mut cell.figures else {
            continue;
        };
        let figures = frames.figures.as_mut().map(|figures| &mut figures.found);
        let Some(FrameOutcome::BackToBack(burst)) = figures else {
            continue;
        };
        let planned = &plan.cells[place];
        let same = searched.iter().find(|(other, ..)| {
            let other_cell = &plan.cells[*other];
            other_cell.dut == planned.dut
                // The throughput of the rig is no forwarding rate of a device.
                && other_cell.calibration == planned.calibration
                && other_cell.stations == planned.stations
                && traffic(*other) == traffic(place)
        });
        if let Some((_, id, rate)) = same {
            burst.correct(id, *rate);
        }
    }
}
