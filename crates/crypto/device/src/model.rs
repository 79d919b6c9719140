//! A simulated coprocessor: our engines compute real results, which are returned after the time
//! that a card would take.
//!
//! 1. An operation waits for room in the device: at most `queue` of them are in it, from submission
//!    until their results are back.
//! 2. The unit that is free first processes it, for `operation_ns` plus its bytes at `rate_bps`.
//! 3. The result is back `latency_ns` later. The caller sleeps meanwhile, like a driver that waits
//!    for an interrupt.
//!
//! Results are cached by input, so that a model may be faster than the engines inside. The CPU time
//! of computing is counted ([`Device::stand_in_ns`]), since a card would not cost it.
//!
//! Limit: the kernel wakes threads some tens of microseconds late, so that a single operation takes
//! that much longer than modelled. Rates with enough operations in flight are exact, since the
//! device's times do not depend on when threads wake up.

mod schedule;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::case::split_mix;
use crate::keys::Fingerprint;
use crate::threads::{lock, thread_cpu_ns};
use crate::{Device, DeviceError, Job, Keys, Queue, Session};
use catalog::Operation;
use catalog::device::Facts;
use catalog::device::{DeviceFault, DeviceModel};
use schedule::Schedule;

/// Picoseconds. 128 bits, since times are sums over all operations of a trial.
type Ps = u128;

const PS_PER_NS: Ps = 1_000;
const PPM: u64 = 1_000_000;
/// Limits of units and of operations in the queue.
const PARALLEL_MAX: u32 = 65_536;
const QUEUE_MAX: u32 = 1 << 20;
/// Limit of the cache of results, in bytes of input and output.
const CACHE_BYTES_MAX: usize = 64 << 20;

/// The modelled device.
pub(crate) struct Modelled {
    model: DeviceModel,
    seed: u64,
    inside: Box<dyn Device>,
    origin: Instant,
    state: Mutex<State>,
    cache: Mutex<Cache>,
    operations: AtomicU64,
    computed_ns: AtomicU64,
}

struct State {
    schedule: Schedule,
    random: u64,
    stopped: bool,
}

/// A submitted operation: when it is back, and its fault.
struct Ticket {
    back: Instant,
    fault: Option<DeviceFault>,
    /// Selects the wrong byte.
    random: u64,
}

/// Results by input.
type Results = HashMap<Arc<[u8]>, Arc<Computed>>;

#[derive(Default)]
struct Cache {
    results: HashMap<(Operation, Fingerprint), Results>,
    bytes: usize,
}

/// An input with its result.
struct Computed {
    input: Arc<[u8]>,
    output: Box<[u8]>,
    authentic: bool,
}

impl Modelled {
    /// Opens the device; `inside` computes. Each opened device has a separate sequence of faults.
    ///
    /// # Errors
    /// [`DeviceError::Unusable`] if a parameter of the model is out of range.
    pub(crate) fn open(model: &DeviceModel, inside: Box<dyn Device>) -> Result<Self, DeviceError> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut seed =
            since.map_or(0, |since| since.as_nanos() as u64) ^ u64::from(std::process::id()) << 40;
        Self::with_seed(model, inside, split_mix(&mut seed))
    }

    /// The same with a reproducible sequence of faults.
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
            cache: Mutex::default(),
            operations: AtomicU64::new(0),
            computed_ns: AtomicU64::new(0),
            model: model.clone(),
        })
    }

    /// Submits an operation on `bytes` bytes.
    fn submit(&self, bytes: usize) -> Result<Ticket, DeviceError> {
        let now = self.origin.elapsed().as_nanos() * PS_PER_NS;
        let mut state = lock(&self.state);
        if state.stopped {
            return Err(failed(
                "the modelled device has stopped; it works again when it is reopened",
            ));
        }
        // In the order of the lock, which is the order in the modelled queue.
        let back = state.schedule.submit(&self.model, now, bytes);
        let random = split_mix(&mut state.random);
        let faulty = random % PPM < u64::from(self.model.errors_ppm);
        let fault = faulty.then_some(self.model.fault);
        // Set at submission: later operations of all threads find the device stopped.
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

/// Checks the parameters of a model.
fn check(model: &DeviceModel) -> Result<(), DeviceError> {
    let mistake = if model.rate_bps == 0 {
        "its rate is 0; set the bit/s of one unit"
    } else if model.parallel == 0 || model.parallel > PARALLEL_MAX {
        "it can have 1 to 65536 units; correct `parallel`"
    } else if model.queue == 0 || model.queue > QUEUE_MAX {
        "its queue can hold 1 to 1048576 operations; correct `queue`"
    } else if u64::from(model.errors_ppm) > PPM {
        "at most 1000000 ppm of its operations can fail; correct `errors_ppm`"
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
            ("latency", format!("{latency_ns} ns")),
            ("rate of a unit", format!("{rate_bps} bit/s")),
            ("time of an operation besides", format!("{operation_ns} ns")),
            ("units", parallel.to_string()),
            ("queue", queue.to_string()),
        ];
        if errors_ppm > 0 {
            let does = match fault {
                DeviceFault::Fails => "fails",
                DeviceFault::Wrong => "gives a wrong byte",
                DeviceFault::Stops => "stops the device",
                DeviceFault::Hangs => "never returns",
                DeviceFault::Crashes => "crashes the process",
            };
            more.push(("errors", format!("{errors_ppm} ppm; each {does}")));
            more.push(("seed of errors", self.seed.to_string()));
        }
        let inside = format!("{} {}", inside.name, inside.version);
        more.push(("computed by", inside));
        let more = more.into_iter().map(|(key, value)| (key.to_owned(), value));
        Facts {
            name: "modelled coprocessor".to_owned(),
            version: "1".to_owned(),
            more: more.collect(),
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        // By default the kernel may wake threads 50 us late. If this call fails, threads wake
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
    /// Operations in the device, the oldest first.
    sent: VecDeque<(Ticket, Result<Arc<Computed>, DeviceError>)>,
}

impl ModelJob<'_> {
    fn send(&mut self, input: &[u8]) -> Result<(), DeviceError> {
        let bytes = if self.operation.takes_size() {
            input.len()
        } else {
            0
        };
        // The clock of the model starts before the computation, which a card would do during that
        // time.
        let ticket = self.device.submit(bytes)?;
        let result = self.compute(input);
        self.sent.push_back((ticket, result));
        Ok(())
    }

    /// Returns the result of the operation from the cache, or computes it.
    fn compute(&mut self, input: &[u8]) -> Result<Arc<Computed>, DeviceError> {
        if let Some(last) = self.last.as_ref().filter(|last| *last.input == *input) {
            return Ok(Arc::clone(last));
        }
        let key = (self.operation, self.keys);
        let known = |cache: &Cache| cache.results.get(&key)?.get(input).cloned();
        // The lock is released before the computation, so that threads compute at the same time.
        // Two may compute the same result, which does no harm.
        let found = known(&lock(&self.device.cache));
        let computed = match found {
            Some(computed) => computed,
            None => self.compute_uncached(input)?,
        };
        Ok(Arc::clone(self.last.insert(computed)))
    }

    fn compute_uncached(&mut self, input: &[u8]) -> Result<Arc<Computed>, DeviceError> {
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
        let mut cache = lock(&self.device.cache);
        let bytes = input.len() + computed.output.len();
        if cache.bytes + bytes <= CACHE_BYTES_MAX {
            cache.bytes += bytes;
            let of_operation = cache
                .results
                .entry((self.operation, self.keys))
                .or_default();
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
            .ok_or_else(|| failed("no operation was submitted to the modelled device"))?;
        // If the engine inside was slower than the model, the time has passed already: the model
        // cannot be faster than its first computation of an input.
        thread::sleep(ticket.back.saturating_duration_since(Instant::now()));
        match ticket.fault {
            Some(DeviceFault::Fails) => return Err(failed("an injected error of the model")),
            Some(DeviceFault::Stops) => return Err(failed("the modelled device stopped")),
            Some(DeviceFault::Hangs) => loop {
                thread::park();
            },
            Some(DeviceFault::Crashes) => std::process::abort(),
            Some(DeviceFault::Wrong) | None => {}
        }
        let result = result?;
        output.extend_from_slice(&result.output);
        if ticket.fault.is_none() {
            return Ok(result.authentic);
        }
        match output.len() as u64 {
            // Without bytes the verdict is the result, so the verdict is wrong.
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
