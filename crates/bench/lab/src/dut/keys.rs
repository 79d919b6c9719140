//! Key files on stations: made for one start of one DUT, in file systems that go with the stations.

use keying::FileTexts;
use std::fs::File;
use std::io::Read;
use testbed::protocol::{Request, Response};
use testbed::{LabError, Node, NodeId, Result};

/// Returns the texts of a fresh pair of key files, for A's side and B's side.
pub(super) fn fresh_pair(dut: &str) -> Result<[FileTexts; 2]> {
    // In memory: a run that is killed meanwhile leaves no file with keys.
    keying::pair_texts().map_err(|error| LabError::dut(dut, format!("got no keys: {error}")))
}

/// Writes a node's half of a pair, with its epoch file next to it, readable by the owner only;
/// returns the key file's path.
pub(super) fn write_keys(node: &dyn Node, [a, b]: &[FileTexts; 2]) -> Result<String> {
    let id = node.id();
    let keys = match id {
        NodeId::Gw2 | NodeId::B => b,
        _ => a,
    };
    let name = format!("{}.key", id.name());
    // The reader of a key file finds the epochs next to it, by its name with `.epoch`.
    let key_file = write_file(node, &name, &keys.key, true)?;
    write_file(node, &format!("{name}.epoch"), &keys.epochs, true)?;
    Ok(key_file)
}

/// Returns `bytes` random bytes in hexadecimal.
pub(super) fn random_hex(dut: &str, bytes: usize) -> Result<String> {
    let mut random = vec![0; bytes];
    let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    filled.map_err(|error| LabError::dut(dut, format!("got no random secret: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file into a node's private folder; returns its path.
pub(super) fn write_file(
    node: &dyn Node,
    name: &str,
    content: &str,
    secret: bool,
) -> Result<String> {
    let (name, content) = (name.to_owned(), content.to_owned());
    match node.call(Request::WriteFile {
        name,
        content,
        secret,
    })? {
        Response::Written { path } => Ok(path),
        other => Err(node.unexpected(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::random_hex;

    #[test]
    fn random_secrets_have_the_requested_length_and_differ() {
        let [one, other] = [32, 32].map(|bytes| random_hex("dut", bytes).unwrap());
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
    }
}
