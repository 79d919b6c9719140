//! The configuration file of `cipherbench kme`; `docs/kme.md` has the reference.

use super::fault::{self, Armed};
use rustls::pki_types::ServerName;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use yaml::Absent::{Default as Is, Depends, Required};
use yaml::{Key, Map, Mistakes, Node, Reported, Value};

const KMES_MAX: usize = 64;
const SAES_MAX: usize = 4096;
/// In bits. Larger amounts of key material are the domain of a streaming standard (ETSI GS QKD
/// 004).
const SIZE: Value = Value::Integer(8, 65_536);
const COUNT: Value = Value::Integer(0, 1_000_000_000);

/// Keys of the file, in the order of `docs/kme.md`.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    Key::new("kmes", Value::List(&Value::Map(KME)), Required, "The KMEs, up to 64.").apart(),
    Key::new("keys", Value::Map(KEY_STORE), Depends("all defaults"),
        "Sizes, rates and limits of keys, below.").apart(),
    Key::new("faults", Value::SocketAddress, Depends("none"),
        "Address for switching [faults](#faults) and for metrics, in plain HTTP: local to this \
         host."),
];

/// Keys of a KME.
#[rustfmt::skip]
const KME: &[Key] = &[
    Key::new("name", Value::Identifier(32), Required, "Its ID."),
    Key::new("listen", Value::SocketAddress, Required,
        "Address that it serves on. With port 0 the kernel chooses the port; the line `ready` has \
         it."),
    Key::new("certificate", Value::Path, Required,
        "Its certificate, PEM, and the intermediate ones. It must name the host of the URLs that \
         clients use."),
    Key::new("key", Value::Path, Required, "Its private key, PEM, readable by its owner only."),
    Key::new("ca", Value::Path, Required, "The authority that signs its SAEs' certificates, PEM."),
    Key::new("saes", Value::OneOrMany(&Value::Text), Required,
        "IDs of its SAEs. Each is a DNS name in that SAE's certificate (its subject's alternative \
         names), and belongs to one KME.").words("name or list of names"),
    Key::new("start_with", Value::List(&Value::Map(fault::KEYS)), Depends("none"),
        "[Faults](#faults) in effect from the start.").words("list of faults").apart(),
];

/// Keys of `keys`.
#[rustfmt::skip]
const KEY_STORE: &[Key] = &[
    Key::new("size", SIZE, Is("256"),
        "Size of a key if the request does not specify one.").words("bits"),
    Key::new("min_size", SIZE, Is("64"),
        "The shortest key. A multiple of 8.").words("bits, 8 … 65536"),
    Key::new("max_size", SIZE, Is("1024"),
        "The longest key. A multiple of 8.").words("bits, 8 … 65536"),
    Key::new("max_per_request", Value::Integer(1, 4096), Is("128"),
        "Highest number of keys, or key IDs, in one request."),
    Key::new("max_sae_ids", Value::Integer(0, 4096), Is("8"),
        "Additional slave SAEs that one request may name."),
    Key::new("rate", COUNT, Is("1000"),
        "Keys of the default size that each link generates per second. 0: none.").words("0 … 10⁹"),
    Key::new("store", COUNT, Is("100000"),
        "Keys of the default size that each link can store.").words("0 … 10⁹"),
    Key::new("stored", COUNT, Depends("`store`"),
        "Keys in each store at the start.").words("0 … `store`"),
    Key::new("extensions",
        Value::Entries(&Value::Or("any", &Value::OneOrMany(&Value::Text))), Depends("none"),
        "Mandatory extensions that the KMEs support: a name, and the supported value or list of \
         values, or `any`."),
];

/// The validated configuration of the simulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The KMEs, at least one. Each pair has a link, and each KME a store for its own SAEs.
    pub kmes: Vec<KmeConfig>,
    /// Sizes, rates and limits of keys.
    pub keys: Keys,
    /// Loopback address for fault injection and metrics, in plain HTTP.
    pub faults: Option<SocketAddr>,
}

/// One KME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KmeConfig {
    /// Its ID.
    pub name: String,
    /// Listening address; with port 0 the kernel chooses the port.
    pub listen: SocketAddr,
    /// PEM file of its certificate and intermediates.
    pub certificate: PathBuf,
    /// PEM file of its private key.
    pub key: PathBuf,
    /// PEM file of the authority that signs its SAEs' certificates.
    pub ca: PathBuf,
    /// IDs of its SAEs; each is a DNS name in the certificate of that SAE.
    pub saes: Vec<String>,
    /// Faults that are armed at start.
    pub start_with: Vec<Armed>,
}

/// Sizes, rates and limits of keys, the same for all KMEs. Sizes are in bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Default size of a key.
    pub size: u32,
    /// Minimum size.
    pub min_size: u32,
    /// Maximum size.
    pub max_size: u32,
    /// Maximum number of keys per request.
    pub max_per_request: u32,
    /// Maximum number of additional slave SAEs per request.
    pub max_sae_ids: u32,
    /// Keys of the default size that each link generates per second; 0: only the initial keys.
    pub rate: u64,
    /// Capacity of each link in keys of the default size.
    pub store: u64,
    /// Keys of the default size that each link has at start.
    pub stored: u64,
    /// Supported mandatory extensions with their supported values; an empty list supports any
    /// value.
    pub extensions: BTreeMap<String, Vec<String>>,
}

impl Default for Keys {
    fn default() -> Self {
        yaml::defaults(KEY_STORE, read_keys)
    }
}

impl Config {
    /// Reads and validates a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// All mistakes in the file, each with its position.
    pub fn load(path: &Path) -> Result<Self, Mistakes> {
        let folder = path.parent().unwrap_or(Path::new(""));
        yaml::load(path)?.decode(|root| root.keys(KEYS, |map| read(map, folder)))
    }

    /// Validates a configuration given as text; messages use `file` as its name.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_text(file: &str, text: &str) -> Result<Self, Mistakes> {
        yaml::parse(file, text)?.decode(|root| root.keys(KEYS, |map| read(map, Path::new(""))))
    }
}

fn read(map: &Map<'_>, folder: &Path) -> Result<Config, Reported> {
    let kmes = map
        .required("kmes")
        .and_then(|node| read_kmes(node, folder));
    let keys = map
        .optional("keys")
        .map_or(Ok(Keys::default()), |node| node.keys(KEY_STORE, read_keys));
    let faults = map.find_with("faults", read_faults);
    Ok(Config {
        kmes: kmes?,
        keys: keys?,
        faults: faults?,
    })
}

fn read_kmes(list: Node<'_>, folder: &Path) -> Result<Vec<KmeConfig>, Reported> {
    let mut taken = UniqueValues::default();
    let kmes = list.list(|node| node.keys(KME, |map| read_kme(map, folder, &mut taken)))?;
    let saes: usize = kmes.iter().map(|kme| kme.saes.len()).sum();
    match kmes.len() {
        0 => Err(list.mistake("there is no KME", "give at least one; a link has two")),
        count if count > KMES_MAX => Err(list.mistake(
            format!("{count} KMEs are more than one process simulates"),
            format!("give at most {KMES_MAX}"),
        )),
        _ if saes > SAES_MAX => Err(list.mistake(
            format!("{saes} SAEs are more than one process simulates"),
            format!("give at most {SAES_MAX}"),
        )),
        _ => Ok(kmes),
    }
}

/// Values that must be unique among all KMEs.
#[derive(Default)]
struct UniqueValues {
    names: BTreeSet<String>,
    addresses: BTreeSet<SocketAddr>,
    saes: BTreeSet<String>,
}

fn read_kme(map: &Map<'_>, folder: &Path, taken: &mut UniqueValues) -> Result<KmeConfig, Reported> {
    // All keys are read before the first `?`, so that all mistakes are reported together.
    let name = map.get_with("name", |node, name: String| {
        if taken.names.insert(name.clone()) {
            Ok(name)
        } else {
            Err(node.mistake(
                format!("two KMEs have the name `{name}`"),
                "it is the KME's ID: give each its own",
            ))
        }
    });
    let listen = map.get_with("listen", |node, address: SocketAddr| {
        // Each port 0 becomes another port.
        if address.port() == 0 || taken.addresses.insert(address) {
            Ok(address)
        } else {
            Err(node.mistake(
                format!("two KMEs listen at {address}"),
                "give each an address or a port of its own",
            ))
        }
    });
    let path = |key| map.get::<PathBuf>(key).map(|path| folder.join(path));
    let (certificate, key, ca) = (path("certificate"), path("key"), path("ca"));
    let saes = map
        .required("saes")
        .and_then(|node| node.one_or_many(|node| read_sae(node, &mut taken.saes)));
    let start_with = map.with_default("start_with", Vec::new(), |node| {
        node.list(|node| node.keys(fault::KEYS, fault::read))
    });
    Ok(KmeConfig {
        name: name?,
        listen: listen?,
        certificate: certificate?,
        key: key?,
        ca: ca?,
        saes: saes?,
        start_with: start_with?,
    })
}

fn read_sae(node: Node<'_>, taken: &mut BTreeSet<String>) -> Result<String, Reported> {
    let sae = node.text()?;
    // The name must be one that a certificate can carry: callers are identified by theirs.
    if ServerName::try_from(sae).is_err() {
        return Err(node.mistake(
            format!("`{sae}` is not an SAE ID that a certificate can name"),
            "it must be a DNS name: use letters, digits, `-`, `_` and `.`",
        ));
    }
    // SAE IDs are DNS names, which compare without case.
    if taken.insert(sae.to_ascii_lowercase()) {
        Ok(sae.to_owned())
    } else {
        Err(node.mistake(
            format!("the SAE `{sae}` is there twice"),
            "an SAE belongs to one KME",
        ))
    }
}

fn read_keys(map: &Map<'_>) -> Result<Keys, Reported> {
    let size = |key| map.get_with(key, whole_bytes);
    let (min_size, max_size, own_size) = (size("min_size"), size("max_size"), size("size"));
    let (max_per_request, max_sae_ids) = (map.get("max_per_request"), map.get("max_sae_ids"));
    let (rate, store) = (map.get("rate"), map.get("store"));
    let stored = map.optional("stored").map(|node| {
        // A store that could not be read has been reported itself.
        let room = store.unwrap_or(u64::MAX);
        node.integer(0..=room)
    });
    let extensions = map
        .optional("extensions")
        .map_or(Ok(Vec::new()), read_extensions);
    let (min, own, max) = (min_size?, own_size?, max_size?);
    if !(min <= own && own <= max) {
        return Err(map.node().mistake(
            format!("a key of {own} bits is not from {min} to {max} bits long"),
            "change `size`, `min_size` or `max_size`",
        ));
    }
    Ok(Keys {
        size: own,
        min_size: min,
        max_size: max,
        max_per_request: max_per_request?,
        max_sae_ids: max_sae_ids?,
        rate: rate?,
        store: store?,
        stored: stored.unwrap_or(store)?,
        extensions: extensions?.into_iter().collect(),
    })
}

fn whole_bytes(node: Node<'_>, size: u32) -> Result<u32, Reported> {
    if size.is_multiple_of(8) {
        Ok(size)
    } else {
        Err(node.mistake(
            format!("a key of {size} bits is not a whole number of bytes"),
            "take a multiple of 8",
        ))
    }
}

fn read_extensions(node: Node<'_>) -> Result<Vec<(String, Vec<String>)>, Reported> {
    node.entries(|name, node| {
        let values = node.word_or("any", |node| {
            node.one_or_many(|node| Ok(node.text()?.to_owned()))
        })?;
        Ok((name.value.to_owned(), values.unwrap_or_default()))
    })
}

/// Checks the fault-injection address: its clients can break keys, so it must be a loopback
/// address.
fn read_faults(node: Node<'_>, address: SocketAddr) -> Result<SocketAddr, Reported> {
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(node.mistake(
            format!("anyone who reaches {address} could inject faults"),
            "take an address of this host alone, for example `127.0.0.1:9480`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Call, Fault};
    use super::*;
    use std::time::Duration;

    const TWO: &str = "\
kmes:
  - { name: kme-a, listen: 127.0.0.1:8443, certificate: a.pem, key: a.key, ca: ca.pem, saes: gw1 }
  - { name: kme-b, listen: '[::1]:0', certificate: b.pem, key: b.key, ca: /etc/ca.pem, saes: [gw2, GW_3.x] }
";

    fn mistakes(text: &str) -> String {
        Config::from_text("kme.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn unset_fields_have_defaults() {
        let config = Config::from_text("kme.yaml", TWO).unwrap();
        assert_eq!(config.keys, Keys::default());
        assert_eq!(config.faults, None);
        assert_eq!(config.kmes[0].saes, ["gw1"]);
        assert_eq!(config.kmes[1].saes, ["gw2", "GW_3.x"]);
        assert_eq!(config.kmes[1].ca, Path::new("/etc/ca.pem"));
        assert!(config.kmes[1].start_with.is_empty());
    }

    #[test]
    fn all_fields_can_be_set() {
        let text = "\
kmes:
  - name: kme-a
    listen: 127.0.0.1:8443
    certificate: a.pem
    key: a.key
    ca: ca.pem
    saes: gw1
    start_with:
      - { fault: delay, delay: 20 ms, count: 2 }
      - { fault: depleted }
keys:
  size: 128
  min_size: 128
  max_size: 2048
  max_per_request: 20
  max_sae_ids: 0
  rate: 5
  store: 10
  extensions: { abc_route_type: [direct, indirect], abc_max_age: any, abc_transfer_method: qkd }
faults: 127.0.0.1:9480
";
        let config = Config::from_text("kme.yaml", text).unwrap();
        let delay = Armed {
            delay: Duration::from_millis(20),
            count: Some(2),
            ..Armed::new(Fault::Delay)
        };
        let faults = [delay, Armed::new(Fault::Depleted)];
        assert_eq!(config.kmes[0].start_with, faults);
        let values = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
        let extensions = [
            ("abc_route_type", values(&["direct", "indirect"])),
            ("abc_max_age", values(&[])),
            ("abc_transfer_method", values(&["qkd"])),
        ];
        let keys = Keys {
            size: 128,
            min_size: 128,
            max_size: 2048,
            max_per_request: 20,
            max_sae_ids: 0,
            rate: 5,
            store: 10,
            // Without `stored`, the store is full at start.
            stored: 10,
            extensions: extensions
                .into_iter()
                .map(|(name, values)| (name.to_owned(), values))
                .collect(),
        };
        assert_eq!(config.keys, keys);
        assert_eq!(config.faults, Some("127.0.0.1:9480".parse().unwrap()));
        assert!(Fault::Unavailable.concerns(Call::Status));
    }

    #[test]
    fn all_mistakes_of_a_file_are_reported_with_their_positions() {
        let report = mistakes(
            "\
kmes:
  - { name: kme-a, listen: 127.0.0.1:8443, certificate: a.pem, key: a.key, ca: ca.pem, saes: gw1 }
  - { name: kme-a, listen: 127.0.0.1:8443, certificate: b.pem, ca: ca.pem, saes: [GW1, 'g w'] }
keys: { size: 129, rate: 1.5, store: 5, stored: 6 }
faults: 192.0.2.1:9480
speed: 3
",
        );
        for (place, words) in [
            ("kme.yaml:3:13", "two KMEs have the name `kme-a`"),
            ("kme.yaml:3:28", "two KMEs listen at 127.0.0.1:8443"),
            ("kme.yaml:3:5", "the key `key` is missing"),
            ("kme.yaml:3:83", "the SAE `GW1` is there twice"),
            ("kme.yaml:3:88", "`g w` is not an SAE ID"),
            ("kme.yaml:4:15", "not a whole number of bytes"),
            ("kme.yaml:4:26", "`1.5` is not a whole number"),
            ("kme.yaml:4:49", "from 0 to 5"),
            ("kme.yaml:5:9", "could inject faults"),
            ("kme.yaml:6:1", "the key `speed` is not known"),
        ] {
            assert!(report.contains(words), "`{words}` is not in\n{report}");
            assert!(
                report.contains(place),
                "{place} ({words}) is not in\n{report}"
            );
        }
        assert!(report.ends_with("10 mistakes in kme.yaml"), "{report}");
    }

    #[test]
    fn sizes_must_be_in_order() {
        let report = mistakes(&format!("{TWO}keys: {{ size: 128, min_size: 256 }}\n"));
        assert!(
            report.contains("128 bits is not from 256 to 1024 bits long"),
            "{report}"
        );
        let report = mistakes("kmes: []\n");
        assert!(report.contains("there is no KME"), "{report}");
    }
}
