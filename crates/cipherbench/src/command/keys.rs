//! `cipherbench keys`: key files and certificates.

use crate::cli::Keys;
use crate::exit::{Exit, Failure};
use crate::output;
use std::path::Path;

pub(crate) fn keys(keys: &Keys) -> Result<Exit, Failure> {
    let text = match keys {
        // The messages name what must leave this machine: a pair of keys in one place protects
        // nothing.
        Keys::Static { a, b } => {
            keying::create_pair(a, b).map_err(wrong)?;
            format!(
                "made {} and {}, each with its epoch file; both hold the same secret: \
                 copy one to the peer over a secure channel, and delete it here\n",
                a.display(),
                b.display()
            )
        }
        Keys::Authority { folder } => {
            let made = pki::create_authority(folder).map_err(wrong)?;
            format!(
                "made {}, which every gateway needs, and {}, which makes certificates: \
                 keep that where no gateway is\n",
                made.certificate.display(),
                made.key.display()
            )
        }
        Keys::Certificate {
            name,
            authority,
            out,
            days,
        } => {
            let made = pki::create_certificate(authority, name, out, *days).map_err(wrong)?;
            format!(
                "made {} and {}, good for {days} days; the gateway needs both, and {}\n",
                made.certificate.display(),
                made.key.display(),
                authority.join(pki::AUTHORITY_CERTIFICATE).display()
            )
        }
        Keys::Signing { file } => {
            let (public, text) = signing::create_keys(file).map_err(wrong)?;
            format!(
                "made {}, which signs: keep it, and {}, which verifies: publish it\n{text}\n",
                file.display(),
                public.display()
            )
        }
        Keys::Ppk { file, other } => {
            // Both files are written by one call, so that they hold the same key or neither exists.
            let files: Vec<&Path> = [Some(file), other.as_ref()]
                .into_iter()
                .flatten()
                .map(AsRef::as_ref)
                .collect();
            keying::create_ppk(&files).map_err(wrong)?;
            match other {
                Some(other) => format!(
                    "made {} and {}, the same key: copy one to the peer over a secure channel, and \
                     delete it here\n",
                    file.display(),
                    other.display()
                ),
                None => format!(
                    "made {}: copy it to the peer over a secure channel\n",
                    file.display()
                ),
            }
        }
    };
    output::done(&text)
}

fn wrong(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, error)
}
