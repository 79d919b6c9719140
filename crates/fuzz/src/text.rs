//! Configuration of the encryptor.

use encryptor::Config;
use std::collections::BTreeSet;

/// Any text is a configuration or a list of mistakes that can be displayed.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Config::from_text("fuzz.yaml", text) {
        Ok(config) => {
            assert!(!config.peers.is_empty());
            assert!(config.workers > 0);
            let ids: BTreeSet<_> = config.peers.iter().map(|peer| peer.id).collect();
            assert_eq!(ids.len(), config.peers.len(), "two tunnels of one number");
        }
        Err(mistakes) => {
            let shown = mistakes.to_string();
            assert!(
                shown.contains("fuzz.yaml"),
                "a mistake without a place: {shown}"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_seeds_are_configurations() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/config");
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            if let Err(mistakes) = Config::from_text("seed.yaml", &text) {
                panic!("{}: {mistakes}", path.display());
            }
        }
    }
}
