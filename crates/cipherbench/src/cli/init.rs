//! The command line of `init`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use session::init::{BOXES, BoxTexts, Choice, PROGRAMS, Program, SUBJECTS, Subject};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Init {
    /// Write a campaign: what to measure, with a comment for each key
    ///
    /// With `--what box` it also writes the lab of the two ports, FILE with `-lab` in its name.
    Campaign(InitCampaign),
    /// Write a lab of two ports of this machine, or of two hosts with a cable between them
    ///
    /// Shows the interfaces of this machine, and why some of them are not offered.
    Lab(InitLab),
    /// Write both ends of an encrypted tunnel: configurations, certificates and keys
    ///
    /// The one end, gw1, is this host, the other, gw2, the peer. Prints the commands that copy and
    /// start each end.
    Gateway(InitGateway),
}

/// Selects one of several choices by its word.
fn one_of<T: Sync>(
    known: &'static [Choice<T>],
) -> impl TypedValueParser<Value = &'static Choice<T>> {
    let values = known
        .iter()
        .map(|choice| PossibleValue::new(choice.word).help(choice.what));
    PossibleValuesParser::new(values).map(move |word| {
        let mut known = known.iter();
        known
            .find(|choice| choice.word == word)
            .expect("clap has refused all other words")
    })
}

#[derive(Debug, Args)]
pub(crate) struct InitCampaign {
    /// What to measure
    #[arg(long, value_parser = one_of(&SUBJECTS))]
    pub(crate) what: Option<&'static Choice<Subject>>,
    /// Write a campaign of a few minutes, not a long one with a short form
    #[arg(long)]
    pub(crate) quick: bool,
    /// What is between the two ports [default: pair]
    #[arg(long = "box", value_name = "KIND", value_parser = one_of(&BOXES))]
    pub(crate) kind: Option<&'static Choice<BoxTexts>>,
    /// The two ports of this machine: station A's, then station B's
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pub(crate) ports: Option<[String; 2]>,
    /// The programs to compare [default: ours and those that are installed]
    #[arg(long, value_delimiter = ',', value_parser = one_of(&PROGRAMS))]
    pub(crate) programs: Vec<&'static Choice<Program>>,
    #[command(flatten)]
    pub(crate) device: InitDevice,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The crypto device of a campaign; without any of these OpenSSL as it is here.
#[derive(Debug, Args)]
pub(crate) struct InitDevice {
    /// The device: a token behind this PKCS#11 module
    #[arg(long, value_name = "FILE", group = "device")]
    pub(crate) pkcs11: Option<String>,
    /// The token by its label
    #[arg(long, value_name = "LABEL", requires = "pkcs11")]
    pub(crate) token: Option<String>,
    /// File with nothing but the token's PIN [default: /etc/cipherbench/token.pin]
    #[arg(long, value_name = "FILE", requires = "pkcs11")]
    pub(crate) pin_file: Option<String>,
    /// The device: this provider of OpenSSL
    #[arg(long, value_name = "NAME", group = "device")]
    pub(crate) provider: Option<String>,
    /// The device: this engine of OpenSSL
    #[arg(long, value_name = "NAME", group = "device")]
    pub(crate) engine: Option<String>,
    /// File of the provider or engine, if it is not where OpenSSL looks
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "pkcs11",
        requires = "device"
    )]
    pub(crate) module: Option<String>,
}

/// Where a file is written.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// File to write [default: campaign.yaml or lab.yaml]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitLab {
    /// The two ports: station A's, then station B's; with `--hosts` one of each host
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pub(crate) ports: Option<[String; 2]>,
    /// Two hosts: each a name for `ssh`, such as root@192.0.2.11, a whole command prefix, or `here`
    #[arg(long, value_name = "A,B", value_parser = pair)]
    pub(crate) hosts: Option<[String; 2]>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct InitGateway {
    /// Address of the peer
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Option<IpAddr>,
    /// Address of this host [default: the one that packets to the peer have]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) local: Option<IpAddr>,
    /// Network behind this host, such as 10.1.0.0/24 [default: only this host uses the tunnel]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) network: Option<String>,
    /// Network behind the peer [default: only the peer uses the tunnel]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) peer_network: Option<String>,
    /// Folder for the files of both ends
    #[arg(long, value_name = "DIR", default_value = "gateways")]
    pub(crate) folder: PathBuf,
    /// Overwrite files, keys too
    #[arg(long)]
    pub(crate) force: bool,
}

/// Two names with a comma between them.
fn pair(text: &str) -> Result<[String; 2], String> {
    let names: Vec<_> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let names: Result<[String; 2], _> = names.try_into();
    let named = names
        .ok()
        .filter(|names| names.iter().all(|name| !name.is_empty()));
    named.ok_or_else(|| "write two names with a comma between them: `eth1,eth2`".to_owned())
}
