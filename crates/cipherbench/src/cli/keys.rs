//! The command line of `keys`.

use super::value::whole;
use clap::Subcommand;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make two static key files, one for each end of a tunnel
    ///
    /// For labs and tests: static keys give no forward secrecy. Both files are secret.
    Static {
        /// File for one end
        a: PathBuf,
        /// File for the other end
        b: PathBuf,
    },
    /// Make a certificate authority: `ca.pem`, which every gateway needs, and `ca.key`
    ///
    /// Anyone who holds `ca.key` can impersonate any gateway: keep it away from gateways, and make
    /// certificates where it is.
    Authority {
        /// Folder for both files
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Make a gateway's certificate and key: `NAME.pem` and `NAME.key`
    ///
    /// Peers identify the gateway by that name. There is no revocation: a certificate is trusted
    /// until it expires.
    Certificate {
        /// Name of the gateway: lower-case letters, digits, `-` and `.`
        name: String,
        /// Folder of the authority that `keys authority` made
        #[arg(long, value_name = "DIR")]
        authority: PathBuf,
        /// Folder for both files
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
        /// Validity in days
        #[arg(long, value_name = "N", default_value_t = pki::CERTIFICATE_DAYS)]
        #[arg(value_parser = whole::<u32>(1, pki::DAYS_MAX.into()))]
        days: u32,
    },
    /// Make a post-quantum pre-shared key (PPK, RFC 8784), for both ends of a tunnel
    ///
    /// It is mixed into all keys of the tunnel. Both files are secret and identical.
    Ppk {
        /// File for one end
        file: PathBuf,
        /// File for the other end; without it, copy the first to the peer
        other: Option<PathBuf>,
    },
    /// Make the keys that sign and verify runs: `FILE`, which is secret, and `FILE.pub`
    ///
    /// In the format of minisign, without a password: `minisign -G` makes one with it.
    Signing {
        /// File for the secret key
        file: PathBuf,
    },
}
