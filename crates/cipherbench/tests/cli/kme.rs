//! The KME simulator as a service, with certificates created here.

use crate::support::{Sandbox, end, finish, kill, read_line, start};
use nix::sys::signal::{SIGINT, SIGTERM};
use std::process::Command;

const CONFIG: &str = "\
kmes:
  - name: kme-a
    listen: 127.0.0.1:0
    certificate: kme-a.pem
    key: kme-a.key
    ca: authority/ca.pem
    saes: gw1
  - name: kme-b
    listen: 127.0.0.1:0
    certificate: kme-b.pem
    key: kme-b.key
    ca: authority/ca.pem
    saes: gw2
faults: 127.0.0.1:0
";

/// Creates an authority, certificates of both KMEs and of one SAE, and the configuration.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.make_folder("authority");
    end(&mut sandbox.program(&["keys", "authority", "authority"])).exits(0);
    for name in ["kme-a", "kme-b", "gw1"] {
        let words = ["keys", "certificate", "--authority", "authority", name];
        end(&mut sandbox.program(&words)).exits(0);
    }
    sandbox.write("kme.yaml", CONFIG);
    sandbox
}

/// The value of a fact in a line of facts.
fn fact<'l>(line: &'l str, key: &str) -> &'l str {
    let mut facts = line.split(' ').filter_map(|fact| fact.split_once('='));
    let found = facts.find(|(name, _)| *name == key);
    found.unwrap_or_else(|| panic!("{key} is not in {line}")).1
}

pub(crate) fn two_kmes_serve_until_a_termination_signal() {
    let sandbox = sandbox();
    for signal in [SIGTERM, SIGINT] {
        let mut kmes = start(&mut sandbox.interruptible(&["kme", "--config", "kme.yaml"]));
        let line = read_line(&mut kmes);
        assert!(line.starts_with("ready version="), "{line}");
        let [a, b] = ["kme-a", "kme-b"].map(|kme| fact(&line, kme).to_owned());
        assert_ne!(a, b);
        assert!(fact(&line, "faults").starts_with("127.0.0.1:"), "{line}");
        let curl = Command::new("curl").arg("--version").output();
        if curl.is_ok_and(|output| output.status.success()) {
            let port = a.rsplit(':').next().expect("a port");
            let url = format!("https://kme-a:{port}/api/v1/keys/gw2/status");
            let resolve = format!("kme-a:{port}:127.0.0.1");
            let mut curl = sandbox.command("curl");
            curl.args([
                "--disable",
                "--silent",
                "--show-error",
                "--fail",
                "--noproxy",
                "*",
            ])
            .args(["--cacert", "authority/ca.pem", "--cert", "gw1.pem"])
            .args(["--key", "gw1.key", "--resolve", &resolve, &url]);
            let status = end(&mut curl).exits(0).stdout;
            assert!(status.contains(r#""target_KME_ID":"kme-b""#), "{status}");
        }
        kill(i32::try_from(kmes.id()).expect("a process id"), signal);
        let ended = finish(kmes).exits(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    }
}

pub(crate) fn mistakes_of_a_kme_are_reported_before_it_serves() {
    let sandbox = sandbox();
    let kme = |config: &str| {
        sandbox.write("kme.yaml", config);
        end(&mut sandbox.program(&["kme", "--config", "kme.yaml"]))
    };
    kme(&CONFIG.replace("saes: gw2", "saes: gw1"))
        .exits(2)
        .says("kme.yaml:13:11")
        .says("the SAE `gw1` is there twice");
    kme(&CONFIG.replace("faults: 127.0.0.1:0", "faults: 0.0.0.0:9480"))
        .exits(2)
        .says("take an address of this host alone");
    kme(&CONFIG.replace("kme-b.key", "kme-a.key"))
        .exits(2)
        .says("error: KME kme-b: ")
        .says("cannot be used together");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    kme(&CONFIG.replacen("127.0.0.1:0", &address, 1))
        .exits(3)
        .says(&address);
    end(&mut sandbox.program(&["kme", "--config", "nowhere.yaml"]))
        .exits(2)
        .says("nowhere.yaml");
}
