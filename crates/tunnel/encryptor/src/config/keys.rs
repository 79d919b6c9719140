//! Sources of keys: `identity`, `control_port`, `qkd` and `faults` of the file, `keys` of a peer.

use super::context::Context;
use super::declared::{HANDSHAKE, IDENTITY, KEYS, QKD};
use super::ikev2;
use super::ppk::ppks;
use super::types::{Fault, Handshake, IdentityFiles, KeySource, Lifetime, Qkd};
use super::values::Consent;
use keying::chain::Policy;
use std::path::{Path, PathBuf};
use std::time::Duration;
use units::Bytes;
use yaml::{Map, Node, Reported};

/// Older epochs that may live next to the newest; each has SAs in every lane.
const OLDER_EPOCHS_MAX: u32 = 64;
/// IKE's port (RFC 7296 section 2).
const IKE_PORT: u16 = 500;
/// The limit of the KME's client.
const SAE_CHARS_MAX: usize = 255;

/// The top-level keys for negotiation, unread.
pub(super) struct Sources<'d> {
    pub(super) identity: Option<Node<'d>>,
    pub(super) control_port: Option<Node<'d>>,
    pub(super) qkd: Option<Node<'d>>,
    pub(super) faults: Option<Node<'d>>,
    ike_port: Option<Node<'d>>,
}

/// The top-level keys for negotiation, read.
pub(super) struct Read {
    pub(super) identity: Option<IdentityFiles>,
    pub(super) control_port: Option<u16>,
    pub(super) qkd: Option<Qkd>,
    pub(super) fault: Option<Fault>,
    pub(super) ike_port: u16,
}

impl<'d> Sources<'d> {
    pub(super) fn of(map: &Map<'d>) -> Self {
        Self {
            identity: map.optional("identity"),
            control_port: map.optional("control_port"),
            qkd: map.optional("qkd"),
            faults: map.optional("faults"),
            ike_port: map.optional("ike_port"),
        }
    }

    /// Paths are relative to `folder`.
    pub(super) fn read(
        &self,
        folder: &Path,
        consent: Consent,
        esp_port: Result<u16, Reported>,
    ) -> Result<Read, Reported> {
        let identity = self
            .identity
            .map(|node| node.keys(IDENTITY, |map| identity(map, folder)))
            .transpose();
        let control_port = self.control_port.map(Node::port).transpose();
        let qkd = self
            .qkd
            .map(|node| node.keys(QKD, |map| qkd(map, folder)))
            .transpose();
        let fault = self.faults.map(|node| fault(node, consent)).transpose();
        let ike_port = self.ike_port.map_or(Ok(IKE_PORT), |node| {
            let port = node.port()?;
            // First messages of IKE have no marker that distinguishes them from ESP.
            if esp_port == Ok(port) {
                return Err(node.mistake(
                    format!("`ike_port` {port} is the port of ESP, `port`"),
                    "use another one, as 500",
                ));
            }
            Ok(port)
        });
        Ok(Read {
            identity: identity?,
            control_port: control_port?,
            qkd: qkd?,
            fault: fault?,
            ike_port: ike_port?,
        })
    }

    /// Refuses keys that would have no effect; `policies` belong to the peers with negotiated keys.
    pub(super) fn refuse_idle(
        &self,
        policies: &[Policy],
        (has_ike, has_certificates): (bool, bool),
    ) -> Result<(), Reported> {
        let negotiated = [
            ("identity", self.identity.filter(|_| !has_certificates)),
            ("control_port", self.control_port),
            ("faults", self.faults),
        ];
        let of_nobody = negotiated.into_iter().filter_map(|(key, node)| {
            let node = node.filter(|_| policies.is_empty())?;
            Some(node.mistake(
                format!("`{key}` does nothing: no peer's keys are negotiated"),
                format!("remove `{key}`, or write `keys: {{ handshake: … }}` for a peer"),
            ))
        });
        let asks = policies.iter().any(|policy| policy.asks_qkd());
        let of_no_policy = self.qkd.filter(|_| !asks).map(|node| {
            node.mistake(
                "`qkd` does nothing: no peer's policy uses QKD keys",
                "remove `qkd`, or write `policy: both`, `qkd` or `either` for a peer",
            )
        });
        let of_no_ike = self.ike_port.filter(|_| !has_ike).map(|node| {
            node.mistake(
                "`ike_port` does nothing: no peer has `keys: { ike: … }`",
                "remove it",
            )
        });
        // `last` evaluates, and so reports, every mistake.
        of_nobody
            .chain(of_no_policy)
            .chain(of_no_ike)
            .last()
            .map_or(Ok(()), Err)
    }
}

fn identity(map: &Map<'_>, folder: &Path) -> Result<IdentityFiles, Reported> {
    let file = |key| map.get::<PathBuf>(key);
    let (certificate, key, ca) = (file("certificate"), file("key"), file("ca"));
    Ok(IdentityFiles {
        certificate: folder.join(certificate?),
        key: folder.join(key?),
        ca: folder.join(ca?),
    })
}

fn qkd(map: &Map<'_>, folder: &Path) -> Result<Qkd, Reported> {
    let kme = map.required("kme").and_then(kme_url);
    let sae = map.required("sae").and_then(sae);
    let files = identity(map, folder);
    Ok(Qkd {
        kme: kme?,
        sae: sae?,
        files: files?,
    })
}

/// Checks a KME's URL as far as possible without resolving its host.
fn kme_url(node: Node<'_>) -> Result<String, Reported> {
    let url = node.text()?;
    if url.starts_with("https://") && url.len() > "https://".len() {
        return Ok(url.to_owned());
    }
    Err(node.mistake(
        format!("`{url}` is not the URL of a KME"),
        "write `https://`, its address and its port, for example `\"https://10.9.0.1:8443\"`",
    ))
}

/// Reads an SAE id, which is one segment of a URL's path.
fn sae(node: Node<'_>) -> Result<String, Reported> {
    let id = node.text()?;
    // A segment of dots means another folder in the path of a URL (RFC 3986 §5.2.4).
    let fits = !id.chars().any(char::is_control) && !matches!(id, "." | "..");
    if fits && id.chars().count() <= SAE_CHARS_MAX {
        return Ok(id.to_owned());
    }
    Err(node.mistake(
        "this is not an SAE id that fits into a URL",
        "use up to 255 letters, digits and signs, as the KME knows the SAE",
    ))
}

fn fault(node: Node<'_>, consent: Consent) -> Result<Fault, Reported> {
    let fault = node.one_of("fault", &Fault::NAMES)?;
    // A switch that could not be read has been reported itself.
    if consent.insecure == Ok(false) {
        return Err(node.mistake(
            "faults are for tests: anyone who may signal the process can cut its tunnels",
            "write `insecure: true` if that is intended",
        ));
    }
    Ok(fault)
}

/// Reads `keys` of a peer's map.
pub(super) fn read(
    map: &Map<'_>,
    context: &Context<'_, '_>,
    peer_port: Result<u16, Reported>,
) -> Result<Option<KeySource>, Reported> {
    if context.keyless {
        return match map.optional("keys") {
            None => Ok(None),
            Some(node) => Err(node.mistake(
                "there are keys, but nothing is encrypted",
                "remove them, or write `encapsulation: esp`",
            )),
        };
    }
    let source = map.required("keys").and_then(|node| {
        node.keys(KEYS, |keys| {
            let sources = ["static", "handshake", "ike"].map(|key| keys.optional(key));
            match sources {
                [Some(file), None, None] => {
                    Ok(KeySource::Static(context.folder.join(file.path()?)))
                }
                [None, Some(node), None] => {
                    let handshake = handshake(node, context, peer_port)?;
                    Ok(KeySource::Handshake(Box::new(handshake)))
                }
                [None, None, Some(node)] => {
                    let ike = ikev2::read(node, context)?;
                    Ok(KeySource::Ike(Box::new(ike)))
                }
                [None, None, None] => Err(node.mistake(
                    "`keys` names no source",
                    "write `static: FILE`, `handshake: { peer: NAME }` or `ike: { … }`",
                )),
                [_, Some(other), _] | [_, _, Some(other)] => Err(other.mistake(
                    "`keys` names several sources",
                    "a tunnel's keys have one source: remove the others",
                )),
            }
        })
    });
    source.map(Some)
}

fn handshake(
    node: Node<'_>,
    context: &Context<'_, '_>,
    peer_port: Result<u16, Reported>,
) -> Result<Handshake, Reported> {
    // Returned at the end, so that mistakes within `handshake` are reported as well.
    let missing = (!context.has_identity).then(|| {
        node.mistake(
            "keys are to be negotiated, but this gateway has no certificate",
            "write `identity: { certificate: …, key: …, ca: … }` at the top of the file \
             (`cipherbench keys authority` and `cipherbench keys certificate` make them)",
        )
    });
    let read = node.keys(HANDSHAKE, |map| {
        let peer = map.required("peer").and_then(name);
        let policy = map.read("policy", |node| {
            node.one_of("policy", &Policy::ALL.map(|policy| (policy.name(), policy)))
        });
        let ppks = map.with_default("ppk", Vec::new(), |node| ppks(node, context.folder));
        let sae = read_sae(map, policy, context);
        let every: Result<Duration, Reported> = map.get("every");
        let hard = map.find_with("hard", |node, hard: Duration| {
            match every {
                Ok(every) if hard <= every => Err(node.mistake(
                    format!(
                        "with a new epoch every {} all packets would be dropped after {}",
                        units::time::print(every),
                        units::time::print(hard)
                    ),
                    "use a `hard` lifetime of several times `every`",
                )),
                _ => Ok(hard),
            }
        });
        let (bytes, packets) = (map.find("bytes"), map.find("packets"));
        let grace: Result<Duration, Reported> = map.get("grace");
        if let (Ok(every), Ok(grace)) = (every, grace)
            && grace > every * OLDER_EPOCHS_MAX
        {
            let node = map.optional("grace").unwrap_or(node);
            return Err(node.mistake(
                format!(
                    "with a new epoch every {} and a grace of {} more than {OLDER_EPOCHS_MAX} epochs are live at a time",
                    units::time::print(every),
                    units::time::print(grace)
                ),
                "use a shorter `grace`, or a longer `every`",
            ));
        }
        Ok(Handshake {
            peer: peer?,
            control_port: context.control_port.map_or(peer_port, Ok)?,
            policy: policy?,
            ppks: ppks?,
            sae: sae?,
            every: every?,
            hard: hard?,
            lifetime: Lifetime {
                bytes: bytes?.map(Bytes::get),
                packets: packets?,
            },
            grace: grace?,
        })
    });
    missing.map_or(read, Err)
}

/// The name in the peer's certificate.
fn name(node: Node<'_>) -> Result<String, Reported> {
    let name = node.text()?;
    pki::check_name(name).map_err(|_| {
        node.mistake(
            format!("`{name}` is not a valid name in a gateway's certificate"),
            "use lower-case letters, digits, `-` and `.`, as in `gw2` or `gw2.example.net`",
        )
    })?;
    Ok(name.to_owned())
}

/// Reads `sae`; it and `qkd` are required if the policy uses QKD.
fn read_sae(
    map: &Map<'_>,
    policy: Result<Policy, Reported>,
    context: &Context<'_, '_>,
) -> Result<Option<String>, Reported> {
    let given = map.optional("sae");
    // The policy has been reported; whether `sae` belongs to it is not known.
    let Ok(policy) = policy else {
        return given.map(sae).transpose();
    };
    let name = policy.name();
    match given {
        Some(node) if !policy.asks_qkd() => Err(node.mistake(
            format!("`sae` does nothing: the policy `{name}` uses no QKD keys"),
            "remove it, or write `policy: both`",
        )),
        Some(node) => {
            let sae = sae(node)?;
            if !context.has_qkd {
                return Err(map.node().mistake(
                    format!("the policy `{name}` uses QKD keys, but there is no KME to ask"),
                    "write `qkd: { kme: URL, sae: ID, certificate: …, key: …, ca: … }` at the top of the file",
                ));
            }
            Ok(Some(sae))
        }
        None if policy.asks_qkd() => Err(map.node().mistake(
            format!("the policy `{name}` uses QKD keys, and `sae` is missing"),
            "write `sae: ID`, the id under which the peer is known to its KME",
        )),
        None => Ok(None),
    }
}
