//! Whether an installed nats-server is new enough for a fleet.

use std::path::Path;
use std::process::{Command, Stdio};

/// The oldest usable version: older ones refuse settings of a fleet's configuration
/// (`sync_interval: always`).
const OLDEST: [u32; 2] = [2, 10];

/// Returns why the version of an installed server is not usable; `None` if it is, or if the server
/// does not report it.
pub(super) fn problem(program: &Path) -> Option<String> {
    let said = Command::new(program)
        .arg("-v")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    too_old(&String::from_utf8_lossy(&said.stdout))
}

/// Parses text like `nats-server: v2.9.10`.
fn too_old(said: &str) -> Option<String> {
    let (_, version) = said.trim().rsplit_once('v')?;
    let mut numbers = version.split('.').map(str::parse);
    let found: [u32; 2] = [numbers.next()?.ok()?, numbers.next()?.ok()?];
    let [major, minor] = OLDEST;
    (found < OLDEST).then(|| {
        format!("it is version {version}, which lacks settings that a fleet needs; needed is {major}.{minor} or newer")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_debian_12_is_too_old() {
        let problem = too_old("nats-server: v2.9.10\n").unwrap();
        assert!(problem.contains("version 2.9.10"), "{problem}");
        for said in [
            "nats-server: v2.10.0\n",
            "nats-server: v2.15.1\n",
            "",
            "v",
            "nats",
        ] {
            assert_eq!(too_old(said), None, "{said}");
        }
    }
}
