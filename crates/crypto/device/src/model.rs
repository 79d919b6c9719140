//! A coprocessor that is not there: real results, computed by our engines, after the time that a
//! card would take.
//!
//! 1. An operation waits until there is room in the device: `queue` of them may be in it, from when
//!    they go in until their results are back.
//! 2. The unit that is free first takes it, for `operation_ns` and its bytes at `rate_bps`.
//! 3. `latency_ns` later the result is back. Who asked for it sleeps meanwhile: a driver that waits
//!    for an interrupt.
//!
//! A result that was computed once is told again for the same input, so that a model may be faster
//! than the engines inside. What computing cost the CPU is counted ([`Device::stand_in_ns`]), as no
//! card would have cost it.
//!
//! What it does not do: the kernel wakes a sleeper up some tens of microseconds late, so that a
//! single operation takes that much longer than it should. Rates with enough operations at once are
//! true, as the device's own times do not depend on when somebody wakes up.

mod schedule;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::case::split_mix;
use crate::keys::Fingerprint;
use crate::operation::device::{DeviceFault, DeviceModel};
use crate::threads::{lock, thread_cpu_ns};
use crate::{Device, DeviceError, Facts, Job, Keys, Operation, Queue, Session};
use schedule::Schedule;

/// Times are sums of what operations take: in picoseconds, and in 128 bits, which no trial
/// outlives.
type Ps = u128;

const PS_PER_NS: Ps = 1_000;
const PPM: u64 = 1_000_000;
/// Units and places in the queue that a model may have.
const PARALLEL_MAX: u32 = 65_536;
const QUEUE_MAX: u32 = 1 << 20;
/// Results that are kept to be told again, in bytes of input and output.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// The modelled device.
pub(crate) struct Modelled {
    model: DeviceModel,
    seed: u64,
    inside: Box<dyn Device>,
    origin: Instant,
    state: Mutex<State>,
    kept: Mutex<Kept>,
    operations: AtomicU64,
    computed_ns: AtomicU64,
}

struct State {
    schedule: Schedule,
    random: u64,
    stopped: bool,
}

/// What happens to an operation.
struct Ticket {
    back: Instant,
    fault: Option<DeviceFault>,
    /// Decides which byte is wrong.
    random: u64,
}

/// By input.
type Results = HashMap<Arc<[u8]>, Arc<Computed>>;

#[derive(Default)]
struct Kept {
    results: HashMap<(Operation, Fingerprint), Results>,
    bytes: usize,
}

/// An input and what came of it.
struct Computed {
    input: Arc<[u8]>,
    output: Box<[u8]>,
    authentic: bool,
}

impl Modelled {
    /// Makes the device; `inside` computes. Which operations go wrong differs from one to the next,
    /// also of the same model.
    ///
    /// # Errors
    /// [`DeviceError::Unusable`] where the model can do nothing.
    pub(crate) fn open(model: &DeviceModel, inside: Box<dyn Device>) -> Result<Self, DeviceError> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut seed =
            since.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id()) << 40;
        Self::with_seed(model, inside, split_mix(&mut seed))
    }

    /// The same with errors that can be had again.
    pub(crate) fn with_seed(
        model: &DeviceModel,
        inside: Box<dyn Device>,
        seed: u64,
    ) -> Result<Self, DeviceError> {
        check(model)?;
        Ok(Self {
            seed,
            inside,
            origin: Instant::now(),
            state: Mutex::new(State {
                schedule: Schedule::new(model),
                random: seed,
                stopped: false,
            }),
            kept: Mutex::default(),
            operations: AtomicU64::new(0),
            computed_ns: AtomicU64::new(0),
            model: model.clone(),
        })
    }

    /// Puts an operation of so many bytes into the device.
    fn submit(&self, bytes: usize) -> Result<Ticket, DeviceError> {
        let now = self.origin.elapsed().as_nanos() * PS_PER_NS;
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(failed(
                "the modelled device has stopped; it works again when it is opened anew",
            ));
        }
        let back = state.schedule.submit(&self.model, now, bytes);
        let random = split_mix(&mut state.random);
        let faulty = random % PPM < u64::from(self.model.errors_ppm);
        let fault = faulty.then_some(self.model.fault);
        state.stopped = fault == Some(DeviceFault::Stops);
        drop(state);

        self.operations.fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(back / PS_PER_NS).unwrap_or(u64::MAX);
        Ok(Ticket {
            back: self.origin + Duration::from_nanos(ns),
            fault,
            random: random / PPM,
        })
    }
}

/// Whether a model can do anything.
fn check(model: &DeviceModel) -> Result<(), DeviceError> {
    let mistake = if model.rate_bps == 0 {
        "its rate is 0; give the bit/s of one unit"
    } else if model.parallel == 0 || model.parallel > PARALLEL_MAX {
        "it has from 1 to 65536 units; mend `parallel`"
    } else if model.queue == 0 || model.queue > QUEUE_MAX {
        "it takes from 1 to 1048576 operations; mend `queue`"
    } else if u64::from(model.errors_ppm) > PPM {
        "no more than 1000000 ppm of its operations can fail; mend `errors_ppm`"
    } else {
        return Ok(());
    };
    Err(DeviceError::Unusable(format!(
        "the modelled device cannot work: {mistake}"
    )))
}

impl Device for Modelled {
    fn facts(&self) -> Facts {
        let DeviceModel {
            latency_ns,
            rate_bps,
            operation_ns,
            parallel,
            queue,
            errors_ppm,
            fault,
        } = self.model;
        let inside = self.inside.facts();
        let mut more = vec![
            ("latency".to_owned(), format!("{latency_ns} ns")),
            ("rate of a unit".to_owned(), format!("{rate_bps} bit/s")),
            (
                "time of an operation besides".to_owned(),
                format!("{operation_ns} ns"),
            ),
            ("units".to_owned(), parallel.to_string()),
            ("queue".to_owned(), queue.to_string()),
        ];
        if errors_ppm > 0 {
            let does = match fault {
                DeviceFault::Fails => "fails",
                DeviceFault::Wrong => "gives a wrong byte",
                DeviceFault::Stops => "stops the device",
            };
            more.push((
                "errors".to_owned(),
                format!("{errors_ppm} ppm; each {does}"),
            ));
            more.push(("seed of errors".to_owned(), self.seed.to_string()));
        }
        more.push((
            "computed by".to_owned(),
            format!("{} {}", inside.name, inside.version),
        ));
        Facts {
            name: "modelled coprocessor".to_owned(),
            version: "1".to_owned(),
            more,
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        // The kernel may be 50 us late by default. Where it does not take the wish, sleepers are
        // later.
        let _ = nix::sys::prctl::set_timerslack(1);
        Ok(Box::new(OnModel {
            device: self,
            inside: self.inside.session()?,
        }))
    }

    fn operations_done(&self) -> Option<u64> {
        Some(self.operations.load(Ordering::Relaxed))
    }

    fn stand_in_ns(&self) -> u64 {
        self.computed_ns.load(Ordering::Relaxed)
    }
}

struct OnModel<'a> {
    device: &'a Modelled,
    inside: Box<dyn Session + 'a>,
}

impl Session for OnModel<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        Ok(Box::new(ModelJob {
            device: self.device,
            operation,
            keys: keys.fingerprint(),
            inside: self.inside.job(operation, keys)?,
            last: None,
            sent: VecDeque::new(),
        }))
    }
}

struct ModelJob<'a> {
    device: &'a Modelled,
    operation: Operation,
    keys: Fingerprint,
    inside: Box<dyn Job + 'a>,
    last: Option<Arc<Computed>>,
    /// Operations that are in the device, the oldest first.
    sent: VecDeque<(Ticket, Result<Arc<Computed>, DeviceError>)>,
}

impl ModelJob<'_> {
    fn send(&mut self, input: &[u8]) -> Result<(), DeviceError> {
        let bytes = if self.operation.takes_size() {
            input.len()
        } else {
            0
        };
        let ticket = self.device.submit(bytes)?;
        let result = self.compute(input);
        self.sent.push_back((ticket, result));
        Ok(())
    }

    /// What the operation gives: looked up, or computed.
    fn compute(&mut self, input: &[u8]) -> Result<Arc<Computed>, DeviceError> {
        if let Some(last) = self.last.as_ref().filter(|last| *last.input == *input) {
            return Ok(Arc::clone(last));
        }
        let of_these = (self.operation, self.keys);
        let known = |kept: &Kept| kept.results.get(&of_these)?.get(input).cloned();
        let found = known(&lock(&self.device.kept));
        let computed = match found {
            Some(computed) => computed,
            None => self.compute_anew(input)?,
        };
        Ok(Arc::clone(self.last.insert(computed)))
    }

    fn compute_anew(&mut self, input: &[u8]) -> Result<Arc<Computed>, DeviceError> {
        let before = thread_cpu_ns();
        let mut output = Vec::new();
        let authentic = self.inside.run(input, &mut output);
        let spent = thread_cpu_ns().saturating_sub(before);
        self.device.computed_ns.fetch_add(spent, Ordering::Relaxed);
        let computed = Arc::new(Computed {
            input: input.into(),
            output: output.into(),
            authentic: authentic?,
        });
        let mut kept = lock(&self.device.kept);
        let bytes = input.len() + computed.output.len();
        if kept.bytes + bytes <= KEPT_BYTES_MAX {
            kept.bytes += bytes;
            let of_operation = kept.results.entry((self.operation, self.keys)).or_default();
            of_operation.insert(Arc::clone(&computed.input), Arc::clone(&computed));
        }
        Ok(computed)
    }
}

impl Job for ModelJob<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        self.send(input)?;
        self.complete(output)
    }

    fn queue(&mut self) -> Option<&mut dyn Queue> {
        Some(self)
    }
}

impl Queue for ModelJob<'_> {
    fn submit(&mut self, input: &[u8]) -> Result<(), DeviceError> {
        self.send(input)
    }

    fn complete(&mut self, output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        let (ticket, result) = self
            .sent
            .pop_front()
            .ok_or_else(|| failed("nothing was handed to the modelled device"))?;
        thread::sleep(ticket.back.saturating_duration_since(Instant::now()));
        match ticket.fault {
            Some(DeviceFault::Fails) => return Err(failed("an error that the model is to have")),
            Some(DeviceFault::Stops) => return Err(failed("the modelled device stopped")),
            Some(DeviceFault::Wrong) | None => {}
        }
        let result = result?;
        output.extend_from_slice(&result.output);
        if ticket.fault.is_none() {
            return Ok(result.authentic);
        }
        match output.len() as u64 {
            0 => Ok(!result.authentic),
            bytes => {
                output[(ticket.random % bytes) as usize] ^= 1;
                Ok(result.authentic)
            }
        }
    }
}

fn failed(text: &str) -> DeviceError {
    DeviceError::Failed(text.to_owned())
}
