//! The functional trial: whether a device computes what it should.
//!
//! For each algorithm, what it has of these rows:
//!
//! - *vectors*: official known answers, with forgeries that must be refused;
//! - *empty*: the empty input;
//! - *sizes*: hashes and MACs of every length around the edges of blocks and pages, against the CPU;
//! - *device encrypts, CPU decrypts* and the other way round, over the same lengths; *device signs, CPU verifies* and
//!   the other way round;
//! - *invalid*: inputs that must be refused.
//!
//! Our own engines are compared with OpenSSL, and what that has not with themselves.
//!
//! A row ends at its first wrong result, which it tells. What a device does not offer is not a failure.

use crate::case::{Case, plaintext_bytes_max};
use crate::cpu::{Cpu, Peer};
use crate::operation::{Action, Algorithm};
use crate::report::{KatRow, Outcome};
use crate::vectors;
use crate::{Device, DeviceError, Job, Keys, Operation, Session};

/// Lengths around the edges of blocks, of short reads and of pages; and of a packet.
const SIZES: [usize; 62] = {
    let mut sizes = [0; 62];
    let mut next = 0;
    while next < 35 {
        sizes[next] = next + 1;
        next += 1;
    }
    let edges = [64, 128, 256, 512, 1024, 4096, 8192, 65_536];
    let mut edge = 0;
    while edge < edges.len() {
        sizes[next] = edges[edge] - 1;
        sizes[next + 1] = edges[edge];
        sizes[next + 2] = edges[edge] + 1;
        next += 3;
        edge += 1;
    }
    sizes[next] = 1408;
    sizes[next + 1] = 1500;
    sizes[next + 2] = 16_384;
    sizes
};
/// Messages for public keys: the length that counts is the key's.
const MESSAGE_SIZES: [usize; 6] = [1, 20, 32, 62, 64, 117];

/// Tries `algorithms`, by name; none: all there are. Each row goes to `say`, which returns whether to go on. `cpu` is what
/// the device is compared with.
///
/// # Errors
/// [`DeviceError::Unusable`] for a name that stands for nothing, before anything is tried; errors of opening a session.
pub(crate) fn run(
    device: &dyn Device,
    cpu: &dyn Device,
    keys: &Keys,
    algorithms: &[String],
    say: &mut dyn FnMut(KatRow) -> bool,
) -> Result<(), DeviceError> {
    let parse = |name: &String| {
        Algorithm::parse(name).map_err(|error| DeviceError::Unusable(error.to_string()))
    };
    let named: Vec<Algorithm> = algorithms.iter().map(parse).collect::<Result<_, _>>()?;
    let algorithms = if named.is_empty() {
        crate::ALGORITHMS
    } else {
        &named
    };
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
        if !trial.run(say) {
            break;
        }
    }
    Ok(())
}

/// One algorithm on one device.
struct Trial<'a> {
    device: &'a dyn Session,
    cpu: &'a dyn Session,
    /// Whether the device is our own engines.
    is_cpu: bool,
    keys: &'a Keys,
    algorithm: Algorithm,
}

/// What a row is made of while it grows.
struct Row {
    tried: u32,
    outcome: Outcome,
}

impl Trial<'_> {
    /// `false`: stop.
    fn run(&self, say: &mut dyn FnMut(KatRow) -> bool) -> bool {
        let mut tell = |case: &str, row: Row| {
            // A row with nothing in it says nothing.
            if row.tried == 0 && row.outcome == Outcome::Pass {
                return true;
            }
            say(KatRow {
                algorithm: self.algorithm.name().to_owned(),
                case: case.to_owned(),
                tried: row.tried,
                outcome: row.outcome,
            })
        };
        let mut offered = Vec::new();
        let mut missing = Vec::new();
        for operation in self.algorithm.operations() {
            match self.device.job(operation, self.keys) {
                Ok(_) => offered.push(operation),
                Err(DeviceError::NotOffered(why)) => missing.push((operation.action, why)),
                Err(error) => {
                    let outcome = Outcome::Error(error.to_string());
                    return tell(operation.action.name(), Row { tried: 0, outcome });
                }
            }
        }
        if offered.is_empty() {
            let why = missing.pop().map(|(_, why)| why).unwrap_or_default();
            let outcome = Outcome::NotOffered(why);
            return tell("all", Row { tried: 0, outcome });
        }
        for (action, why) in missing {
            let outcome = Outcome::NotOffered(why);
            if !tell(action.name(), Row { tried: 0, outcome }) {
                return false;
            }
        }
        if !tell("vectors", self.vectors(&offered)) {
            return false;
        }
        for &operation in &offered {
            if operation.takes_size() && operation.action != Action::Decrypt {
                let case = if operation.action == Action::Digest {
                    "empty"
                } else {
                    "empty, encrypt"
                };
                if !tell(case, self.sizes(operation, &[0])) {
                    return false;
                }
            }
        }
        for &operation in &offered {
            // Who judges is told: a comparison of OpenSSL with itself would prove little.
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
            if !tell(&case, self.sizes(operation, sizes)) {
                return false;
            }
            let invalid = format!("invalid, {}", operation.action.name());
            if !tell(&invalid, self.invalid(operation)) {
                return false;
            }
        }
        true
    }

    /// Official known answers of the operations that the device has.
    fn vectors(&self, offered: &[Operation]) -> Row {
        let mut row = Row {
            tried: 0,
            outcome: Outcome::Pass,
        };
        for vector in vectors::of(self.algorithm) {
            for case in vector.cases() {
                if !offered.contains(&case.operation()) {
                    continue;
                }
                let job = match self.device.job(case.operation(), vector.keys()) {
                    Ok(job) => job,
                    // A nonce, a key or an IV of a length that the device does not take.
                    Err(DeviceError::NotOffered(_)) => continue,
                    Err(error) => return row.ended(Outcome::Error(error.to_string())),
                };
                row.tried += 1;
                let name = format!("{}, {}", vector.name(), case.operation().action.name());
                if let Err(outcome) = once(job, case, None, &name) {
                    return row.ended(outcome);
                }
            }
        }
        row
    }

    /// Valid inputs of these lengths.
    fn sizes(&self, operation: Operation, sizes: &[usize]) -> Row {
        let max = plaintext_bytes_max(operation);
        let mut row = Row {
            tried: 0,
            outcome: Outcome::Pass,
        };
        let mut done: Option<usize> = None;
        for (variant, &size) in (0..).zip(sizes) {
            // Of what has no length there are as many tries; what is too long is tried as long as it may be, once.
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
        }
        row
    }

    /// Inputs that must be refused.
    fn invalid(&self, operation: Operation) -> Row {
        let mut row = Row {
            tried: 0,
            outcome: Outcome::Pass,
        };
        for (variant, size) in (0..).zip([16, 17, 32, 33, 64, 100, 1024, 4097]) {
            let made = Case::invalid(operation, size, variant, self.keys, self.cpu);
            if matches!(made, Ok(None)) {
                break;
            }
            if let Err(outcome) = self.try_case(operation, made, &format!("{size} B, invalid")) {
                return row.counted(outcome);
            }
            row.tried += 1;
        }
        row
    }

    fn try_case(
        &self,
        operation: Operation,
        made: Result<Option<Case>, DeviceError>,
        input: &str,
    ) -> Result<(), Outcome> {
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
        once(job, &case, inverse, input)
    }
}

impl Row {
    fn ended(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    /// Ended by an input that counts, too.
    fn counted(mut self, outcome: Outcome) -> Self {
        self.tried += u32::from(!matches!(outcome, Outcome::NotOffered(_)));
        self.ended(outcome)
    }
}

/// What a case comes to that the CPU cannot make: the device is not at fault.
fn without_cpu(error: DeviceError) -> Outcome {
    Outcome::NotOffered(format!("nothing to compare with: {error}"))
}

fn outcome(error: DeviceError) -> Outcome {
    match error {
        DeviceError::NotOffered(why) => Outcome::NotOffered(why),
        error => Outcome::Error(error.to_string()),
    }
}

/// Gives the device one input and judges what came.
fn once(
    mut job: Box<dyn Job + '_>,
    case: &Case,
    mut inverse: Option<Box<dyn Job + '_>>,
    input: &str,
) -> Result<(), Outcome> {
    // What was there before must not help.
    let mut output = vec![0xa5; 64];
    let authentic = job.run(case.input(), &mut output).map_err(outcome)?;
    // Twice: a device may give a right result once, and then the one of before.
    let mut again = Vec::new();
    let authentic_again = job.run(case.input(), &mut again).map_err(outcome)?;
    for (authentic, output) in [(authentic, &output), (authentic_again, &again)] {
        let inverse = inverse.as_deref_mut().map(|job| job as &mut dyn Job);
        case.check(authentic, output, inverse)
            .map_err(|wrong| Outcome::Wrong {
                input: input.to_owned(),
                first_differing: wrong.first_differing,
                detail: wrong.detail,
            })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
