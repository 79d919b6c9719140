//! strongSwan's daemon in a namespace of its own, as the gateway of simulated peers behind a link.
//!
//! The gateway is 192.0.2.1, with 10.1.0.0/16 behind it. All of 10.9.0.0/16 is the test's, with
//! 10.2.0.0/16 behind it.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set in the process inside of the namespaces.
const INSIDE: &str = "CIPHERBENCH_CHARON_INSIDE";
const PLACES: [&str; 2] = ["/usr/lib/ipsec/charon", "/usr/libexec/ipsec/charon"];
const PATIENCE: Duration = Duration::from_secs(20);

const STRONGSWAN: &str = "
charon {
  load = random nonce openssl curve25519 kdf hmac sha1 sha2 aes gcm pem x509 pubkey revocation constraints kernel-libipsec kernel-netlink socket-default vici
  install_virtual_ip = no
  routing_table = 0
  cookie_threshold = 100
  block_threshold = 0
  filelog { stderr { default = 1 } }
  plugins { vici { socket = unix://FOLDER/vici } }
}
";

const SWANCTL: &str = "
connections {
  main {
    version = 2
    local_addrs = 192.0.2.1
    remote_addrs = 0.0.0.0/0
    proposals = aes256gcm16-prfsha384-x25519
    mobike = no
    rekey_time = 0
    local { id = gateway.example
      LOCAL }
    remote { id = %any
      REMOTE }
    children { net {
      local_ts = 10.1.0.0/16
      remote_ts = 10.2.0.0/16
      rekey_time = 0
      esp_proposals = aes256gcm16-x25519, aes256gcm16
    } }
  }
}
secrets {
  ike-main { secret = \"KEY\" }
}
";

/// How daemon and peers prove their identities.
#[derive(Debug, Clone, Copy)]
pub enum Proof<'a> {
    /// The key [`KEY`].
    SharedKey,
    /// Certificates, PEM.
    Certificates {
        /// Of the peers' authority.
        authority: &'a str,
        /// The daemon's, for `gateway.example`.
        certificate: &'a str,
        /// Its private key.
        key: &'a str,
    },
}

/// The shared key.
pub const KEY: &str = "a secret of tests";

/// Runs a test in a process of this program in new namespaces, or reports that it is skipped.
///
/// # Panics
/// The test fails there.
pub fn in_namespaces(name: &str, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        test();
        return;
    }
    if program().is_none() {
        crate::lacks(
            name,
            "charon",
            "apt install charon-systemd strongswan-swanctl",
        );
        return;
    }
    let unshare = ["--user", "--map-root-user", "--net", "--mount"];
    // A private /run: charon writes its process number there.
    let script = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$@\"";
    let possible = Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", script, "sh", "test", "-w", "/dev/net/tun"])
        .output();
    match possible {
        Ok(output) if output.status.success() => {}
        other => {
            crate::skip(
                name,
                format_args!("no namespaces or TUN devices: {other:?}"),
            );
            return;
        }
    }
    let program = env::current_exe().expect("a program");
    let status = Command::new("unshare")
        .args(unshare)
        .args(["sh", "-c", script, "sh"])
        .arg(program)
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare was there");
    assert!(status.success(), "{name}, in namespaces: {status}");
}

fn program() -> Option<PathBuf> {
    PLACES.map(PathBuf::from).into_iter().find(|it| it.exists())
}

/// The daemon.
#[derive(Debug)]
pub struct Charon {
    folder: TempDir,
    process: Child,
}

/// A link between this namespace, which has all addresses of a network, and the daemon's.
fn connect(process: u32) {
    let script = "
        own=$(readlink /proc/self/ns/net)
        while [ \"$(readlink /proc/$1/ns/net)\" = \"$own\" ]; do sleep 0.01; done
        set -e
        ip link add ours type veth peer name wan netns $1
        ip address add 192.0.2.2/24 dev ours
        ip link set ours up
        ip route add local 10.9.0.0/16 dev lo
        nsenter --net=/proc/$1/ns/net sh -ec '
            ip link set lo up
            ip address add 10.1.0.1/16 dev lo
            ip address add 192.0.2.1/24 dev wan
            ip link set wan up
            ip route add 10.9.0.0/16 via 192.0.2.2
            ip route add 10.2.0.0/16 via 192.0.2.2'
    ";
    let output = Command::new("sh")
        .args(["-c", script, "sh", &process.to_string()])
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{output:?}");
}

impl Charon {
    /// Starts the daemon, in a namespace behind a link.
    ///
    /// # Panics
    /// It does not start.
    #[must_use]
    pub fn start(proof: &Proof<'_>) -> Self {
        let folder = crate::folder().expect("a folder");
        let path = folder.path().display().to_string();
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("it is written");
        };
        write("strongswan.conf", &STRONGSWAN.replace("FOLDER", &path));
        let (local, remote) = match proof {
            Proof::SharedKey => ("auth = psk".to_owned(), "auth = psk".to_owned()),
            Proof::Certificates {
                authority,
                certificate,
                key,
            } => {
                // swanctl reads them from folders beside its configuration.
                for kind in ["x509", "x509ca", "pkcs8"] {
                    fs::create_dir(folder.path().join(kind)).expect("it is created");
                }
                write("x509/own.pem", certificate);
                write("x509ca/ca.pem", authority);
                write("pkcs8/own.key", key);
                (
                    format!("auth = pubkey\n certs = {path}/x509/own.pem"),
                    format!("auth = pubkey\n cacerts = {path}/x509ca/ca.pem"),
                )
            }
        };
        let swanctl = SWANCTL.replace("LOCAL", &local).replace("KEY", KEY);
        write("swanctl.conf", &swanctl.replace("REMOTE", &remote));
        let log = fs::File::create(folder.path().join("log")).expect("it is created");
        let mut process = Command::new("unshare")
            // charon looks for interfaces when it starts: the shell holds it back until the link is
            // up.
            .args(["--net", "sh", "-c", "read ready; exec \"$1\"", "sh"])
            .arg(program().expect("it was found"))
            .env("STRONGSWAN_CONF", folder.path().join("strongswan.conf"))
            .stdin(Stdio::piped())
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .expect("charon starts");
        connect(process.id());
        let mut ready = process.stdin.take().expect("it is a pipe");
        ready.write_all(b"ready\n").expect("the shell reads it");
        let charon = Self { folder, process };
        let began = Instant::now();
        while !charon.folder.path().join("vici").exists() {
            assert!(began.elapsed() < PATIENCE, "charon: {}", charon.log());
            sleep(Duration::from_millis(20));
        }
        let file = charon.folder.path().join("swanctl.conf");
        let file = file.display().to_string();
        charon.swanctl(&["--load-all", "--noprompt", "--file", &file]);
        charon
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn swanctl(&self, arguments: &[&str]) -> String {
        let socket = format!("unix://{}/vici", self.folder.path().display());
        let mut command = Command::new("swanctl")
            .args(arguments)
            .args(["--uri", &socket])
            .env(
                "STRONGSWAN_CONF",
                self.folder.path().join("strongswan.conf"),
            )
            .env("SWANCTL_DIR", self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("swanctl starts");
        let mut text = String::new();
        let printed = command.stdout.as_mut().expect("it is a pipe");
        // Before the wait: a program that fills the pipe would not end.
        printed.read_to_string(&mut text).expect("it is text");
        let status = command.wait().expect("it ends");
        assert!(status.success(), "swanctl: {status}: {text}");
        text
    }

    /// Whether all peers have the address of the link, and ports that a NAT chose.
    #[must_use]
    pub fn is_behind_nat(&self, peers: u32) -> bool {
        let text = self.swanctl(&["--list-sas"]);
        text.matches("@ 192.0.2.2[").count() == peers as usize
    }

    /// IKE SAs and child SAs that are up.
    #[must_use]
    pub fn sas(&self) -> (usize, usize) {
        let text = self.swanctl(&["--list-sas"]);
        (
            text.matches("ESTABLISHED").count(),
            text.matches("INSTALLED").count(),
        )
    }
}

/// Translates the peers' addresses to that of the link; `false` if this host cannot.
#[must_use]
pub fn translate() -> bool {
    let rules = "
        table ip peers {
            chain out {
                type nat hook postrouting priority srcnat
                ip saddr 10.9.0.0/16 masquerade
            }
        }
    ";
    let nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut nft) = nft else {
        return false;
    };
    let mut input = nft.stdin.take().expect("it is a pipe");
    let written = input.write_all(rules.as_bytes());
    // nft reads to the end of the file, and a pipe that is open has none.
    drop(input);
    written.is_ok() && nft.wait().is_ok_and(|it| it.success())
}

impl Drop for Charon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("charon: {}", self.log());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
