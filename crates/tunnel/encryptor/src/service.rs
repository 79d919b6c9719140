//! The encryptor as a service: from a configuration to running lanes, and to a clean stop.
//!
//! All checks run before the first packet moves, and fail with one clear error: engine, CPUs, keys,
//! certificates, addresses, interface, ports, privileges. Only then is an epoch of each key file
//! drawn, and negotiation with the peers started. A tunnel with negotiated keys has none until the
//! peer has answered, and drops its packets until then.

mod error;
mod keys;
mod negotiation;
mod ports;
mod settings;
mod threads;

pub use error::ServiceError;

use crate::barrier::{self, hold::Holder};
use crate::config::{Config, IdentityFiles, Mode, Privileges};
use crate::counters::Tally;
use crate::ikev2::IkeSetup;
use crate::lane::{self, LaneSettings};
use crate::log;
use crate::metrics::{self, Facts};
use crate::policy::Policy;
use crate::privileges::{self, InForce, Needs};
use crate::renewal::{Rekeyer, Renewer};
use crate::worker::Worker;
use control::Control;
use dispatch::Dispatch;
use guard::Writers;
use keys::KeyFiles;
use negotiation::Negotiation;
use nix::unistd::{User, geteuid};
use port::{ClearPort, Stop, UdpLane};
use settings::Carried;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

/// The program that runs the encryptor.
#[derive(Debug)]
pub struct Program<'a> {
    /// Its version, in one word.
    pub version: &'a str,
    /// Starts a process that calls [`barrier::hold`]. Without it tables that another program
    /// removes stay removed.
    pub holder: Option<Command>,
}

/// Runs the encryptor until `stop` is raised; `ready` is called once, when it forwards, with the
/// facts that it found and a handle that renews its keys.
///
/// Unless the configuration has `privileges: keep`, the calling thread and all threads that it
/// starts drop their privileges permanently; a thread that was started before keeps its
/// capabilities. In `ready`, start everything that the program needs for a clean end, for example a
/// thread that waits for signals.
///
/// # Errors
/// [`ServiceError`]. The rules that keep packets from passing in clear stay installed in any case:
/// see [`barrier`].
pub fn run(
    config: &Config,
    program: Program<'_>,
    stop: &Stop,
    ready: impl FnOnce(&Facts, Rekeyer),
) -> Result<Tally, ServiceError> {
    // First, so that nothing passes in clear if a later step fails.
    barrier::apply(config)?;
    // While the user database is still readable.
    let user = config.user.as_deref().map(find_user).transpose()?;
    let selection = Dispatch::prepare(&config.engine, config.suite)?;
    warn(config, &selection);
    threads::check_cpus(&config.pin)?;
    ports::allow_descriptors();
    let writers = writers(config, user.as_ref())?;
    let key_files = KeyFiles::open(config, &writers)?;
    let negotiation = Negotiation::open(config, &writers)?;
    // Sockets before the interface: its MTU depends on the routes from them to the peers.
    let remotes = config.remotes();
    let mut lanes = ports::open_lanes(config, &remotes)?;
    let ike = IkeSetup::open(config, &writers, &lanes)?;
    let path_mtus = ports::path_mtus(&remotes, &lanes)?;
    let mut facts = settings::facts(config, program.version, &selection, &lanes);
    let start = Start {
        config,
        holder: program.holder,
        user,
        selection,
        key_files,
        negotiation,
        ike,
        stop,
    };
    match &config.mode {
        Mode::L3(tunnel) => {
            let mtus = ports::inner_mtus(config, tunnel, &path_mtus)?;
            let tun = ports::open_tun(config, tunnel, &mtus)?;
            facts.extend(settings::tun_facts(tunnel, &mtus, &tun));
            let carried = settings::packets(config, tunnel, &mtus);
            start.forward(tun.queues, lanes, carried, facts, ready)
        }
        Mode::L2 { interface } | Mode::L2tpv3 { interface, .. } => {
            let links = ports::open_link(config, interface, &mut lanes)?;
            facts.extend(settings::link_facts(interface, &links));
            let carried = settings::frames(config);
            start.forward(links, lanes, carried, facts, ready)
        }
    }
}

/// The results of the checks before the ports were opened.
struct Start<'a> {
    config: &'a Config,
    holder: Option<Command>,
    user: Option<User>,
    selection: Dispatch,
    key_files: KeyFiles,
    negotiation: Option<Negotiation>,
    ike: Option<IkeSetup>,
    stop: &'a Stop,
}

impl Start<'_> {
    /// Forwards between open ports until the end.
    fn forward<C: ClearPort>(
        self,
        clear: Vec<C>,
        lanes: Vec<UdpLane>,
        carried: Carried,
        mut facts: Facts,
        ready: impl FnOnce(&Facts, Rekeyer),
    ) -> Result<Tally, ServiceError> {
        let config = self.config;
        // While it may still start processes.
        let holder = self
            .holder
            .and_then(|program| start_holder(config, program));
        // While a port below 1024 may still be bound.
        let listener = config.metrics.map(listen).transpose()?;
        let in_force = match config.privileges {
            Privileges::Drop => {
                let in_force = privileges::give_up(&Needs {
                    user: self.user,
                    key_files: self.key_files.paths(),
                    read_again: {
                        // IKE does not read its certificate again.
                        let has_control = self.negotiation.is_some();
                        let again = config.identity.iter().filter(|_| has_control);
                        again.flat_map(files).cloned().collect()
                    },
                    network: self.negotiation.as_ref().map(Negotiation::network).cloned(),
                })?;
                for missing in in_force.warnings() {
                    log::warn(format_args!("{missing}"));
                }
                in_force
            }
            Privileges::Keep => InForce::NOTHING,
        };
        facts.push(("uid", geteuid().to_string()));
        facts.extend(in_force.facts());

        if let Some(holder) = holder {
            holder.log(self.stop).map_err(ServiceError::Resources)?;
        }

        // From here on no check can fail and waste an epoch.
        let mut keys = self.key_files.draw_epochs(in_force.no_caps)?;
        let mut status = Arc::default();
        if let Some(negotiation) = &self.negotiation {
            status = negotiation.status();
            for (place, of_tunnel) in negotiation.keys() {
                keys[usize::from(place)] = Some(of_tunnel);
            }
        }
        for (place, of_tunnel) in self.ike.iter().flat_map(IkeSetup::keys) {
            keys[usize::from(place)] = Some(of_tunnel);
        }
        let tunnels = carried.tunnels(config, &keys);
        let selectors: Vec<_> = config
            .peers
            .iter()
            .map(|peer| peer.selectors.clone())
            .collect();
        let policy = Arc::new(Policy::new(&selectors));
        let renewer = Renewer::start_with(&self.selection, Arc::clone(&status));
        let renewer = renewer.map_err(ServiceError::Resources)?;
        let workers: Vec<_> = (0..)
            .zip(clear.into_iter().zip(lanes))
            .map(|(lane, (clear, cipher))| {
                let (outbound, inbound) = lane::halves(&LaneSettings {
                    lane,
                    lanes: config.workers,
                    tunnels: &tunnels,
                    payload: &carried.payload,
                    policy: Arc::clone(&policy),
                    selection: &self.selection,
                    window: config.replay_window,
                    ike: self.ike.as_ref().map(IkeSetup::marked),
                    renewer: Some(&renewer),
                });
                Worker::new(clear, cipher, outbound, inbound).with_busy_poll(config.busy_poll)
            })
            .collect();
        // The workers move into their threads, so their counters are taken before.
        let counters: Vec<_> = workers.iter().map(Worker::counters).collect();
        if let Some(listener) = listener {
            let source = metrics::Source {
                facts: facts.clone(),
                in_force,
                lanes: counters.clone(),
                dispatch: self.selection.clone(),
                rekeyer: renewer.rekeyer(),
                status: Arc::clone(&status),
            };
            metrics::serve(listener, source).map_err(ServiceError::Resources)?;
        }
        // Its thread starts after the lanes, which it informs, and ends before the renewer, which
        // it sends to.
        let control = self.negotiation.map(|own| own.start(&renewer));
        let (control, ask_control) = control.transpose()?.unzip();
        let ike = self.ike.map(|own| own.start(&renewer, &status, in_force));
        let (_ike, ask_ike) = ike.transpose()?.unzip();
        renewer.set_control(Box::new(move |place, cause| {
            for ask in [&ask_control, &ask_ike].into_iter().flatten() {
                ask(place, cause);
            }
        }));
        let rekeyer = renewer.rekeyer();
        ready(
            &facts,
            rekeyer.with_control(control.as_ref().map(Control::handle)),
        );
        threads::run(&config.pin, in_force, workers, self.stop)?;
        Ok(counters
            .iter()
            .fold(Tally::default(), |sum, lane| sum + lane.read()))
    }
}

/// Starts the process that keeps the tables in place. Without it the encryptor runs as well.
fn start_holder(config: &Config, program: Command) -> Option<Holder> {
    match barrier::start_holder(config, program) {
        Ok(holder) => holder,
        Err(error) => {
            log::warn(format_args!(
                "{error}: if another program removes them, clear packets may pass"
            ));
            None
        }
    }
}

/// The users who may have written the configuration and the files that it names: root, the users of
/// this process, and the owner of the configuration file.
fn writers(config: &Config, user: Option<&User>) -> Result<Writers, ServiceError> {
    let mut writers = Writers::of_process();
    if let Some(user) = user {
        writers = writers.and(user.uid.as_raw());
    }
    let Some(file) = &config.file else {
        return Ok(writers);
    };
    // A missing file is reported by `check`.
    if let Ok(metadata) = fs::metadata(file) {
        writers = writers.and(metadata.uid());
    }
    writers.check(file)?;
    Ok(writers)
}

/// Looks up the user as which the service is to run.
fn find_user(name: &str) -> Result<User, ServiceError> {
    let said = match User::from_name(name) {
        Ok(Some(user)) => return Ok(user),
        Ok(None) => "it is not in the user database".to_owned(),
        Err(error) => error.to_string(),
    };
    let name = name.to_owned();
    Err(ServiceError::NoUser { name, said })
}

/// The files that are read again when certificates are reloaded.
const fn files(identity: &IdentityFiles) -> [&PathBuf; 3] {
    [&identity.certificate, &identity.key, &identity.ca]
}

/// Logs choices that weaken protection or speed to standard error.
fn warn(config: &Config, selection: &Dispatch) {
    if config.is_keyless() {
        eprintln!(
            "warning: L2TPv3 over UDP alone neither encrypts nor authenticates: anyone on the path can read and \
             modify packets"
        );
        return;
    }
    for passed in selection.passed_over() {
        eprintln!(
            "warning: {}; using {} instead",
            passed.reason,
            selection.engine()
        );
    }
    if config.engine.is_null() {
        eprintln!(
            "warning: the engine `null` neither encrypts nor authenticates: for measurements only"
        );
    }
    if let Some(why) = config.suite.insecure() {
        eprintln!("warning: suite: {} (insecure: {why})", config.suite);
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address).map_err(|error| ServiceError::Metrics { address, error })
}
