//! Lists of pre-shared keys.

use super::declared::PPK;
use super::types::Ppk;
use keying::chain::is_id;
use keying::message::LINKS_MAX;
use std::path::{Path, PathBuf};
use yaml::{Node, Reported};

/// Reads `ppk`.
pub(super) fn ppks(node: Node<'_>, folder: &Path) -> Result<Vec<Ppk>, Reported> {
    let mut ids: Vec<String> = Vec::new();
    let ppks = node.list(|node| {
        node.keys(PPK, |map| {
            let id = map.required("id").and_then(|node| {
                let id = node.text()?;
                if !is_id(id) {
                    return Err(node.mistake(
                        "this is not a valid PPK id",
                        "use 1 to 255 bytes without control characters",
                    ));
                }
                if ids.iter().any(|other| other == id) {
                    return Err(node.mistake(
                        format!("the PPK `{id}` is in the list twice"),
                        "name each once",
                    ));
                }
                ids.push(id.to_owned());
                Ok(id.to_owned())
            });
            let file = map.get::<PathBuf>("file");
            let optional = map.get("optional");
            Ok(Ppk {
                id: id?,
                file: folder.join(file?),
                optional: optional?,
            })
        })
    })?;
    if ppks.len() > LINKS_MAX {
        return Err(node.mistake(
            format!("{} PPKs are too many", ppks.len()),
            format!("name at most {LINKS_MAX}"),
        ));
    }
    Ok(ppks)
}
