//! Both ends of an encrypted tunnel: configurations, certificates and keys.

use super::draft::Draft;
use super::error::InitError;
use super::template::fill;
use encryptor::Config;
use pki::{AUTHORITY_CERTIFICATE, Authority, CERTIFICATE_DAYS, Texts, days_from_now};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};

const TEMPLATE: &str = include_str!("templates/gateway.yaml");
/// The gateways' names, in certificates too.
const NAMES: [&str; 2] = ["gw1", "gw2"];
/// Addresses in the tunnel, of a network that few hosts have, without and with the length.
const INNER: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const INNER_LENGTH: &str = "/30";

/// Two gateways: `gw1` is this host, `gw2` the peer.
#[derive(Debug, Clone)]
pub struct Gateways {
    /// This host's address and the peer's.
    pub addresses: [IpAddr; 2],
    /// The networks behind each, if any but the gateways use the tunnel.
    pub networks: [Option<String>; 2],
    /// Where the files are made.
    pub folder: PathBuf,
}

impl Gateways {
    /// The folder of an end's files, and its name.
    pub fn ends(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        NAMES.map(|name| (self.folder.join(name), name)).into_iter()
    }

    /// The folder of the authority.
    #[must_use]
    pub fn authority(&self) -> PathBuf {
        self.folder.join("authority")
    }

    /// The peer's address in the tunnel.
    #[must_use]
    pub const fn inner_peer(&self) -> &'static str {
        INNER[1]
    }

    /// The files of both ends, without their content: to refuse existing ones early.
    #[must_use]
    pub fn paths(&self) -> Draft {
        let mut draft = Draft::new(FLAG);
        for path in self.all_paths() {
            draft = draft.file(path, String::new());
        }
        draft
    }

    fn all_paths(&self) -> Vec<PathBuf> {
        let authority = ["ca.pem", "ca.key"].map(|name| self.authority().join(name));
        let ends = self.ends().flat_map(|(folder, name)| {
            let own = ["yaml", "pem", "key"].map(|end| folder.join(format!("{name}.{end}")));
            own.into_iter().chain([folder.join(AUTHORITY_CERTIFICATE)])
        });
        authority.into_iter().chain(ends).collect()
    }

    /// The files of both ends, with new keys.
    ///
    /// # Errors
    /// When the answers contradict one another, or no certificate can be created.
    pub fn draft(&self) -> Result<Draft, InitError> {
        if self.addresses[0] == self.addresses[1] {
            return Err(InitError::SameAddress(self.addresses[0]));
        }
        // Mistakes come first: keys are for gateways that can exist.
        let configs: Vec<String> = [0, 1]
            .map(|end| self.config(end))
            .into_iter()
            .collect::<Result<_, _>>()?;
        let authority = Authority::generate()?;
        let mut draft = pair(
            Draft::new(FLAG).folder(self.authority()),
            &self.authority(),
            "ca",
            authority.texts(),
        );
        for ((folder, name), config) in self.ends().zip(configs) {
            let texts = authority.issue(name, days_from_now(CERTIFICATE_DAYS))?;
            draft = pair(draft.folder(folder.clone()), &folder, name, texts)
                .file(
                    folder.join(AUTHORITY_CERTIFICATE),
                    authority.certificate().to_owned(),
                )
                .file(folder.join(format!("{name}.yaml")), config);
        }
        Ok(draft)
    }

    /// The configuration of an end.
    fn config(&self, end: usize) -> Result<String, InitError> {
        let other = 1 - end;
        let network = self.networks[other].clone();
        let routes = network.unwrap_or_else(|| format!("{}/32", INNER[other]));
        let values: [(&str, &str); 7] = [
            ("name", NAMES[end]),
            ("peer", NAMES[other]),
            ("local", &self.addresses[end].to_string()),
            ("remote", &self.addresses[other].to_string()),
            ("days", &CERTIFICATE_DAYS.to_string()),
            ("address", &format!("{}{INNER_LENGTH}", INNER[end])),
            ("routes", &routes),
        ];
        let text = fill(TEMPLATE, false, &values);
        Config::from_text(&format!("{}.yaml", NAMES[end]), &text)?;
        Ok(text)
    }
}

/// The option that names another place for the files.
const FLAG: &str = "--folder";

fn pair(draft: Draft, folder: &Path, name: &str, texts: Texts) -> Draft {
    draft
        .secret(folder.join(format!("{name}.key")), texts.key)
        .file(folder.join(format!("{name}.pem")), texts.certificate)
}

/// The address of this host that packets to a peer have.
///
/// # Errors
/// When there is no route to the peer.
pub fn address_towards(peer: IpAddr) -> Result<IpAddr, InitError> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket only looks up the route; nothing is sent.
    let address = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((peer, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    address().map_err(|source| InitError::NoAddress { peer, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn gateways(folder: &Path) -> Gateways {
        Gateways {
            addresses: [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()],
            networks: [None, None],
            folder: folder.join("gateways"),
        }
    }

    fn mode(path: &Path) -> u32 {
        let metadata = fs::metadata(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        metadata.permissions().mode() & 0o777
    }

    #[test]
    fn files_are_those_that_keys_makes_and_each_end_has_its_own() {
        let folder = testing::folder().expect("a folder");
        let gateways = gateways(folder.path());
        gateways
            .draft()
            .expect("a draft")
            .write(false)
            .expect("files");
        for path in gateways.all_paths() {
            let expected = if path.extension().is_some_and(|it| it == "key") {
                0o600
            } else {
                0o644
            };
            // The umask may allow less.
            assert_eq!(mode(&path) & !expected, 0, "{}", path.display());
        }
        let made = folder.path().join("made");
        pki::create_authority(&made).expect("an authority");
        for name in ["ca.pem", "ca.key"] {
            assert_eq!(
                mode(&made.join(name)),
                mode(&gateways.authority().join(name)),
                "{name}"
            );
        }
        assert_eq!(mode(&made), mode(&gateways.authority()));
        for (folder, name) in gateways.ends() {
            Config::load(&folder.join(format!("{name}.yaml"))).expect("a configuration");
            let files = fs::read_dir(&folder).expect("a folder").count();
            assert_eq!(files, 4, "{name}");
        }
    }

    #[test]
    fn an_existing_file_is_refused_and_nothing_else_is_made() {
        let folder = testing::folder().expect("a folder");
        let gateways = gateways(folder.path());
        let existing = gateways.folder.join("gw2/gw2.key");
        fs::create_dir_all(existing.parent().expect("a folder")).expect("folders");
        fs::write(&existing, "somebody's").expect("a file");
        let draft = gateways.draft().expect("a draft");
        let error = draft.write(false).expect_err("it exists").to_string();
        assert!(error.contains("gw2.key exists already"), "{error}");
        assert!(!gateways.authority().exists());
        draft.write(true).expect("files");
        assert_ne!(fs::read(&existing).expect("a file"), b"somebody's");
        assert_eq!(mode(&existing), 0o600);
    }

    #[test]
    fn what_was_made_before_a_failure_is_removed() {
        let folder = testing::folder().expect("a folder");
        let gateways = gateways(folder.path());
        // A folder in the place of the last file, which `--force` does not replace either.
        fs::create_dir_all(gateways.folder.join("gw2/gw2.yaml")).expect("folders");
        let error = gateways.draft().expect("a draft").write(true);
        let error = error.expect_err("a folder").to_string();
        assert!(
            error.contains("gw2.yaml") && error.contains("nothing was written"),
            "{error}"
        );
        assert!(!gateways.authority().exists() && !gateways.folder.join("gw1").exists());
        assert_eq!(
            fs::read_dir(gateways.folder.join("gw2"))
                .expect("a folder")
                .count(),
            1
        );
    }

    #[test]
    fn impossible_answers_are_refused_before_keys_are_made() {
        let folder = testing::folder().expect("a folder");
        let mut same = gateways(folder.path());
        same.addresses[1] = same.addresses[0];
        assert!(matches!(same.draft(), Err(InitError::SameAddress(_))));
        let mut inside = gateways(folder.path());
        inside.networks[1] = Some("192.0.2.0/24".to_owned());
        assert!(matches!(inside.draft(), Err(InitError::Mistakes(_))));
        let mut families = gateways(folder.path());
        families.addresses[1] = Ipv6Addr::LOCALHOST.into();
        assert!(matches!(families.draft(), Err(InitError::Mistakes(_))));
    }
}
