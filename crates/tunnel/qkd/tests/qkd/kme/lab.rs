//! Two running KMEs, certificates for all callers, and curl as a client.

use qkd::kme::{Config, Simulator, start};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// SAEs of the first KME.
pub(crate) const AT_A: [&str; 2] = ["gw1", "gw3"];
/// SAEs of the second.
pub(crate) const AT_B: [&str; 2] = ["gw2", "gw4"];
/// Has a certificate of the KMEs' authority, but is not an SAE.
pub(crate) const STRANGER: &str = "gw9";
/// Its certificate names gw1, but another authority signed it.
pub(crate) const FOREIGN: &str = "foreign";
/// Its certificate names gw1, but has expired.
pub(crate) const EXPIRED: &str = "expired";

/// Time limit for reaching a state, generous for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Lab {
    folder: TempDir,
    simulator: Option<Simulator>,
}

impl Lab {
    /// With the given value of `keys:`.
    pub(crate) fn new(keys: &str) -> Self {
        let folder = testing::folder().unwrap();
        certificates(folder.path());
        let path = folder.path().join("kme.yaml");
        let [a, b] = [AT_A, AT_B].map(|saes| saes.join(", "));
        let text = format!(
            "kmes:
  - {{ name: kme-a, listen: 127.0.0.1:0, certificate: kme-a.pem, key: kme-a.key, ca: ca.pem, saes: [{a}] }}
  - {{ name: kme-b, listen: 127.0.0.1:0, certificate: kme-b.pem, key: kme-b.key, ca: ca.pem, saes: [{b}] }}
keys: {keys}
faults: 127.0.0.1:0
"
        );
        fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let simulator = start(&config).unwrap_or_else(|error| panic!("{error}"));
        Self {
            folder,
            simulator: Some(simulator),
        }
    }

    /// The same if curl is installed; otherwise `None`, with a printed note.
    pub(crate) fn with_curl(keys: &str) -> Option<Self> {
        let found = Command::new("curl").arg("--version").output();
        if found.is_ok_and(|output| output.status.success()) {
            return Some(Self::new(keys));
        }
        testing::lacks("calls of a KME by curl", "curl", "apt install curl");
        None
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn simulator(&self) -> &Simulator {
        self.simulator.as_ref().expect("it runs")
    }

    pub(crate) fn stop(&mut self) {
        self.simulator = None;
    }

    /// URL of the KME that an SAE belongs to: `https://127.0.0.1:…`.
    pub(crate) fn kme_of(&self, sae: &str) -> String {
        let place = usize::from(AT_B.contains(&sae));
        format!("https://{}", self.simulator().kmes()[place].1)
    }

    /// Calls curl as an SAE, for a path or a whole URL.
    pub(crate) fn curl(&self, sae: &str, path: &str) -> Command {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            self.kme_of(sae) + path
        };
        let mut command = self.bare_curl(&url);
        let [certificate, key] = ["pem", "key"].map(|end| format!("{sae}.{end}"));
        command.args(["--cert", &certificate, "--key", &key]);
        command
    }

    /// Calls curl without a certificate.
    pub(crate) fn bare_curl(&self, url: &str) -> Command {
        let mut command = Command::new("curl");
        command
            .current_dir(self.folder())
            // Ignores the user's configuration; curl requires this option first.
            .args(["--disable", "--silent", "--show-error", "--noproxy", "*"])
            .args(["--cacert", "ca.pem", "--max-time", "50"])
            .args(["--write-out", "\n%{http_code} %{content_type}", url]);
        command
    }

    /// GET as an SAE.
    pub(crate) fn get(&self, sae: &str, path: &str) -> Answer {
        answer(&mut self.curl(sae, path))
    }

    /// POST of JSON as an SAE.
    pub(crate) fn post(&self, sae: &str, path: &str, body: &str) -> Answer {
        answer(self.curl(sae, path).args([
            "--header",
            "Content-Type: application/json",
            "--data",
            body,
        ]))
    }

    /// The address for faults.
    pub(crate) fn faults(&self, method: &str, path: &str, body: &str) -> Answer {
        let address = self.simulator().faults().expect("it was configured");
        let mut command = self.bare_curl(&format!("http://{address}{path}"));
        answer(command.args(["--request", method, "--data", body]))
    }
}

/// The response that curl received.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: String,
}

impl Answer {
    /// The body, checked.
    #[track_caller]
    pub(crate) fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.content_type, "application/json", "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs curl, which must succeed.
#[track_caller]
pub(crate) fn answer(command: &mut Command) -> Answer {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, last) = text.rsplit_once('\n').expect("curl prints the status last");
    let (status, content_type) = last.split_once(' ').expect("two words");
    Answer {
        status: status.parse().unwrap(),
        content_type: content_type.to_owned(),
        body: body.to_owned(),
    }
}

/// Waits for a state.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut state: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = state() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "{what} was not reached");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn certificates(folder: &Path) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    // With equal names OpenSSL would treat them all as one self-signed certificate.
    let named = |name: &str| {
        let mut names = DistinguishedName::new();
        names.push(DnType::CommonName, name);
        names
    };
    let authority = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        (certificate, Issuer::new(params, key))
    };
    let issue = |issuer: &Issuer<'_, KeyPair>, file: &str, name: &str| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name = named(file);
        if file == EXPIRED {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let certificate = params.signed_by(&key, issuer).unwrap();
        write(&format!("{file}.pem"), &certificate.pem());
        write(&format!("{file}.key"), &key.serialize_pem());
    };
    let (certificate, issuer) = authority("authority");
    write("ca.pem", &certificate);
    for kme in ["kme-a", "kme-b"] {
        issue(&issuer, kme, "127.0.0.1");
    }
    for sae in AT_A.into_iter().chain(AT_B).chain([STRANGER]) {
        issue(&issuer, sae, sae);
    }
    issue(&issuer, EXPIRED, "gw1");
    let (_, other) = authority("other authority");
    issue(&other, FOREIGN, "gw1");
}
