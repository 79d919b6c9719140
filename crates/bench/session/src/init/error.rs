//! Why no files were written.

use pki::CertificateError;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use yaml::Mistakes;

/// Why no files were written.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Files would be overwritten.
    #[error(
        "{}\nhelp: `--force` overwrites, `{flag}` names another place; nothing was written",
        existing(paths)
    )]
    Exists {
        /// The files.
        paths: Vec<PathBuf>,
        /// The option that names another place.
        flag: &'static str,
    },
    /// A file or folder cannot be created.
    #[error(
        "cannot write {}: {source}\nhelp: {}; nothing was written",
        path.display(),
        help(source, flag)
    )]
    NotWritten {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// The option that names another place.
        flag: &'static str,
    },
    /// The answers make no valid file.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// No certificate could be created.
    #[error("{0}\nhelp: nothing was written")]
    Certificate(#[from] CertificateError),
    /// Fewer than two programs.
    #[error(
        "one program alone is not compared with any other\nhelp: name two or more, such as \
         `--programs ours,wireguard-go`; nothing was written"
    )]
    OneProgram,
    /// The peer is this host.
    #[error(
        "{0} is the address of both ends\nhelp: name the other host with `--peer` and this one with `--local`; \
         nothing was written"
    )]
    SameAddress(IpAddr),
    /// This host has no route to the peer.
    #[error(
        "this host has no address towards {peer}: {source}\nhelp: name it with `--local ADDRESS`; nothing was written"
    )]
    NoAddress {
        /// The peer.
        peer: IpAddr,
        /// Why.
        source: io::Error,
    },
}

fn existing(paths: &[PathBuf]) -> String {
    let names: Vec<_> = paths.iter().map(|it| it.display().to_string()).collect();
    let verb = if names.len() == 1 { "exists" } else { "exist" };
    format!("{} {verb} already", names.join(", "))
}

fn help(error: &io::Error, flag: &str) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!("create its folder, or name another place with `{flag}`")
        }
        _ => format!("name another place with `{flag}`, or see its owner, its mode and the disk"),
    }
}
