//! Provenance of the test vectors.

use super::{files, read, root};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The rows of the table of versions, licences and hashes in `vectors/README.md`, by file.
fn provenance() -> BTreeMap<String, [String; 3]> {
    let readme = read(Path::new("vectors/README.md"));
    let (_, table) = readme
        .split_once("| File | Version of the origin | Licence | SHA-256 |")
        .expect("the table");
    let rows = table
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with('|'));
    let rows = rows.filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [file, version, licence, hash] = cells[..] else {
            panic!("not four cells: {line}");
        };
        let word = |text: &str| text.trim_matches('`').to_owned();
        (
            word(file),
            [version.to_owned(), licence.to_owned(), word(hash)],
        )
    })
    .collect()
}

#[test]
fn every_vector_has_its_origin_version_licence_and_hash() {
    let readme = read(Path::new("vectors/README.md"));
    let mut provenance = provenance();
    let vectors = files().into_iter().filter(|path| {
        path.starts_with("vectors") && path.extension().is_some_and(|end| end == "txt")
    });
    let mut wrong = Vec::new();
    for path in vectors {
        let name = path.strip_prefix("vectors").expect("in the folder");
        let name = name.to_str().expect("a plain name");
        let bytes = fs::read(root().join(&path)).expect("a readable file");
        let hash = base16ct::lower::encode_string(&Sha256::digest(bytes));
        match provenance.remove(name) {
            Some([version, licence, stated]) => {
                if stated != hash {
                    wrong.push(format!("{name}: the hash is {hash}"));
                }
                if version.is_empty() || licence.is_empty() {
                    wrong.push(format!("{name}: no version or licence"));
                }
            }
            None => wrong.push(format!("{name}: not in the table of hashes")),
        }
        if !readme.contains(&format!("| `{name}` | ")) {
            wrong.push(format!("{name}: no origin"));
        }
    }
    wrong.extend(
        provenance
            .keys()
            .map(|name| format!("{name}: no such file")),
    );
    assert!(wrong.is_empty(), "vectors/README.md: {wrong:#?}");
}
