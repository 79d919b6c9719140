//! The functional trial: one worker per device, and a new one after each that died.

use super::pool::{WorkerMessage, WorkerPool};
use super::{Context, facts, measured, problem, spec};
use crate::error::TrialError;
use catalog::device::Facts;
use catalog::worker::Line;
use journal::record::{DeviceRecord, KatOutcome, KatRow, Outcome};
use plan::{Device, DeviceTest, Devices, Kat};
use std::time::Duration;

/// Longest time without a message of a worker that does not hang: it reports progress every few
/// inputs, and the slowest take seconds.
const SILENCE: Duration = Duration::from_secs(120);
/// Deaths of its process after which a device is not tried any further.
const DEATHS_MAX: usize = 50;
/// The same for processes that hung: each costs [`SILENCE`].
const HANGS_MAX: usize = 3;

/// How a worker ended early.
struct Death {
    how: String,
    is_hang: bool,
}

impl Death {
    const fn of(how: String) -> Self {
        Self {
            how,
            is_hang: false,
        }
    }
}

impl Context<'_> {
    /// Returns the rows of all devices, one after the other. A wrong result is a valid row.
    pub(super) fn kat(&self, devices: &Devices, kat: &Kat) -> Result<Outcome, TrialError> {
        let (mut members, mut all_rows) = (Vec::new(), Vec::new());
        // One after the other: only answers count here, and not times.
        for (index, device) in devices.members.iter().enumerate() {
            let (found, rows) = self.kat_of(index, device, kat)?;
            members.push(facts(device, found.as_ref()));
            all_rows.extend(rows);
        }
        Ok(measured(members, DeviceRecord::Kat(all_rows)))
    }

    fn kat_of(
        &self,
        index: usize,
        device: &Device,
        kat: &Kat,
    ) -> Result<(Option<Facts>, Vec<KatRow>), TrialError> {
        let mut rows: Vec<KatRow> = Vec::new();
        let mut opened = None;
        let mut left: &[String] = &kat.algorithms;
        let (mut deaths, mut hangs) = (0, 0);
        while !left.is_empty() {
            let mut last = None;
            let mut trying = None;
            // Each round runs the algorithms that are left. A worker that dies costs one of them,
            // and the next worker continues behind that one.
            let ended = self.run_worker(device, left, |line| match line {
                Line::Open(facts) => opened = Some(facts),
                Line::Trying(what) => {
                    last = position(left, &what).or(last);
                    trying = Some(what);
                }
                Line::Kat(row) => {
                    last = position(left, &row.algorithm).or(last);
                    rows.push(KatRow {
                        device: index,
                        ..row
                    });
                }
                _ => {}
            })?;
            let Some(Death {
                how: death,
                is_hang,
            }) = ended
            else {
                break;
            };
            // A death before the device was ever open is no finding about an algorithm.
            if opened.is_none() {
                return Err(problem(format!("`{}`: {death}", device.name)));
            }
            deaths += 1;
            hangs += usize::from(is_hang);
            let death = match trying {
                Some(what) => format!("while it tried {what}: {death}"),
                None => death,
            };
            // It died at the last algorithm that it reported, or before the first.
            let blamed = last.unwrap_or(0);
            rows.push(KatRow {
                device: index,
                algorithm: left[blamed].clone(),
                case: "the rest".to_owned(),
                tried: 0,
                outcome: KatOutcome::Error(death),
            });
            // At least one is left out in each round, so the loop ends.
            left = &left[blamed + 1..];
            if deaths == DEATHS_MAX || hangs == HANGS_MAX {
                let why = if hangs == HANGS_MAX {
                    format!("it had hung {HANGS_MAX} times")
                } else {
                    format!("its process had died {DEATHS_MAX} times")
                };
                rows.extend(left.iter().map(|algorithm| KatRow {
                    device: index,
                    algorithm: algorithm.clone(),
                    case: "all".to_owned(),
                    tried: 0,
                    outcome: KatOutcome::Error(format!("not tried: {why}")),
                }));
                break;
            }
        }
        Ok((opened, rows))
    }

    /// Runs one worker from its start to its end. Returns how it died, if it did.
    fn run_worker(
        &self,
        device: &Device,
        algorithms: &[String],
        mut take: impl FnMut(Line),
    ) -> Result<Option<Death>, TrialError> {
        // A new pool for each worker: dropping it kills the remains of a dead worker before the
        // next one opens the device.
        let mut pool = WorkerPool::new(self, false)?;
        let left = DeviceTest::Kat(Kat {
            algorithms: algorithms.to_vec(),
        });
        pool.start(&spec(device, left))?;
        let mut is_open = false;
        let silence = self.devices.silence.unwrap_or(SILENCE);
        loop {
            let Some((_, message)) = pool.receive(silence)? else {
                let seconds = silence.as_secs();
                return Ok(Some(Death {
                    how: format!("it sent nothing for {seconds} s"),
                    is_hang: true,
                }));
            };
            match message {
                WorkerMessage::Died(how) => return Ok(Some(Death::of(how))),
                // A failure after opening, such as the death of the worker's child.
                WorkerMessage::Line(Line::Failed(text)) if is_open => {
                    return Ok(Some(Death::of(text)));
                }
                message => match self.line(device, message)? {
                    Line::End => return Ok(None),
                    Line::NotOffered(text) => {
                        return Err(problem(format!("`{}`: {text}", device.name)));
                    }
                    line => {
                        is_open |= matches!(line, Line::Open(_));
                        take(line);
                    }
                },
            }
        }
    }
}

/// Returns the index of the algorithm that a text begins with: `aes-128-cbc`, `aes-128-cbc, empty`.
fn position(algorithms: &[String], text: &str) -> Option<usize> {
    let is_of = |name: &String| {
        let rest = text.strip_prefix(name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', ':']))
    };
    algorithms.iter().position(is_of)
}
