//! The functional trial: known-answer tests and comparisons with the CPU.
//!
//! Each algorithm has the applicable rows of these:
//!
//! - *vectors*: official known answers, with forgeries that must be refused; or a note that none
//!   are published;
//! - *empty*: the empty input and its ciphertext or signature, except for MGM;
//! - *sizes*: hashes and MACs of every length around the edges of blocks and pages, against the
//!   CPU;
//! - *device encrypts, CPU decrypts* and the other way round, over the same lengths; *device signs,
//!   CPU verifies* and the other way round;
//! - *invalid*: inputs that must be refused.
//!
//! Our engines are compared with OpenSSL, and with themselves for operations that OpenSSL does not
//! offer.
//!
//! A row ends at its first wrong result, which it reports. An operation that a device does not
//! offer is not a failure; one that it stops offering in the middle of a row is. Progress is
//! reported before each row and about every second in it: it shows that the device works and, if
//! the worker dies, the row at fault.

use crate::case::{Case, plaintext_bytes_max};
use crate::cpu::{Cpu, Peer};
use crate::vectors;
use crate::{Device, DeviceError, Job, Keys, Session};
use catalog::device::{KatOutcome, KatRow};
use catalog::worker::Line;
use catalog::{Action, Algorithm, Family, Operation};
use std::time::{Duration, Instant};

/// Interval of progress reports in a row.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Lengths around the edges of blocks, of short reads and of pages; and of a packet.
const SIZES: [usize; 62] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    27, 28, 29, 30, 31, 32, 33, 34, 35, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513,
    1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193, 65_535, 65_536, 65_537, 1408, 1500,
    16_384,
];
/// Bytes of the valid input that tests a device after a failure at an invalid one.
const VALID_BYTES: usize = 32;
/// Bytes of messages for public keys. Few, since the cost depends on the length of the key.
const MESSAGE_SIZES: [usize; 6] = [1, 20, 32, 62, 64, 117];

/// Tests `algorithms`, by name, or all if none is named. Passes rows and progress to `report`,
/// which returns whether to continue. Results are compared with `cpu`.
///
/// # Errors
/// [`DeviceError::Unusable`] for an unknown name, before anything is tested; errors of opening a
/// session.
pub(crate) fn run(
    device: &dyn Device,
    cpu: &dyn Device,
    keys: &Keys,
    algorithms: &[String],
    report: &mut dyn FnMut(Line) -> bool,
) -> Result<(), DeviceError> {
    let parse = |name: &String| {
        Algorithm::parse(name).map_err(|error| DeviceError::Unusable(error.to_string()))
    };
    // All names first: a mistake in the last one must not show after hours.
    let named: Vec<Algorithm> = algorithms.iter().map(parse).collect::<Result<_, _>>()?;
    let algorithms = if named.is_empty() {
        catalog::ALGORITHMS
    } else {
        &named
    };
    // Our engines compared with themselves would find nothing.
    let peer = if device.facts().name == Cpu::NAME {
        Some(Peer::open()?)
    } else {
        None
    };
    let cpu = peer.as_ref().map_or(cpu, |peer| peer as &dyn Device);
    let (device, cpu) = (device.session()?, cpu.session()?);
    for &algorithm in algorithms {
        let trial = Trial {
            device: &*device,
            cpu: &*cpu,
            is_cpu: peer.is_some(),
            keys,
            algorithm,
        };
        let mut sink = RowSink {
            report: &mut *report,
            algorithm,
            case: String::new(),
            reported: Instant::now(),
        };
        if !sink.trying(0) || !trial.run(&mut sink) {
            break;
        }
    }
    Ok(())
}

/// One algorithm on one device.
struct Trial<'a> {
    device: &'a dyn Session,
    cpu: &'a dyn Session,
    /// Whether our engines are the device.
    is_cpu: bool,
    keys: &'a Keys,
    algorithm: Algorithm,
}

/// A row under construction.
struct Row {
    tried: u32,
    outcome: KatOutcome,
}

/// The sink for rows and progress of one algorithm.
struct RowSink<'a> {
    report: &'a mut dyn FnMut(Line) -> bool,
    algorithm: Algorithm,
    /// The case in progress; empty before the first.
    case: String,
    reported: Instant,
}

impl RowSink<'_> {
    /// Tests a case and reports its row. Returns whether to continue.
    fn row(&mut self, case: &str, make: impl FnOnce(&mut Self) -> Row) -> bool {
        case.clone_into(&mut self.case);
        if !self.trying(0) {
            return false;
        }
        let row = make(self);
        self.finish(case, row)
    }

    /// Reports a row. Returns whether to continue.
    fn finish(&mut self, case: &str, row: Row) -> bool {
        // A row without inputs is omitted.
        if row.tried == 0 && row.outcome == KatOutcome::Pass {
            return true;
        }
        (self.report)(Line::Kat(KatRow {
            device: 0,
            algorithm: self.algorithm.name().to_owned(),
            case: case.to_owned(),
            tried: row.tried,
            outcome: row.outcome,
        }))
    }

    /// Reports progress after `tried` inputs. Returns whether to continue.
    fn trying(&mut self, tried: u32) -> bool {
        self.reported = Instant::now();
        let name = self.algorithm.name();
        (self.report)(Line::Trying(match (&self.case[..], tried) {
            ("", _) => name.to_owned(),
            (case, 0) => format!("{name} {case}"),
            (case, tried) => format!("{name} {case}, {tried} inputs tried"),
        }))
    }

    /// Reports progress if it is due. The end of the row checks whether to stop.
    fn still_trying(&mut self, tried: u32) {
        if self.reported.elapsed() >= PROGRESS_INTERVAL {
            self.trying(tried);
        }
    }
}

impl Trial<'_> {
    /// Tests the algorithm. Returns whether to continue.
    fn run(&self, sink: &mut RowSink<'_>) -> bool {
        let mut offered = Vec::new();
        let mut missing = Vec::new();
        for operation in self.algorithm.operations() {
            // Each operation is prepared once before the rows, so that a missing one is one row and
            // not a failure in all.
            match self.device.job(operation, self.keys) {
                Ok(_) => offered.push(operation),
                Err(DeviceError::NotOffered(why)) => missing.push((operation.action, why)),
                Err(error) => {
                    let row = Row::of(wrong_or(error, "as it was prepared"));
                    return sink.finish(operation.action.name(), row);
                }
            }
        }
        if offered.is_empty() {
            let why = missing.pop().map(|(_, why)| why).unwrap_or_default();
            return sink.finish("all", Row::of(KatOutcome::NotOffered(why)));
        }
        for (action, why) in missing {
            if !sink.finish(action.name(), Row::of(KatOutcome::NotOffered(why))) {
                return false;
            }
        }
        if !sink.row("vectors", |sink| self.vectors(&offered, sink)) {
            return false;
        }
        for &operation in &offered {
            if takes_empty_input(operation) {
                let case = match operation.action {
                    Action::Digest => "empty".to_owned(),
                    action => format!("empty, {}", action.name()),
                };
                if !sink.row(&case, |sink| self.sizes(operation, &[0], sink)) {
                    return false;
                }
            }
        }
        for &operation in &offered {
            // Records which implementation verified: comparing OpenSSL with itself would prove
            // little.
            let own = Operation::inverse(operation).is_some_and(Cpu::is_openssl);
            let other = if self.is_cpu {
                "peer"
            } else if own || Cpu::is_openssl(operation) {
                "OpenSSL"
            } else {
                "CPU"
            };
            let case = match operation.action {
                Action::Digest => "sizes".to_owned(),
                Action::Encrypt => format!("device encrypts, {other} decrypts"),
                Action::Decrypt => format!("{other} encrypts, device decrypts"),
                Action::Sign => format!("device signs, {other} verifies"),
                Action::Verify => format!("{other} signs, device verifies"),
            };
            let sizes: &[usize] = if operation.takes_size() {
                &SIZES
            } else {
                &MESSAGE_SIZES
            };
            if !sink.row(&case, |sink| self.sizes(operation, sizes, sink)) {
                return false;
            }
            let invalid = format!("invalid, {}", operation.action.name());
            if !sink.row(&invalid, |sink| self.invalid(operation, sink)) {
                return false;
            }
        }
        true
    }

    /// Official known answers of the offered operations.
    fn vectors(&self, offered: &[Operation], sink: &mut RowSink<'_>) -> Row {
        // Distinct from a pass: nothing official confirms the result.
        if vectors::of(self.algorithm).next().is_none() {
            return Row::of(KatOutcome::NonePublished);
        }
        let mut row = Row::of(KatOutcome::Pass);
        for vector in vectors::of(self.algorithm) {
            for case in &vector.cases {
                if !offered.contains(&case.operation()) {
                    continue;
                }
                let job = match self.device.job(case.operation(), &vector.keys) {
                    Ok(job) => job,
                    // The device does not support the length of the nonce, key or IV.
                    Err(DeviceError::NotOffered(_)) => continue,
                    Err(error) => return row.ended(KatOutcome::Error(error.to_string())),
                };
                let name = format!("{}, {}", vector.name, case.operation().action.name());
                match self.once(job, case, None, &name) {
                    Ok(()) => row.tried += 1,
                    // Some devices report an unsupported length only now.
                    Err(KatOutcome::NotOffered(_)) => {}
                    Err(outcome) => return row.counted(outcome),
                }
                sink.still_trying(row.tried);
            }
        }
        row
    }

    /// Valid inputs of these lengths.
    fn sizes(&self, operation: Operation, sizes: &[usize], sink: &mut RowSink<'_>) -> Row {
        let max = plaintext_bytes_max(operation);
        let mut row = Row::of(KatOutcome::Pass);
        let mut done: Option<usize> = None;
        for (variant, &size) in (0..).zip(sizes) {
            // Inputs without a length are repeated for each size; lengths above the maximum are
            // tested once, as the maximum.
            let size = match max {
                Some(0) => 0,
                Some(max) if size > max => max,
                _ => size,
            };
            if max != Some(0) && done == Some(size) {
                continue;
            }
            let made = Case::valid(operation, size, variant, self.keys, self.cpu);
            if let Err(outcome) = self.try_case(operation, made.map(Some), &format!("{size} B")) {
                return row.counted(outcome);
            }
            done = Some(size);
            row.tried += 1;
            sink.still_trying(row.tried);
        }
        row
    }

    /// Inputs that must be refused.
    fn invalid(&self, operation: Operation, sink: &mut RowSink<'_>) -> Row {
        let mut row = Row::of(KatOutcome::Pass);
        for (variant, size) in (0..).zip([16, 17, 32, 33, 64, 100, 1024, 4097]) {
            let made = Case::invalid(operation, size, variant, self.keys, self.cpu);
            // Every input of this operation is valid, for all variants.
            if matches!(made, Ok(None)) {
                break;
            }
            if let Err(outcome) = self.try_case(operation, made, &format!("{size} B, invalid")) {
                return row.counted(outcome);
            }
            row.tried += 1;
            sink.still_trying(row.tried);
        }
        row
    }

    fn try_case(
        &self,
        operation: Operation,
        made: Result<Option<Case>, DeviceError>,
        input: &str,
    ) -> Result<(), KatOutcome> {
        let Some(case) = made.map_err(without_cpu)? else {
            return Ok(());
        };
        let inverse = match operation.inverse() {
            Some(inverse) if case.needs_inverse() => {
                Some(self.cpu.job(inverse, self.keys).map_err(without_cpu)?)
            }
            _ => None,
        };
        let job = self.device.job(operation, self.keys).map_err(outcome)?;
        self.once(job, &case, inverse, input)
    }

    /// Runs the device on one input and checks the result.
    fn once(
        &self,
        mut job: Box<dyn Job + '_>,
        case: &Case,
        mut inverse: Option<Box<dyn Job + '_>>,
        input: &str,
    ) -> Result<(), KatOutcome> {
        // The former content must not matter.
        let mut output = vec![0xa5; 64];
        let authentic = match job.run(case.input(), &mut output) {
            Err(error @ DeviceError::Failed(_)) if case.is_invalid() => {
                // Tokens may refuse an input by an error, and so does a token that has died.
                return self.refuses(job, case, &error);
            }
            other => other.map_err(|error| wrong_or(error, input))?,
        };
        // Twice: a device may return a right result once and then repeat it.
        let mut again = Vec::new();
        let authentic_again = job
            .run(case.input(), &mut again)
            .map_err(|error| wrong_or(error, input))?;
        for (authentic, output) in [(authentic, &output), (authentic_again, &again)] {
            case.check(authentic, output, inverse.as_deref_mut())
                .map_err(|wrong| KatOutcome::Wrong {
                    input: input.to_owned(),
                    first_differing: wrong.first_differing,
                    detail: wrong.detail,
                })?;
        }
        Ok(())
    }

    /// Checks that a failure at an invalid input was a refusal: then the device does a valid input
    /// right, and fails at the invalid one again.
    fn refuses(
        &self,
        mut job: Box<dyn Job + '_>,
        case: &Case,
        error: &DeviceError,
    ) -> Result<(), KatOutcome> {
        let operation = case.operation();
        let valid = Case::valid(operation, VALID_BYTES, 0, self.keys, self.cpu);
        let input = format!("{VALID_BYTES} B, after an invalid input");
        self.try_case(operation, valid.map(Some), &input)
            .map_err(|outcome| match outcome {
                KatOutcome::Error(then) => {
                    KatOutcome::Error(format!("{error}; then at a valid input: {then}"))
                }
                other => other,
            })?;
        match job.run(case.input(), &mut Vec::new()) {
            Err(_) => Ok(()),
            Ok(_) => Err(KatOutcome::Error(format!(
                "{error}; it was an invalid input, at which it does not fail every time"
            ))),
        }
    }
}

impl Row {
    /// A row without inputs.
    const fn of(outcome: KatOutcome) -> Self {
        Self { tried: 0, outcome }
    }

    fn ended(self, outcome: KatOutcome) -> Self {
        Self { outcome, ..self }
    }

    /// Ends the row with an input that counts as tried.
    fn counted(mut self, outcome: KatOutcome) -> Self {
        let outcome = match outcome {
            KatOutcome::NotOffered(_) if self.tried == 0 => return self.ended(outcome),
            // The device accepted others before: an incomplete row has not passed.
            KatOutcome::NotOffered(why) => {
                KatOutcome::Error(format!("not offered after {} inputs: {why}", self.tried))
            }
            outcome => outcome,
        };
        self.tried += 1;
        self.ended(outcome)
    }
}

/// Whether an operation has a result for the empty input. MGM has one only with additional data
/// (RFC 9058 §4.1), and keys of trials have none.
fn takes_empty_input(operation: Operation) -> bool {
    let is_signature = matches!(operation.action, Action::Sign | Action::Verify);
    let is_mgm = matches!(operation.algorithm.family(), Family::Mgm(_));
    (operation.takes_size() || is_signature) && !is_mgm
}

/// The outcome of a case that the CPU cannot make, which is not the device's fault.
fn without_cpu(error: DeviceError) -> KatOutcome {
    KatOutcome::NotOffered(format!("nothing to compare with: {error}"))
}

/// The outcome of an error at an input.
fn wrong_or(error: DeviceError, input: &str) -> KatOutcome {
    match error {
        DeviceError::Wrong(detail) => KatOutcome::Wrong {
            input: input.to_owned(),
            first_differing: None,
            detail,
        },
        error => outcome(error),
    }
}

fn outcome(error: DeviceError) -> KatOutcome {
    match error {
        DeviceError::NotOffered(why) => KatOutcome::NotOffered(why),
        error => KatOutcome::Error(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
