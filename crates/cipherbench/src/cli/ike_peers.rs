//! The command line of `ike-peers`.

use super::value::{long_duration, whole};
use clap::{Args, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct IkePeers {
    /// The gateway's address
    #[arg(value_name = "GATEWAY", required_unless_present_any = ["spec", "station"])]
    pub(crate) gateway: Option<IpAddr>,
    #[command(flatten)]
    pub(crate) peers: Peers,
    /// Play the spec of this file, JSON, instead of the options; docs/ike.md has one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gateway", "Peers"])]
    pub(crate) spec: Option<PathBuf>,
    /// Play the spec on standard input, and print progress and the report as lines
    #[arg(long, hide = true, conflicts_with_all = ["gateway", "spec", "Peers", "json", "out", "quiet"])]
    pub(crate) station: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write the report as JSON into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[group(id = "Peers", multiple = true)]
pub(crate) struct Peers {
    /// Number of peers
    #[arg(long = "peers", value_name = "N", default_value_t = 100, value_parser = whole::<u32>(1, 100_000))]
    pub(crate) number: u32,
    /// Set-ups per second, offered whether earlier ones are over or not
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(1, 1_000_000))]
    pub(crate) rate: u32,
    /// Authentication of both ends: `psk:FILE`, a shared key, in which `{n}` stands for the peer's
    /// number as in `--identity`; or `certificates:DIR`, the folder of `keys authority`, which
    /// issues the peers' certificates
    #[arg(long, value_name = "METHOD", required_unless_present_any = ["spec", "station"])]
    pub(crate) auth: Option<String>,
    /// Authorities of the gateway's certificate, PEM [default: the folder's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) trusted: Option<PathBuf>,
    /// A post-quantum pre-shared key (RFC 8784), as text
    #[arg(long, value_name = "IDENTITY:FILE")]
    pub(crate) ppk: Option<String>,
    /// Refuse a gateway that does not use the PPK
    #[arg(long, requires = "ppk")]
    pub(crate) ppk_required: bool,
    /// Cipher, pseudo-random function and key exchanges, such as
    /// `aes256gcm16-prfsha384-x25519-ke1_mlkem768`
    #[arg(
        long,
        value_name = "SUITE",
        default_value = "aes256gcm16-prfsha384-x25519"
    )]
    pub(crate) proposal: String,
    /// Each peer's identity; `{n}` stands for its number
    #[arg(long, value_name = "NAME", default_value = "peer-{n}.example")]
    pub(crate) identity: String,
    /// The gateway's identity [default: any that its authentication is valid for]
    #[arg(long, value_name = "NAME")]
    pub(crate) gateway_identity: Option<String>,
    /// The peers' addresses, which must lead to this host: a network, with an address per peer on
    /// ports 500 and 4500; or an address, with a port per peer as behind a NAT [default: this
    /// host's]
    #[arg(long, value_name = "ADDRESS[/PREFIX]")]
    pub(crate) from: Option<String>,
    /// Ports of the peers, with one address
    #[arg(long, value_name = "FIRST-LAST", default_value = "10000-65535")]
    pub(crate) ports: String,
    /// The address behind the first peer, from which those behind the others follow
    #[arg(long, value_name = "ADDRESS", default_value = "10.2.0.0")]
    pub(crate) local: IpAddr,
    /// The network behind the gateway, which may narrow it
    #[arg(long, value_name = "NETWORK", default_value = "0.0.0.0/0")]
    pub(crate) remote: String,
    /// Set up IKE SAs without child SAs, where the gateway supports that
    #[arg(long)]
    pub(crate) childless: bool,
    /// The gateway's port of first messages
    #[arg(long, value_name = "PORT", default_value_t = 500, value_parser = whole::<u16>(1, 65_535))]
    pub(crate) port: u16,
    /// The gateway's port that IKE shares with ESP
    #[arg(long, value_name = "PORT", default_value_t = 4500, value_parser = whole::<u16>(1, 65_535))]
    pub(crate) nat_port: u16,
    /// What the peers do
    #[arg(long, value_name = "LOAD", value_enum, default_value_t = PeersLoad::Setup)]
    pub(crate) load: PeersLoad,
    /// How long peers of `concurrent` stay up, set-ups of `churn` and requests of `half-open` go
    /// on, and rekeyings take together
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = long_duration)]
    pub(crate) duration: Duration,
    /// With `churn`: time from a set-up to its delete
    #[arg(long, value_name = "TIME", default_value = "5 s", value_parser = long_duration)]
    pub(crate) lifetime: Duration,
    /// Time after which a set-up has failed: its requests are repeated until then
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = long_duration)]
    pub(crate) patience: Duration,
    /// Do not delete the SAs at the end
    #[arg(long)]
    pub(crate) keep: bool,
}

/// What the peers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeersLoad {
    /// Each is set up once
    Setup,
    /// All are set up, then stay up, and check that the gateway lives
    Concurrent,
    /// All begin at the same time
    Storm,
    /// Peers are set up, deleted and set up again
    Churn,
    /// First requests alone, which leave half-open IKE SAs
    HalfOpen,
    /// All are set up, then replace their IKE SAs
    RekeyIke,
    /// All are set up, then replace their child SAs
    RekeyChild,
}
