//! Secrets of one start: random keys, or a certificate for each gateway by an authority that
//! discards its key immediately.

use crate::dut::Site;
use crate::dut::keys::random_hex;
use crate::secret_file;
use plan::{IkeAuth, IkePeer, IkeSecrets, StrongSwan};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{LabError, NodeId, Result};

/// How long `openssl` may take for three keys.
const OPENSSL_LIMIT: Duration = Duration::from_secs(20);

/// Longer than any chain of certificates in PEM.
const PEM_BYTES_MAX: usize = 1 << 20;
/// Bytes of each random secret.
const SECRET_BYTES: usize = 32;

/// Creates an authority and two certificates in a temporary folder, prints them and removes the
/// folder.
const SCRIPT: &str = "
folder=$(mktemp -d /run/pki.XXXXXX)
trap 'rm -rf \"$folder\"' EXIT
cd \"$folder\"
cat > config
make() {
    openssl req -x509 -config config -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \"$@\"
}
{
    make -extensions ca -subj '/CN=Cipherbench' -keyout ca.key -out ca.crt
    for name in gw1 gw2; do
        make -extensions $name -subj /CN=$name -CA ca.crt -CAkey ca.key -keyout $name.key -out $name.crt
    done
} 2> errors || { cat errors >&2; exit 1; }
cat ca.crt gw1.key gw1.crt gw2.key gw2.crt
";

/// Extensions of each certificate.
const OPENSSL_CONFIG: &str = "
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[gw1]
subjectAltName = DNS:gw1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[gw2]
subjectAltName = DNS:gw2
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
";

/// Credentials of the gateways. Deliberately not `Debug`.
#[derive(Default)]
pub(super) struct Secrets {
    /// Pre-shared key, in hexadecimal.
    pub(super) psk: String,
    /// Post-quantum pre-shared key (RFC 8784), in hexadecimal.
    pub(super) ppk: String,
    /// The authority's certificate, in PEM; empty without certificates.
    authority: String,
    /// Key and certificate of each node, in PEM.
    own: BTreeMap<NodeId, [String; 2]>,
}

impl Secrets {
    /// The authority's name.
    pub(super) const AUTHORITY: &'static str = "CN=Cipherbench";

    /// Creates fresh secrets; certificates only if the plan needs them.
    pub(super) fn fresh(plan: &StrongSwan, site: &Site<'_>) -> Result<Self> {
        Ok(Self {
            psk: random_hex(site.dut, SECRET_BYTES)?,
            ppk: random_hex(site.dut, SECRET_BYTES)?,
            ..match plan.auth {
                IkeAuth::Psk => Self::default(),
                IkeAuth::Certificates => certificates(site)?,
            }
        })
    }

    /// Reads the user's secrets for the station that is the peer of an external gateway.
    pub(super) fn of_files(dut: &str, peer: &IkePeer) -> Result<Self> {
        // In hexadecimal no character of a secret needs quotation marks.
        let hex = |file: &Path| {
            // Editors end a file with a newline, which is no part of the secret.
            let line = secret_file::first_line(file);
            let line = line.map_err(|reason| LabError::unread_secret(dut, &reason))?;
            Ok::<String, LabError>(base16ct::lower::encode_string(line.as_bytes()))
        };
        let pem = |file: &Path| {
            let name = file.display();
            let not_read = |error| LabError::dut(dut, format!("needs {name}: {error}"));
            guard::read_text(file, PEM_BYTES_MAX).map_err(not_read)
        };
        let mut secrets = Self::default();
        match &peer.auth {
            IkeSecrets::Psk(file) => secrets.psk = hex(file)?,
            IkeSecrets::Certificates {
                authority,
                certificate,
                key,
            } => {
                secrets.authority = pem(authority)?;
                let key = secret_file::read(key);
                let key = key.map_err(|reason| LabError::unread_secret(dut, &reason))?;
                let own = [key.to_string(), pem(certificate)?];
                // Only station B can be the peer of an external gateway.
                secrets.own.insert(NodeId::B, own);
            }
        }
        if let Some((file, _)) = &peer.ppk {
            secrets.ppk = hex(file)?;
        }
        Ok(secrets)
    }

    /// Returns a gateway's files: the authority's certificate, the gateway's key and certificate;
    /// empty without certificates.
    pub(super) fn files(&self, id: NodeId) -> Vec<(&'static str, &str)> {
        let Some([key, certificate]) = self.own.get(&id) else {
            return Vec::new();
        };
        vec![
            ("ca.crt", &self.authority),
            ("own.key", key),
            ("own.crt", certificate),
        ]
    }
}

fn certificates(site: &Site<'_>) -> Result<Secrets> {
    // On one gateway, because the key of the authority does not leave the script.
    let node = site.gateways[0];
    let program = Program::new(["sh", "-euc", SCRIPT]).with_input(OPENSSL_CONFIG);
    let ended = node.run(program, OPENSSL_LIMIT)?;
    // Two gateways with key and certificate, and the authority's certificate.
    let pems = <[String; 5]>::try_from(pems(&ended.stdout));
    if let (Some(0), Ok([authority, key1, certificate1, key2, certificate2])) = (ended.code, pems) {
        let own = [
            (NodeId::Gw1, [key1, certificate1]),
            (NodeId::Gw2, [key2, certificate2]),
        ];
        return Ok(Secrets {
            authority,
            own: own.into(),
            ..Secrets::default()
        });
    }
    // Its standard output contains keys.
    let said = ended.stderr.trim();
    let reason = format!(
        "got no certificates: `openssl req` failed ({}): {said}\n\
         help: install OpenSSL 3, on Debian and Ubuntu: sudo apt install openssl; or set `auth: psk`",
        ended.how()
    );
    Err(site.error(reason))
}

/// Returns the PEM blocks of a text, each with its final newline.
fn pems(text: &str) -> Vec<String> {
    let mut pems: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("-----BEGIN ") {
            pems.push(String::new());
        }
        if let Some(pem) = pems.last_mut() {
            pem.push_str(line);
            pem.push('\n');
        }
    }
    pems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_blocks_are_split() {
        let text =
            "-----BEGIN A-----\nxx\n-----END A-----\n-----BEGIN B-----\nyy\n-----END B-----\n";
        let expected = [
            "-----BEGIN A-----\nxx\n-----END A-----\n",
            "-----BEGIN B-----\nyy\n-----END B-----\n",
        ];
        assert_eq!(pems(text), expected);
        assert!(pems("").is_empty());
    }
}
