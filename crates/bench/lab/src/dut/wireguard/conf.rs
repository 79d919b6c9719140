//! Keys, and the configuration as `wg setconf` reads it and `wg showconf` prints it.

use super::tool::{wg, wg_with};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use testbed::{Node, Result};

/// A gateway's Curve25519 keys. Not `Debug`: the private one must not be printed.
pub(super) struct KeyPair {
    private: String,
    public: String,
}

impl KeyPair {
    /// Generates a fresh pair on a node.
    pub(super) fn generate(dut: &str, node: &dyn Node) -> Result<Self> {
        let private = wg(dut, node, &["genkey"])?.trim().to_owned();
        let public = wg_with(dut, node, &["pubkey"], format!("{private}\n"))?;
        Ok(Self {
            private,
            public: public.trim().to_owned(),
        })
    }

    pub(super) fn public(&self) -> &str {
        &self.public
    }
}

/// An interface's configuration.
pub(super) struct Conf<'a> {
    pub(super) keys: &'a KeyPair,
    pub(super) port: u16,
    /// Public key of its only peer.
    pub(super) peer_key: &'a str,
    pub(super) endpoint: SocketAddr,
    /// The networks behind the peer, which it may send from.
    pub(super) networks: &'a [String],
}

impl Conf<'_> {
    /// As `wg setconf` reads it.
    pub(super) fn text(&self) -> String {
        let Self {
            keys,
            port,
            peer_key,
            endpoint,
            networks,
        } = self;
        format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {port}\n\n\
             [Peer]\nPublicKey = {peer_key}\nEndpoint = {endpoint}\nAllowedIPs = {}\n",
            keys.private,
            networks.join(", ")
        )
    }

    /// Checks that `wg showconf` prints the same settings, in any order. A private key may be
    /// missing, as with boringtun: that A reaches B shows that it was applied.
    ///
    /// # Errors
    /// With the first key that differs, and both values except of secrets.
    pub(super) fn compare(&self, shown: &str) -> Result<(), String> {
        let written = self.text();
        let (written, shown) = (settings(&written), settings(shown));
        // The settings of both, so that one that was added is found too.
        let names: BTreeSet<_> = written.keys().chain(shown.keys()).collect();
        for name in names {
            let [written, shown] = [&written, &shown].map(|settings| settings.get(name));
            let is_kept_secret = is_secret(name) && shown.is_none();
            if written == shown || is_kept_secret {
                continue;
            }
            if is_secret(name) {
                return Err(format!("`{name}` differs"));
            }
            let [written, shown] = [written, shown].map(|values| match values {
                Some(values) => format!("`{}`", Vec::from_iter(values.iter().copied()).join(", ")),
                None => "nothing".to_owned(),
            });
            return Err(format!("`{name}` is {shown} instead of {written}"));
        }
        Ok(())
    }
}

fn is_secret(name: &str) -> bool {
    ["PrivateKey", "PresharedKey"]
        .iter()
        .any(|secret| name.ends_with(secret))
}

/// Values by section and key (`Peer.AllowedIPs`); a key's several values have no order.
fn settings(text: &str) -> BTreeMap<String, BTreeSet<&str>> {
    let mut settings: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name;
        } else if let Some((key, values)) = line.split_once('=') {
            let name = format!("{section}.{}", key.trim());
            settings
                .entry(name)
                .or_default()
                .extend(values.split(',').map(str::trim));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(shown: &str) -> Result<(), String> {
        let keys = KeyPair {
            private: "own=".to_owned(),
            public: "unused=".to_owned(),
        };
        let networks = ["10.2.0.0/24", "2001:2:0:19::/64"].map(str::to_owned);
        let conf = Conf {
            keys: &keys,
            port: 51820,
            peer_key: "peer=",
            endpoint: "192.0.2.2:51820".parse().unwrap(),
            networks: &networks,
        };
        conf.compare(shown)
    }

    const SHOWN: &str = "[Interface]\nListenPort = 51820\nPrivateKey = own=\n\n[Peer]\n\
                         PublicKey = peer=\nAllowedIPs = 2001:2:0:19::/64, 10.2.0.0/24\n\
                         Endpoint = 192.0.2.2:51820\n";

    #[test]
    fn the_order_of_settings_does_not_matter() {
        assert_eq!(compare(SHOWN), Ok(()));
    }

    #[test]
    fn a_program_may_keep_its_private_key_to_itself() {
        assert_eq!(compare(&SHOWN.replace("PrivateKey = own=\n", "")), Ok(()));
        let without_peer = SHOWN.replace("PublicKey = peer=\n", "");
        assert!(compare(&without_peer).is_err());
    }

    #[test]
    fn what_was_not_taken_over_is_named_with_both_values() {
        let lost = SHOWN.replace(", 10.2.0.0/24", "");
        assert_eq!(
            compare(&lost).unwrap_err(),
            "`Peer.AllowedIPs` is `2001:2:0:19::/64` instead of `10.2.0.0/24, 2001:2:0:19::/64`"
        );
        let added = format!("{SHOWN}PersistentKeepalive = 25\n");
        assert_eq!(
            compare(&added).unwrap_err(),
            "`Peer.PersistentKeepalive` is `25` instead of nothing"
        );
    }

    #[test]
    fn a_private_key_is_in_no_message() {
        let other = SHOWN.replace("own=", "other=");
        assert_eq!(
            compare(&other).unwrap_err(),
            "`Interface.PrivateKey` differs"
        );
    }
}
