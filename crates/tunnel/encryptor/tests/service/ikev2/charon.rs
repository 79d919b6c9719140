//! strongSwan's daemon with kernel-libipsec as the peer.

use super::{await_up, certify, rekeys};
use crate::gateway::Gateway;
use crate::namespace::{Namespace, pair};
use crate::negotiated::{folder, metric, ppk_hex};
use crate::tests::{PATIENCE, await_that, start};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const PLACES: [&str; 2] = ["/usr/lib/ipsec/charon", "/usr/libexec/ipsec/charon"];

/// Routes are in the main table, and go with the daemon's TUN device.
const STRONGSWAN: &str = "
charon {
  load = random nonce openssl curve25519 chapoly kdf hmac sha1 sha2 aes gcm pem pubkey x509 pkcs8 constraints kernel-libipsec kernel-netlink socket-default vici
  install_virtual_ip = no
  routing_table = 0
  filelog { stderr { default = 1 } }
  plugins { vici { socket = unix://FOLDER/vici } }
}
";

const SWANCTL: &str = "
connections {
  main {
    version = 2
    local_addrs = 192.0.2.2
    remote_addrs = 192.0.2.1
    proposals = aes256gcm16-prfsha384-x25519
    mobike = no
    rekey_time = 0
    local { auth = AUTH
      LOCAL
      id = gw2.example }
    remote { auth = AUTH
      id = gw1.example }
    children { net {
      local_ts = 10.2.0.0/24
      remote_ts = 10.1.0.0/24
      rekey_time = 0
      esp_proposals = aes256gcm16-x25519, aes256gcm16
    } }
  }
}
secrets { ike-main { secret = 0xPSK } }
";

/// A running daemon, stopped when dropped.
struct Charon<'a> {
    namespace: &'a Namespace,
    folder: PathBuf,
    process: Child,
}

/// How both sides are authenticated.
#[derive(Clone, Copy, PartialEq)]
enum By {
    SharedKey,
    Certificates,
}

/// The daemon, unless it is not installed.
fn program(test: &str) -> Option<PathBuf> {
    let program = PLACES.map(PathBuf::from).into_iter().find(|it| it.exists());
    if program.is_none() {
        let install = "apt install charon-systemd strongswan-swanctl";
        testing::lacks(test, "charon", install);
    }
    program
}

impl<'a> Charon<'a> {
    fn start(namespace: &'a Namespace, folder: &Path, program: &Path, by: By) -> Self {
        let path = folder.display().to_string();
        let write = |name: &str, text: String| fs::write(folder.join(name), text).unwrap();
        write("strongswan.conf", STRONGSWAN.replace("FOLDER", &path));
        let (auth, local) = match by {
            By::SharedKey => ("psk", ""),
            By::Certificates => ("pubkey", "certs = gw2.example.pem"),
        };
        let swanctl = SWANCTL.replace("PSK", &ppk_hex());
        write(
            "swanctl.conf",
            swanctl.replace("AUTH", auth).replace("LOCAL", local),
        );
        // The folders in which swanctl looks for certificates and keys.
        for (sub, file) in [
            ("x509", "gw2.example.pem"),
            ("x509ca", "ca.pem"),
            ("private", "gw2.example.key"),
        ] {
            if by == By::Certificates {
                fs::create_dir_all(folder.join(sub)).unwrap();
                fs::copy(folder.join(file), folder.join(sub).join(file)).unwrap();
            }
        }
        let _ = fs::remove_file(folder.join("vici"));
        let log = fs::File::create(folder.join("log")).unwrap();
        let (program, conf) = (program.to_owned(), folder.join("strongswan.conf"));
        let process = namespace.run(move || {
            // A private /run: the daemon writes its process number there.
            let script = "mount -t tmpfs tmpfs /run && exec \"$1\"";
            Command::new("unshare")
                .args(["--mount", "sh", "-c", script, "sh"])
                .arg(program)
                .env("STRONGSWAN_CONF", conf)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .unwrap()
        });
        let charon = Self {
            namespace,
            folder: folder.to_owned(),
            process,
        };
        await_that("charon has started", || charon.folder.join("vici").exists());
        charon.swanctl(&[
            "--load-all",
            "--noprompt",
            "--file",
            &format!("{path}/swanctl.conf"),
        ]);
        charon
    }

    fn swanctl(&self, arguments: &[&str]) -> String {
        let socket = format!("unix://{}/vici", self.folder.display());
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let (conf, folder) = (self.folder.join("strongswan.conf"), self.folder.clone());
        let mut command = self.namespace.run(move || {
            Command::new("swanctl")
                .args(arguments)
                .args(["--uri", &socket])
                .env("STRONGSWAN_CONF", conf)
                .env("SWANCTL_DIR", folder)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        });
        let began = Instant::now();
        while command.try_wait().unwrap().is_none() {
            assert!(
                began.elapsed() < PATIENCE,
                "swanctl does not end: {}",
                self.log()
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let output = command.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Installed child SAs.
    fn child_sas(&self) -> usize {
        self.swanctl(&["--list-sas"]).matches("INSTALLED").count()
    }
}

impl Drop for Charon<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("charon: {}", self.log());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the gateway at the other end.
fn gateway(namespaces: &[Namespace; 2], folder: &Path, role: &str, by: By) -> Gateway {
    let (psk, identity) = match by {
        By::SharedKey => ("psk: alpha.ppk\n      ", ""),
        By::Certificates => (
            "",
            "identity: { certificate: gw1.example.pem, key: gw1.example.key, ca: ca.pem }\n",
        ),
    };
    let config = format!(
        "peers:\n\
         - remote: 192.0.2.2\n  \
           routes: 10.2.0.0/24\n  \
           local: 10.1.0.0/24\n  \
           keys:\n    \
             ike:\n      \
               identity: gw1.example\n      \
               peer: gw2.example\n      \
               {psk}\
               proposals: aes256gcm16-prfsha384-x25519\n      \
               role: {role}\n\
         tunnel: {{ address: 10.1.0.1/24 }}\n\
         {identity}\
         metrics: 127.0.0.1:9464\n"
    );
    start(0, &namespaces[0], folder, &config).unwrap()
}

fn await_passage(namespaces: &[Namespace; 2], charon: &Charon<'_>) {
    await_that("packets pass", || namespaces[0].reaches("10.2.0.1"));
    assert!(
        namespaces[1].reaches_with(1200, "10.1.0.1"),
        "{}",
        charon.log()
    );
}

pub(crate) fn a_tunnel_with_strongswan_carries_packets_in_both_roles() {
    let Some(program) = program("a_tunnel_with_strongswan_carries_packets_in_both_roles") else {
        return;
    };
    let (folder, namespaces) = (folder(), pair());
    // The host behind charon.
    namespaces[1].ip("address add 10.2.0.1/24 dev lo");
    let charon = Charon::start(&namespaces[1], folder.path(), &program, By::SharedKey);
    let up = "cipherbench_ike_tunnels_up";
    for role in ["initiate", "respond"] {
        let gateway = gateway(&namespaces, folder.path(), role, By::SharedKey);
        if role == "respond" {
            charon.swanctl(&["--initiate", "--child", "net"]);
        }
        await_up(&namespaces[0]);
        await_passage(&namespaces, &charon);
        // New keys, ordered by either side, for either SA.
        gateway.rekey();
        await_that("the child SA is replaced", || {
            rekeys(&namespaces[0], "child") == 1
        });
        await_passage(&namespaces, &charon);
        charon.swanctl(&["--rekey", "--child", "net"]);
        await_that("the child SA is replaced", || {
            rekeys(&namespaces[0], "child") == 2
        });
        await_passage(&namespaces, &charon);
        charon.swanctl(&["--rekey", "--ike", "main"]);
        await_that("the IKE SA is replaced", || {
            rekeys(&namespaces[0], "ike") == 1
        });
        await_passage(&namespaces, &charon);
        await_that("one child SA is left", || charon.child_sas() == 1);
        assert_eq!(
            metric(&namespaces[0], "cipherbench_ike_established_total"),
            1
        );
        if role == "respond" {
            charon.swanctl(&["--terminate", "--ike", "main"]);
            await_that("the tunnel is down", || metric(&namespaces[0], up) == 0);
        }
        let output = gateway.stop();
        assert!(output.contains("has keys by IKEv2 with x25519"), "{output}");
        await_that("charon has no child SA", || charon.child_sas() == 0);
    }
}

pub(crate) fn strongswan_is_authenticated_by_certificates_in_both_roles() {
    let Some(program) = program("strongswan_is_authenticated_by_certificates_in_both_roles") else {
        return;
    };
    let (folder, namespaces) = (folder(), pair());
    certify(folder.path());
    namespaces[1].ip("address add 10.2.0.1/24 dev lo");
    let charon = Charon::start(&namespaces[1], folder.path(), &program, By::Certificates);
    for role in ["initiate", "respond"] {
        let gateway = gateway(&namespaces, folder.path(), role, By::Certificates);
        if role == "respond" {
            charon.swanctl(&["--initiate", "--child", "net"]);
        }
        await_up(&namespaces[0]);
        await_passage(&namespaces, &charon);
        charon.swanctl(&["--rekey", "--ike", "main"]);
        await_that("the IKE SA is replaced", || {
            rekeys(&namespaces[0], "ike") == 1
        });
        await_passage(&namespaces, &charon);
        gateway.stop();
        await_that("charon has no child SA", || charon.child_sas() == 0);
    }
    let log = charon.log();
    assert!(
        log.contains("authentication of 'gw1.example' with ECDSA_WITH_SHA256_DER successful"),
        "{log}"
    );
}
