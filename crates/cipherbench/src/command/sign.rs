//! `cipherbench sign RUN` and `cipherbench verify RUN`.

use super::given;
use crate::cli::{Sign, Verify};
use crate::exit::{Exit, Failure};
use crate::{output, version};
use journal::time::utc;
use signing::{PublicKey, SecretKey};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn sign(arguments: &Sign) -> Result<Exit, Failure> {
    let Sign { run, key, force } = arguments;
    let dir = &given::folder_of(run)?;
    let key = SecretKey::read(key).map_err(signing::SigningError::from)?;
    let name = dir.canonicalize().unwrap_or_else(|_| dir.clone());
    let name = name
        .file_name()
        .unwrap_or(name.as_os_str())
        .to_string_lossy();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos() as u64);
    // A line of its own in the signature.
    let name = name.replace(char::is_control, "_");
    let comment = format!("run {name}, {}, cipherbench {}", utc(now), version::short());
    let signed = signing::sign(dir, &key, &comment, *force)?;
    output::done(&signed.text(dir))
}

pub(crate) fn verify(arguments: &Verify) -> Result<Exit, Failure> {
    let Verify { run, key } = arguments;
    let dir = &given::folder_of(run)?;
    let key = key.as_deref().map(PublicKey::of).transpose();
    let key = key.map_err(signing::SigningError::from)?;
    let verified = signing::verify(dir, key.as_ref())?;
    output::stdout(&verified.text())?;
    Ok(if verified.is_good(key.is_some()) {
        Exit::Done
    } else {
        Exit::CriterionFailed
    })
}
