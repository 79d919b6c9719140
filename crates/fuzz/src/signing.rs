//! Lists of signed files, signatures and public keys of runs.

use minisign::{PublicKeyBox, SignatureBox};
use signing::{Changes, Manifest, PublicKey};

/// Any text is a list of files that survives a round trip, or an error; any text is a signature and
/// a key, or an error.
pub(crate) fn body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(list) = Manifest::parse(text) {
        let again = Manifest::parse(&list.text()).expect("the text of a list is a list");
        assert_eq!(again, list);
        assert_eq!(list.changes(&again), Changes::default());
    }
    // A reader of runs gets these files from strangers.
    let _ = SignatureBox::from_string(text);
    let _ = PublicKeyBox::from(text.to_owned()).into_public_key();
    // The text of a key is short, and never the name of a file here.
    if text.len() == 56 && text.starts_with("RW") && !text.contains('/') {
        let _ = PublicKey::of(text);
    }
}
