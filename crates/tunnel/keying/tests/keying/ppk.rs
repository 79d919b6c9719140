//! PPK files on a real disk.

use keying::{KeyError, PpkFile, create_ppk, ppk_text};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn one_key_is_created_for_both_sides_and_only_its_owner() {
    let folder = testing::folder().unwrap();
    let [one, other, third] = ["a", "b", "c"].map(|name| folder.path().join(name));
    create_ppk(&[&one, &other]).unwrap();
    create_ppk(&[&third]).unwrap();
    for path in [&one, &other, &third] {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }
    let keys = [&one, &other, &third].map(|path| PpkFile::load(path).unwrap().key().clone());
    assert_eq!(keys[0].len(), 32);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], keys[2]);
}

#[test]
fn a_file_is_never_overwritten_and_never_left_incomplete() {
    let folder = testing::folder().unwrap();
    let [one, other] = ["a", "b"].map(|name| folder.path().join(name));
    fs::write(&other, "mine").unwrap();
    let error = create_ppk(&[&one, &other]).unwrap_err();
    assert!(matches!(error, KeyError::NotCreated { .. }), "{error}");
    assert!(
        error
            .to_string()
            .ends_with("(keys are never overwritten: move it away or choose another name)")
    );
    assert!(!one.exists());
    assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
}

#[test]
fn a_file_that_others_may_use_is_refused() {
    let folder = testing::folder().unwrap();
    let path = folder.path().join("alpha.ppk");
    create_ppk(&[&path]).unwrap();
    for mode in [0o640, 0o604, 0o660, 0o601] {
        set_mode(&path, mode);
        let error = PpkFile::load(&path).unwrap_err();
        assert!(matches!(error, KeyError::TooOpen { .. }), "{error}");
        let mend = format!("(chmod 600 {})", path.display());
        assert!(error.to_string().ends_with(&mend), "{error}");
    }
    for mode in [0o600, 0o400] {
        set_mode(&path, mode);
        assert!(PpkFile::load(&path).is_ok());
    }
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    assert!(PpkFile::load(&link).is_ok(), "it may have another name");
}

#[test]
fn an_unreadable_file_is_reported() {
    let folder = testing::folder().unwrap();
    let path = folder.path().join("alpha.ppk");
    let load = |path: &Path| PpkFile::load(path).unwrap_err().to_string();
    assert_eq!(
        load(&path),
        format!(
            "PPK file {} cannot be read: No such file or directory (os error 2) (make one for both \
             sides: cipherbench keys ppk FILE FILE2)",
            path.display()
        )
    );
    assert!(load(folder.path()).ends_with("it is a folder, not a file"));
    let text = ppk_text().unwrap();
    let key = text
        .lines()
        .find_map(|line| line.strip_prefix("key: "))
        .unwrap();
    for wrong in [
        text.replace("key: ", "key: 0x"),
        text.replace("key: ", ""),
        text.replace("encoding: hex", "encoding: base64") + "key: again\n",
        text.repeat(40),
    ] {
        fs::write(&path, &wrong).unwrap();
        set_mode(&path, 0o600);
        let error = PpkFile::load(&path).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(shown.contains("alpha.ppk"), "{shown}");
        for piece in key.as_bytes().chunks(8) {
            assert!(!shown.contains(str::from_utf8(piece).unwrap()), "{shown}");
        }
    }
}
