//! A station's answers to requests.

use super::ending::Ending;
use super::process::Process;
use super::processes::Processes;
use crate::clocks::{self, Answerer};
use crate::monitor::rapl;
use crate::perf::Counting;
use crate::remote::part::Part;
use crate::sample::{self, Expected, Watch};
use crate::settings::{ParameterFiles, SettingsWatch};
use crate::sync::{Deadline, await_true, lock};
use crate::{Station, cpus, host, http, lent, offloads, privilege, procfs, reading};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use testbed::machine::boot_id;
use testbed::protocol::{PROTOCOL_VERSION, Program, Ready, Request, Response};
use testbed::{Interrupt, LabError, Node, NodeId};

/// Time limit of `ethtool` for one interface.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// Time limit for calls to a host's stations to end after the stations.
const LEAVE_LIMIT: Duration = Duration::from_secs(6);
const LEAVE_STEP: Duration = Duration::from_millis(1);

/// Most concurrent watches of one station.
const WATCHES_MAX: usize = 16;

/// The station's side of every request.
pub(super) struct Requests {
    processes: Arc<Processes>,
    folder: Mutex<Folder>,
    of_machine: OfMachine,
    watches: Mutex<Watches<Watch>>,
    settings: Mutex<Watches<SettingsWatch>>,
    ending: Mutex<Ending>,
    /// Answers the other host's clock probes.
    clocks: Mutex<Option<Answerer>>,
    /// The running counters.
    counting: Mutex<Option<Counting>>,
    /// The state folder for a host's labs; `None` for a station that serves no host.
    state_folder: Option<PathBuf>,
    /// The host's stations.
    part: Mutex<Option<Arc<HostPart>>>,
}

/// The private folder of a station. It is created for the first file: a killed station of a host,
/// which has no file, leaves no folder.
enum Folder {
    /// The parent to create it in.
    In(PathBuf),
    Made(TempDir),
    /// The station has ended.
    Removed,
}

/// A host's part of a lab.
struct HostPart {
    // Dropped in this order.
    stations: Vec<Station>,
    _part: Part,
}

/// Settings of the machine that are visible in its network namespace, but perhaps not in a
/// station's.
#[derive(Debug)]
pub(super) struct OfMachine {
    /// Largest socket buffers, in bytes. Kernels before 6.11 show them only there.
    receive_buffer: Option<u64>,
    send_buffer: Option<u64>,
    parameters: ParameterFiles,
}

impl OfMachine {
    /// Reads the settings; call it in that namespace.
    pub(super) fn read() -> Self {
        Self {
            receive_buffer: procfs::net_core("rmem_max"),
            send_buffer: procfs::net_core("wmem_max"),
            parameters: ParameterFiles::open(),
        }
    }
}

/// Active watches of one kind, by handle.
struct Watches<T> {
    last: u64,
    active: BTreeMap<u64, T>,
}

impl<T> Watches<T> {
    const NONE: Self = Self {
        last: 0,
        active: BTreeMap::new(),
    };

    /// Starts one more.
    fn add(
        &mut self,
        kind: &str,
        start: impl FnOnce() -> Result<T, String>,
    ) -> Result<Response, String> {
        if self.active.len() >= WATCHES_MAX {
            return Err(format!(
                "{WATCHES_MAX} {kind} are the most that one station keeps"
            ));
        }
        let started = start()?;
        // No handle is used twice: a late request must not end another trial's watch.
        self.last += 1;
        let watch = self.last;
        self.active.insert(watch, started);
        Ok(Response::Watching { watch })
    }

    fn end(&mut self, watch: u64) -> Result<T, String> {
        self.active
            .remove(&watch)
            .ok_or_else(|| unknown_watch(watch))
    }
}

fn unknown_watch(watch: u64) -> String {
    format!("watch {watch} is unknown here, or has been ended already")
}

/// Returns a value that a process has until its end.
fn unless_gone<T>(process: u64, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| format!("process {process} is gone"))
}

impl Folder {
    /// Returns its path; creates the folder if necessary.
    fn path(&mut self) -> Result<PathBuf, String> {
        if let Self::In(parent) = self {
            let made = tempfile::Builder::new()
                .prefix("cipherbench-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir_in(&*parent);
            let made = made.map_err(|error| {
                format!("cannot make a folder in {}: {error}", parent.display())
            })?;
            *self = Self::Made(made);
        }
        match self {
            Self::Made(folder) => Ok(folder.path().to_owned()),
            _ => Err("the station is ending".to_owned()),
        }
    }
}

impl Requests {
    /// Creates the requests' state; the private folder will be in `parent`.
    pub(super) fn new(
        processes: Arc<Processes>,
        parent: &Path,
        of_machine: OfMachine,
        ending: Ending,
        state_folder: Option<PathBuf>,
    ) -> Self {
        Self {
            processes,
            folder: Mutex::new(Folder::In(parent.to_owned())),
            of_machine,
            watches: Mutex::new(Watches::NONE),
            settings: Mutex::new(Watches::NONE),
            ending: Mutex::new(ending),
            clocks: Mutex::default(),
            counting: Mutex::default(),
            state_folder,
            part: Mutex::default(),
        }
    }

    /// Runs the actions requested for the station's end. Call it on the thread that starts
    /// programs.
    pub(super) fn come_to_the_end(&self) {
        lock(&self.ending).come(&self.processes);
    }

    /// Ends the stations of a host and waits for them.
    pub(super) fn leave_part(&self) {
        // Once it is taken, `pass_on` accepts no more calls.
        let Some(part) = lock(&self.part).take() else {
            return;
        };
        part.stations.iter().for_each(Station::hang_up);
        // Calls that are being passed on end with their stations.
        let is_alone = || Ok::<_, Infallible>(Arc::strong_count(&part) == 1);
        let Ok(alone) = await_true(LEAVE_LIMIT, LEAVE_STEP, is_alone);
        if !alone {
            // One hangs. Killing it ends its calls, and this process returns its interfaces.
            part.stations.iter().for_each(|it| it.lose("it hangs"));
            let Ok(_) = await_true(LEAVE_LIMIT, LEAVE_STEP, is_alone);
        }
    }

    pub(super) fn remove_folder(&self) {
        // Dropping the folder removes it. Anything that cannot be removed is a mount of the
        // station, and vanishes with its namespace.
        *lock(&self.folder) = Folder::Removed;
    }

    /// The second half of `Start`: the program has been forked.
    pub(super) fn await_ready(
        &self,
        handle: u64,
        process: &Process,
        ready: &Ready,
        limit_ms: u64,
    ) -> Result<Response, String> {
        let pid = process.pid.as_raw().cast_unsigned();
        match process.await_ready(ready, Duration::from_millis(limit_ms)) {
            Ok(stdout) => Ok(Response::Started {
                process: handle,
                pid,
                stdout,
            }),
            Err(error) => {
                self.processes.forget(handle);
                Err(error)
            }
        }
    }

    pub(super) fn answer(&self, request: Request) -> Result<Response, String> {
        let millis = Duration::from_millis;
        match request {
            Request::Hello { protocol } => self.hello(protocol),
            Request::Alive => Ok(Response::Noted),
            Request::TakePart { lab, nodes, cpus } => self.take_part(&lab, &nodes, &cpus),
            Request::On { node, request } => self.pass_on(&node, *request),
            Request::Locate { program } => Ok(Response::Located(crate::programs::path(&program))),
            // The thread of a request ends with its answer, and the kernel would kill the program
            // then.
            Request::Start { program, .. } => Err(format!(
                "`{:?}` must be started by the reading thread",
                program.argv
            )),
            Request::Wait { process, limit_ms } => {
                self.tell_end(process, |p| p.wait(millis(limit_ms)))
            }
            Request::Stop { process, grace_ms } => {
                self.tell_end(process, |p| p.stop(millis(grace_ms)))
            }
            Request::Terminate { process } => {
                self.processes.find(process)?.signal(Signal::SIGTERM);
                Ok(Response::Terminated)
            }
            Request::Signal { process, signal } => {
                let signal = Signal::try_from(signal)
                    .map_err(|_| format!("{signal} is not the number of a signal"))?;
                self.processes.find(process)?.signal(signal);
                Ok(Response::Signalled)
            }
            Request::AwaitLine {
                process,
                prefix,
                limit_ms,
            } => {
                let deadline = Deadline::after(millis(limit_ms));
                let process = self.processes.find(process)?;
                Ok(Response::Line(process.await_line(&prefix, deadline)))
            }
            Request::Status { process } => {
                Ok(Response::Status(self.processes.find(process)?.ended()))
            }
            Request::CpuTime {
                process: Some(process),
            } => {
                let time = self.processes.find(process)?.cpu_time();
                unless_gone(process, time).map(Response::CpuTime)
            }
            Request::CpuTime { process: None } => procfs::machine_cpu_time()
                .map(Response::CpuTime)
                .ok_or_else(|| "cannot read /proc/stat".to_owned()),
            Request::CountersStart { processes, machine } => self.count(&processes, machine),
            Request::CountersEnd => {
                let counting = lock(&self.counting).take();
                let counted = counting.and_then(|counting| counting.end().ok());
                Ok(Response::Counted(counted))
            }
            Request::Resident { process } => {
                let bytes = self.processes.find(process)?.resident_bytes();
                unless_gone(process, bytes).map(Response::Resident)
            }
            Request::Identity { process } => {
                let stat = unless_gone(process, self.processes.find(process)?.stat())?;
                Ok(Response::Identity {
                    pid: stat.pid,
                    start_ticks: stat.start_ticks,
                })
            }
            Request::InterfaceCounters => procfs::interface_counters()
                .map(Response::InterfaceCounters)
                .map_err(|error| format!("cannot read /proc/net/dev: {error}")),
            Request::Offloads => self.offloads(),
            Request::Sample {
                interface,
                frames,
                packets,
                contents,
                received_only,
                limit_ms,
                markers,
                sealed_ports,
                control_ports,
            } => {
                let expected = Expected {
                    sealed: &sealed_ports,
                    control: &control_ports,
                    markers: &markers,
                };
                let wanted = sample::Wanted {
                    frames,
                    packets,
                    contents,
                    received_only,
                };
                sample::sample(&interface, wanted, millis(limit_ms), expected)
                    .map(Response::Sample)
                    .map_err(|error| format!("cannot watch the interface `{interface}`: {error}"))
            }
            Request::Watch {
                interface,
                received_only,
                sealed_ports,
                control_ports,
                markers,
                inside,
            } => {
                let expected = Expected {
                    sealed: &sealed_ports,
                    control: &control_ports,
                    markers: &markers,
                };
                self.watch((&interface, received_only), expected, inside)
            }
            Request::WatchEnd { watch } => self.end_watch(watch),
            Request::WatchRead { watch } => self.read_watch(watch),
            Request::Readings { processes } => self.readings(&processes),
            Request::Environment => {
                let environment = host::environment(privilege::current());
                Ok(Response::Environment(Box::new(environment)))
            }
            Request::Load => Ok(Response::Load(host::load())),
            Request::ClockAnswer { interface, own } => {
                let mut answerer = lock(&self.clocks);
                // The previous answerer ends first.
                *answerer = None;
                let started = interface.as_deref().map(|name| Answerer::start(name, own));
                *answerer = started
                    .transpose()
                    .map_err(|error| format!("cannot answer on `{interface:?}`: {error}"))?;
                Ok(Response::Noted)
            }
            Request::ClockAsk(ask) => clocks::ask(&ask)
                .map(Response::Clocks)
                .map_err(|error| format!("cannot compare clocks on `{}`: {error}", ask.interface)),
            Request::SettingsWatch { neighbours } => self.watch_settings(neighbours),
            Request::SettingsWatchEnd { watch } => self.end_settings(watch),
            Request::Energy { folder } => rapl::read(Path::new(&folder))
                .map(Response::Energy)
                .map_err(|error| error.to_string()),
            Request::UdpErrors => procfs::udp_errors()
                .map(|[receive_buffer_errors, in_errors]| Response::UdpErrors {
                    receive_buffer_errors,
                    in_errors,
                })
                .map_err(|error| format!("cannot read /proc/net/snmp: {error}")),
            Request::HttpGet { port, path } => http::get(port, &path).map(Response::Body),
            Request::WriteFile {
                name,
                content,
                secret,
            } => self.write_file(&name, &content, secret),
            Request::Parameters { interface } => {
                Ok(Response::Parameters(lent::parameters(&interface)))
            }
            Request::GiveBack { lent } => {
                lock(&self.ending).lent = lent;
                Ok(Response::Noted)
            }
            Request::AtEnd { programs, limit_ms } => {
                let mut ending = lock(&self.ending);
                ending.programs = programs;
                ending.limit = millis(limit_ms);
                Ok(Response::Noted)
            }
        }
    }

    fn hello(&self, protocol: u32) -> Result<Response, String> {
        if protocol != PROTOCOL_VERSION {
            return Err(format!(
                "the station speaks protocol {PROTOCOL_VERSION}, its caller {protocol}\n\
                 help: use the same version of cipherbench on both sides"
            ));
        }
        Ok(Response::Hello {
            protocol: PROTOCOL_VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            boot_id: boot_id(),
            clock: procfs::clock_id(),
            cores: u16::try_from(self.processes.cores().len()).unwrap_or(u16::MAX),
            cpus: cpus::logical(self.processes.cores()),
            rmem_max_bytes: self.of_machine.receive_buffer,
            wmem_max_bytes: self.of_machine.send_buffer,
        })
    }

    fn take_part(&self, lab: &str, nodes: &[String], cpus: &[u16]) -> Result<Response, String> {
        let folder = self
            .state_folder
            .as_ref()
            .ok_or("this station serves no host")?;
        // Held until the stations run, so that a second request finds the part taken.
        let mut part = lock(&self.part);
        if part.is_some() {
            return Err("this host has its part of a lab already".to_owned());
        }
        let unknown = |name: &String| format!("there is no node `{name}` in a lab");
        let nodes = nodes
            .iter()
            .map(|name| NodeId::from_name(name).ok_or_else(|| unknown(name)));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let words = |error: LabError| error.to_string();
        let (mut own, swept) = Part::take(folder, lab).map_err(words)?;
        own.expect_returns().map_err(words)?;
        // Ctrl-C reaches the run, which ends the input of this process; that ends the stations in
        // order.
        let stations = own.start(&nodes, cpus, &Interrupt::new()).map_err(words)?;
        let pids = stations.iter();
        let pids = pids.map(|station| (station.id().name().to_owned(), station.pid()));
        let pids = pids.collect();
        *part = Some(Arc::new(HostPart {
            stations,
            _part: own,
        }));
        Ok(Response::PartTaken { swept, pids })
    }

    /// Passes a request on to a station of this host.
    fn pass_on(&self, node: &str, request: Request) -> Result<Response, String> {
        // A clone instead of the lock, so that calls to several stations run concurrently.
        let part = lock(&self.part).clone();
        let part = part.ok_or("this host has no part of a lab")?;
        let station = part.stations.iter().find(|its| its.id().name() == node);
        let station =
            station.ok_or_else(|| format!("there is no station `{node}` on this host"))?;
        station.call(request).map_err(|error| match error {
            // The run adds the name of the station.
            LabError::Node { reason, .. } => reason,
            other => other.to_string(),
        })
    }

    fn watch(
        &self,
        (interface, received_only): (&str, bool),
        expected: Expected<'_>,
        inside: bool,
    ) -> Result<Response, String> {
        // Locked during the start, so that the limit holds.
        lock(&self.watches).add("watches", || {
            Watch::start((interface, received_only), expected, inside)
                .map_err(|error| format!("cannot watch the interface `{interface}`: {error}"))
        })
    }

    fn end_watch(&self, handle: u64) -> Result<Response, String> {
        // Out of the lock: the end may read many frames.
        let watch = lock(&self.watches).end(handle)?;
        watch.end().map(Response::Watched).map_err(|error| {
            format!("watch {handle}: the interface was not watched all the time: {error}")
        })
    }

    fn read_watch(&self, handle: u64) -> Result<Response, String> {
        let watches = lock(&self.watches);
        let watch = watches
            .active
            .get(&handle)
            .ok_or_else(|| unknown_watch(handle))?;
        let read = watch.read().map(Response::Watched);
        read.map_err(|error| format!("watch {handle} cannot be read: {error}"))
    }

    fn readings(&self, processes: &[u64]) -> Result<Response, String> {
        let cpu = processes
            .iter()
            .map(|handle| unless_gone(*handle, self.processes.find(*handle)?.own_cpu_time()));
        let cpu = cpu.collect::<Result<Vec<_>, String>>()?;
        let reading = reading::read(cpu);
        let reading = reading.map_err(|error| format!("cannot read counters: {error}"))?;
        Ok(Response::Readings(reading))
    }

    fn count(&self, processes: &[u64], machine: bool) -> Result<Response, String> {
        // A short program may have ended already. It cannot be counted any more, and another
        // process may have its number. Counts without it would be too small, so return none.
        let pids = processes.iter().map(|handle| {
            let stat = self.processes.find(*handle)?.stat();
            Ok(stat.map(|stat| stat.pid))
        });
        let pids = pids.collect::<Result<Option<Vec<_>>, String>>()?;
        let mut counting = lock(&self.counting);
        // The doctor and the journal's header report why counters are unavailable.
        *counting = pids.and_then(|pids| Counting::start(&pids, machine).ok());
        Ok(Response::Counting(counting.is_some()))
    }

    fn watch_settings(&self, neighbours: bool) -> Result<Response, String> {
        lock(&self.settings).add("watches on settings", || {
            let parameters = &self.of_machine.parameters;
            SettingsWatch::start(&self.policies()?, parameters, neighbours)
                .map_err(|error| format!("cannot watch the settings of the network: {error}"))
        })
    }

    fn end_settings(&self, handle: u64) -> Result<Response, String> {
        let watch = lock(&self.settings).end(handle)?;
        let found = watch.end(&self.policies()?);
        found
            .map(Response::SettingsWatched)
            .map_err(|error| format!("cannot read the settings of the network again: {error}"))
    }

    /// Returns the output of `ip xfrm policy`; empty if the kernel has no IPsec.
    fn policies(&self) -> Result<String, String> {
        // The thread of a request forks it and waits for it, so the thread outlives the process.
        let program = Program::new(["ip", "xfrm", "policy"]);
        Ok(self.processes.run(&program, TOOL_LIMIT)?.stdout)
    }

    /// Reports a program's end, once.
    fn tell_end(
        &self,
        handle: u64,
        end: impl FnOnce(&Process) -> Result<testbed::protocol::Ended, String>,
    ) -> Result<Response, String> {
        // After an error the handle stays, so that the caller can try again.
        let ended = end(&*self.processes.find(handle)?)?;
        self.processes.forget(handle);
        Ok(Response::Ended(ended))
    }

    fn offloads(&self) -> Result<Response, String> {
        let interfaces = procfs::interface_counters()
            .map_err(|error| format!("cannot read /proc/net/dev: {error}"))?;
        // One after the other: there are few, and each takes milliseconds.
        let features = interfaces.into_keys().map(|interface| {
            let program = Program::new(["ethtool", "-k", &interface]);
            let ended = self.processes.run(&program, TOOL_LIMIT)?;
            if ended.code != Some(0) {
                return Err(format!(
                    "`ethtool -k {interface}`: {}{}",
                    ended.how(),
                    ended.last_words()
                ));
            }
            Ok((interface, offloads::parse(&ended.stdout)))
        });
        features.collect::<Result<_, _>>().map(Response::Offloads)
    }

    fn write_file(&self, name: &str, content: &str, secret: bool) -> Result<Response, String> {
        if name.is_empty() || name.contains(['/', '\0']) || matches!(name, "." | "..") {
            return Err(format!("`{name}` is not a plain file name"));
        }
        // Only plain names reach this point, so the path stays in the folder.
        let path = lock(&self.folder).path()?.join(name);
        let mode = if secret { 0o600 } else { 0o644 };
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(mode)
                .open(&path)?;
            // The file may have existed with another mode.
            file.set_permissions(Permissions::from_mode(mode))?;
            file.write_all(content.as_bytes())
        };
        write().map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(Response::Written {
            path: path.display().to_string(),
        })
    }
}
