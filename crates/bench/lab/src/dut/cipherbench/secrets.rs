//! Secrets of the gateways: made for one start, never on this machine's disk, and readable by the
//! owner only in each gateway's file system.

use crate::dut::keys::{fresh_pair, write_file, write_keys};
use keying::FileTexts;
use pki::{Authority, CertificateError, Texts, days_from_now};
use plan::KeySource;
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::{LabError, Node, NodeId, Result};
use zeroize::Zeroizing;

/// Validity of certificates in days: longer than a campaign.
const DAYS: u32 = 31;

/// The KMEs, one per gateway; both run on gw1.
const KMES: [&str; 2] = ["kme-a", "kme-b"];

/// TCP ports of gw1's KME and of gw2's.
pub(super) const KME_PORTS: [u16; 2] = [8443, 8444];

/// Address on gw1 for setting faults of the KMEs.
const KME_FAULTS: &str = "127.0.0.1:9480";

/// Secrets of both gateways.
pub(super) enum Secrets {
    /// A key file each.
    Static([FileTexts; 2]),
    /// Credentials for agreeing on keys.
    Agreed(Box<Agreed>),
}

/// Certificates of a dedicated authority, and what else the key source needs.
pub(super) struct Agreed {
    keys: KeySource,
    every: Duration,
    authority: String,
    gateways: [Texts; 2],
    ppk: Option<Zeroizing<String>>,
    qkd: Option<Qkd>,
}

/// Credentials of two KMEs and their SAEs. The SAEs have the names of their gateways.
struct Qkd {
    /// The address of each gateway's KME; both serve at the first one.
    addresses: [Ipv4Addr; 2],
    authority: String,
    kmes: [Texts; 2],
    saes: [Texts; 2],
}

/// The key settings of a gateway's configuration file.
pub(super) struct KeyConfig {
    /// Whole lines for the top of the file.
    pub(super) lines: String,
    /// The value of each peer's `keys`.
    pub(super) keys: String,
}

impl Secrets {
    /// Creates fresh secrets; `kmes` are the addresses of the gateways' KMEs. Both serve at the
    /// first one.
    pub(super) fn make(
        dut: &str,
        keys: KeySource,
        every: Duration,
        kmes: [Ipv4Addr; 2],
    ) -> Result<Self> {
        if !keys.is_agreed() {
            return fresh_pair(dut).map(Self::Static);
        }
        let agreed = Agreed::make(keys, every, kmes);
        let agreed =
            agreed.map_err(|reason| LabError::dut(dut, format!("got no keys: {reason}")))?;
        Ok(Self::Agreed(Box::new(agreed)))
    }

    /// Writes a gateway's secrets.
    pub(super) fn write(&self, node: &dyn Node) -> Result<KeyConfig> {
        match self {
            Self::Static(pair) => {
                let key_file = write_keys(node, pair)?;
                Ok(KeyConfig {
                    lines: String::new(),
                    keys: format!("{{ static: \"{key_file}\" }}"),
                })
            }
            Self::Agreed(agreed) => agreed.write(node),
        }
    }

    /// Writes the files of the KMEs and returns their configuration's path; `None` if there are
    /// none.
    pub(super) fn write_kmes(&self, node: &dyn Node) -> Result<Option<String>> {
        match self {
            Self::Agreed(agreed) => agreed
                .qkd
                .as_ref()
                .map(|qkd| qkd.write_kmes(node))
                .transpose(),
            Self::Static(_) => Ok(None),
        }
    }
}

impl Agreed {
    fn make(keys: KeySource, every: Duration, kmes: [Ipv4Addr; 2]) -> Result<Self, String> {
        let text = |error: CertificateError| error.to_string();
        let authority = Authority::generate().map_err(text)?;
        // One secret for both gateways, which know it by the same identity.
        let ppk = if keys.has_ppk() {
            Some(keying::ppk_text().map_err(|error| error.to_string())?)
        } else {
            None
        };
        let qkd = if keys.has_qkd() {
            Some(Qkd::make(kmes).map_err(text)?)
        } else {
            None
        };
        Ok(Self {
            keys,
            every,
            gateways: certificates(&authority).map_err(text)?,
            authority: authority.certificate().to_owned(),
            ppk,
            qkd,
        })
    }

    fn write(&self, node: &dyn Node) -> Result<KeyConfig> {
        let (own, peer) = names(node.id());
        let side = side(node.id());
        let public = |name: &str, text: &str| write_file(node, name, text, false);
        let secret = |name: &str, text: &str| write_file(node, name, text, true);
        let ca = public("ca.pem", &self.authority)?;
        let certificate = public(&format!("{own}.pem"), &self.gateways[side].certificate)?;
        let key = secret(&format!("{own}.key"), &self.gateways[side].key)?;
        let mut lines = format!(
            "identity: {{ certificate: \"{certificate}\", key: \"{key}\", ca: \"{ca}\" }}\n"
        );
        let every = self.every.as_millis();
        // The certificates have these names.
        let agreement = match self.keys.proposal() {
            Some(proposal) => {
                format!("ike: {{ identity: {own}, peer: {peer}, proposals: {proposal}")
            }
            None => {
                let policy = self.keys.policy().unwrap_or_default();
                format!("handshake: {{ peer: {peer}, policy: {policy}")
            }
        };
        let mut keys = format!("{{ {agreement}, every: {every} ms");
        if let Some(ppk) = &self.ppk {
            let file = secret(&format!("{own}.ppk"), ppk)?;
            let id = KeySource::PPK;
            keys.push_str(&format!(", ppk: [{{ id: {id}, file: \"{file}\" }}]"));
        }
        if let Some(qkd) = &self.qkd {
            let ca = public("kme-ca.pem", &qkd.authority)?;
            let certificate = public("sae.pem", &qkd.saes[side].certificate)?;
            let key = secret("sae.key", &qkd.saes[side].key)?;
            let url = format!("https://{}:{}", qkd.addresses[side], KME_PORTS[side]);
            lines.push_str(&format!(
                "qkd: {{ kme: \"{url}\", sae: {own}, certificate: \"{certificate}\", key: \"{key}\", \
                 ca: \"{ca}\" }}\n"
            ));
            keys.push_str(&format!(", sae: {peer}"));
        }
        keys.push_str(" } }");
        Ok(KeyConfig { lines, keys })
    }
}

impl Qkd {
    fn make(addresses: [Ipv4Addr; 2]) -> Result<Self, CertificateError> {
        // Another authority than the gateways': a KME must not accept the certificate of a tunnel.
        let authority = Authority::generate()?;
        let kme = |side: usize| {
            authority.issue_at(KMES[side], addresses[side].into(), days_from_now(DAYS))
        };
        Ok(Self {
            addresses,
            kmes: [kme(0)?, kme(1)?],
            saes: certificates(&authority)?,
            authority: authority.certificate().to_owned(),
        })
    }

    fn write_kmes(&self, node: &dyn Node) -> Result<String> {
        let ca = write_file(node, "kme-ca.pem", &self.authority, false)?;
        let mut config = "kmes:\n".to_owned();
        for (side, (name, texts)) in KMES.into_iter().zip(&self.kmes).enumerate() {
            let certificate = write_file(node, &format!("{name}.pem"), &texts.certificate, false)?;
            let key = write_file(node, &format!("{name}.key"), &texts.key, true)?;
            let listen = format!("{}:{}", self.addresses[0], KME_PORTS[side]);
            let sae = GATEWAYS[side].name();
            config.push_str(&format!(
                "  - {{ name: {name}, listen: \"{listen}\", certificate: \"{certificate}\", \
                 key: \"{key}\", ca: \"{ca}\", saes: {sae} }}\n"
            ));
        }
        config.push_str(&format!("faults: \"{KME_FAULTS}\"\n"));
        write_file(node, "kme.yaml", &config, false)
    }
}

/// The gateways, in the order of all pairs here.
const GATEWAYS: [NodeId; 2] = [NodeId::Gw1, NodeId::Gw2];

/// A gateway's index in pairs.
fn side(id: NodeId) -> usize {
    usize::from(id == NodeId::Gw2)
}

/// Names of a gateway and of its peer.
fn names(id: NodeId) -> (&'static str, &'static str) {
    let side = side(id);
    (GATEWAYS[side].name(), GATEWAYS[1 - side].name())
}

/// Issues a certificate for each gateway, in its name.
fn certificates(authority: &Authority) -> Result<[Texts; 2], CertificateError> {
    // In the name of the gateway, by which its peer expects it.
    let [first, second] = GATEWAYS.map(|id| authority.issue(id.name(), days_from_now(DAYS)));
    Ok([first?, second?])
}
