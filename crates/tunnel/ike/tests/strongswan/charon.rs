//! strongSwan's daemon in namespaces.

use crate::host::Host;
use ike::session::ChildSa;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set in the process inside of the namespaces.
const INSIDE: &str = "CIPHERBENCH_IKE_INSIDE";
const PLACES: [&str; 2] = ["/usr/lib/ipsec/charon", "/usr/libexec/ipsec/charon"];
const PATIENCE: Duration = Duration::from_secs(20);
/// Hexadecimal digits in the configuration.
pub(crate) const PPK: &[u8] = &[0x5a; 32];

/// Fragments are so small that CREATE_CHILD_SA needs several.
const STRONGSWAN: &str = "
charon {
  load = random nonce openssl curve25519 chapoly kdf hmac sha1 sha2 aes gcm pem pubkey kernel-libipsec kernel-netlink socket-default vici
  install_virtual_ip = no
  routing_table = 0
  fragment_size = 256
  retransmit_timeout = 0.5
  retransmit_tries = 3
  filelog { stderr { default = 1
    chd = 4 } }
  plugins { vici { socket = unix://FOLDER/vici } }
}
";

const SWANCTL: &str = "
connections {
  main {
    version = 2
    local_addrs = 192.0.2.1
    remote_addrs = 192.0.2.2
    proposals = aes256gcm16-prfsha384-x25519, chacha20poly1305-prfsha256-ecp256, aes128-sha256-ecp384, aes128-sha256-prfsha512-ecp521
    mobike = no
    rekey_time = 0
    CONNECTION
    local { auth = psk
      id = charon.example }
    remote { auth = psk
      id = ours.example }
    children { net {
      local_ts = 10.1.0.0/16
      remote_ts = 10.2.0.0/16
      rekey_time = 0
      esp_proposals = aes256gcm16-x25519, aes256gcm16, chacha20poly1305-ecp256, aes128-sha256-ecp384, aes128-sha256-ecp521
    } }
  }
}
secrets {
  ike-main { secret = \"a secret of tests\" }
  ppk-main { id = one
    secret = 0xPPK }
}
";

/// Runs a test in a process of this program in new namespaces, or reports that it is skipped.
pub(crate) fn in_namespaces(name: &str, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        test();
        return;
    }
    if program().is_none() {
        testing::lacks(
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
            testing::skip(
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

/// A running daemon, stopped when dropped.
pub(crate) struct Charon {
    folder: TempDir,
    process: Child,
}

/// A link between this namespace and the daemon's.
fn connect(process: u32) {
    let script = "
        own=$(readlink /proc/self/ns/net)
        while [ \"$(readlink /proc/$1/ns/net)\" = \"$own\" ]; do sleep 0.01; done
        ip link delete ours 2>&-
        set -e
        ip link add ours type veth peer name wan netns $1
        ip address add 192.0.2.2/24 dev ours
        ip link set ours up
        nsenter --net=/proc/$1/ns/net sh -ec '
            ip link set lo up
            ip address add 10.1.0.1/16 dev lo
            ip address add 192.0.2.1/24 dev wan
            ip link set wan up
            ip route add 10.2.0.0/16 via 192.0.2.2'
    ";
    let output = Command::new("sh")
        .args(["-c", script, "sh", &process.to_string()])
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{output:?}");
}

impl Charon {
    /// Starts the daemon, with these lines in its connection.
    pub(crate) fn start(connection: &str) -> Self {
        let folder = testing::folder().expect("a folder");
        let path = folder.path().display().to_string();
        let write = |name: &str, text: String| {
            fs::write(folder.path().join(name), text).expect("it is written");
        };
        write("strongswan.conf", STRONGSWAN.replace("FOLDER", &path));
        let ppk = base16ct::lower::encode_string(PPK);
        let swanctl = SWANCTL.replace("PPK", &ppk);
        write("swanctl.conf", swanctl.replace("CONNECTION", connection));
        let log = fs::File::create(folder.path().join("log")).expect("it is created");
        let mut process = Command::new("unshare")
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
        let mut loaded = charon.order(&["--load-all", "--noprompt", "--file", &file]);
        finished(&mut loaded);
        charon
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The daemon derived these keys: its log has them, 16 bytes a line.
    pub(crate) fn check_keys(&self, child: &ChildSa) {
        let log = self.log();
        for keys in [&child.inbound_keys, &child.outbound_keys] {
            let line: Vec<_> = keys[..16].iter().map(|it| format!("{it:02X}")).collect();
            assert!(log.contains(&line.join(" ")), "no such keys: {child:?}");
        }
    }

    /// Starts a command of swanctl, which ends when the peer has answered.
    pub(crate) fn order(&self, arguments: &[&str]) -> Child {
        let socket = format!("unix://{}/vici", self.folder.path().display());
        Command::new("swanctl")
            .args(arguments)
            .args(["--uri", &socket])
            .env(
                "STRONGSWAN_CONF",
                self.folder.path().join("strongswan.conf"),
            )
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("swanctl starts")
    }

    /// The same, while the session runs.
    pub(crate) fn swanctl(&self, arguments: &[&str], host: &mut Host) {
        let ordered = self.order(arguments);
        host.output_of(ordered);
    }

    /// The list of IKE SAs.
    pub(crate) fn sas(&self) -> String {
        let mut listed = self.order(&["--list-sas"]);
        let mut text = String::new();
        let printed = listed.stdout.as_mut().expect("it is a pipe");
        printed.read_to_string(&mut text).expect("it is text");
        finished(&mut listed);
        text
    }

    /// Installed child SAs.
    pub(crate) fn child_sas(&self) -> usize {
        self.sas().matches("INSTALLED").count()
    }
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

/// Waits for a command of swanctl.
pub(crate) fn finished(command: &mut Child) {
    let began = Instant::now();
    while command.try_wait().expect("it is a child").is_none() {
        assert!(began.elapsed() < PATIENCE, "swanctl does not end");
        sleep(Duration::from_millis(10));
    }
}
