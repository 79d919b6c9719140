//! Secrets of SNMP agents: read when a device is brought up, and kept nowhere else.

use crate::secret_file;
use plan::Secret;
use std::path::Path;
use zeroize::Zeroizing;

/// Reads a secret: the first line of a file, or an environment variable.
///
/// # Errors
/// The problem, the file or variable, and the fix; never the secret.
pub(super) fn read(secret: &Secret) -> Result<Zeroizing<String>, String> {
    match secret {
        // The same checks as for the other secrets of this machine.
        Secret::File(path) => secret_file::first_line(Path::new(path)),
        Secret::Environment(name) => match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Zeroizing::new(value)),
            _ => Err(format!(
                "the environment variable `{name}` with a secret is not set, or is no text\n\
                 help: `export {name}=…` before the run, and let `sudo` pass it on: `sudo --preserve-env={name}`"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let name = "CIPHERBENCH_NO_SUCH_SECRET".to_owned();
        let error = read(&Secret::Environment(name)).unwrap_err();
        assert!(error.contains("`CIPHERBENCH_NO_SUCH_SECRET`"), "{error}");
    }
}
