//! Key files that another program replaces, or that others may write, against the promise that no
//! nonce repeats.

use guard::Writers;
use keying::{KeyError, KeyFile, PpkFile, StaticKeys, create_pair, create_ppk};
use std::collections::HashSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use wire::Suite;

/// A folder with a pair of key files, closed to others.
fn pair() -> (tempfile::TempDir, PathBuf) {
    let folder = testing::folder().unwrap();
    let (a, b) = (folder.path().join("a.key"), folder.path().join("b.key"));
    create_pair(&a, &b).unwrap();
    (folder, a)
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

/// Puts an identical copy in the place of a file, as `cp -p FILE COPY && mv COPY FILE` does.
fn replace_by_copy(path: &Path) {
    let copy = with(path, ".copy");
    fs::copy(path, &copy).unwrap();
    fs::set_permissions(&copy, fs::metadata(path).unwrap().permissions()).unwrap();
    fs::rename(&copy, path).unwrap();
}

/// The SPIs that an end seals with, each of which starts with sequence number 1.
fn draw(keys: &mut StaticKeys, used: &mut Vec<u32>) -> Result<(), KeyError> {
    keys.draw_epoch()?;
    used.push(keys.outbound(Suite::Aes256Gcm, 0).spi);
    Ok(())
}

#[test]
fn no_pair_of_spi_and_sequence_number_is_used_twice_after_files_were_replaced() {
    let mut used = Vec::new();
    for replaced in [
        &[""][..],
        &[".epoch"],
        &["", ".epoch"],
        &[".lock"],
        &["", ".lock"],
    ] {
        let (_folder, path) = pair();
        let mut spis = Vec::new();
        let mut first = StaticKeys::open(&path).unwrap();
        spis.push(first.outbound(Suite::Aes256Gcm, 0).spi);
        for suffix in replaced {
            replace_by_copy(&with(&path, suffix));
        }
        // Another process of the same user, on another port.
        let mut second = match StaticKeys::open(&path) {
            Ok(mut keys) => {
                spis.push(keys.outbound(Suite::Aes256Gcm, 0).spi);
                Some(keys)
            }
            Err(KeyError::InUse { .. }) => None,
            Err(error) => panic!("{replaced:?}: {error}"),
        };
        for _ in 0..5 {
            let refused = draw(&mut first, &mut spis).unwrap_err();
            assert!(matches!(refused, KeyError::Replaced { .. }), "{refused}");
            if let Some(second) = &mut second {
                draw(second, &mut spis).unwrap();
            }
        }
        // Restarted, it counts on.
        drop((first, second));
        let mut again = StaticKeys::open(&path).unwrap();
        spis.push(again.outbound(Suite::Aes256Gcm, 0).spi);
        draw(&mut again, &mut spis).unwrap();
        used.push(spis.len() - spis.iter().collect::<HashSet<_>>().len());
    }
    let twice = used.iter().sum();
    testing::attack(
        "(SPI, sequence number) pairs used twice after key files were replaced",
        twice,
        0,
    );
}

#[test]
fn a_changed_epoch_file_is_noticed_before_the_next_draw() {
    let (_folder, path) = pair();
    let mut keys = StaticKeys::open(&path).unwrap();
    let epochs = with(&path, ".epoch");
    let old = fs::read(&epochs).unwrap();
    keys.draw_epoch().unwrap();
    // In place, so that the inode stays.
    fs::write(&epochs, old).unwrap();
    let error = keys.draw_epoch().unwrap_err();
    assert!(matches!(error, KeyError::Replaced { .. }), "{error}");
    assert!(error.to_string().contains("restart"), "{error}");
    let error = keys.note_peer_epoch(7).unwrap_err();
    assert!(matches!(error, KeyError::Replaced { .. }), "{error}");
    assert_eq!(keys.outbound_epoch(), 2);
}

#[test]
fn files_that_others_could_have_written_are_refused() {
    let mut accepted = 0;
    let strict = Writers::of_process();
    let (folder, key) = pair();
    let ppk = folder.path().join("alpha.ppk");
    create_ppk(&[&ppk]).unwrap();
    let below = folder.path().join("below");
    fs::create_dir(&below).unwrap();
    fs::set_permissions(&below, Permissions::from_mode(0o700)).unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let mut tries = |accepts: &mut dyn FnMut() -> bool| accepted += usize::from(accepts());
    for writable in [0o777, 0o702, 0o722] {
        mode(folder.path(), writable);
        tries(&mut || KeyFile::open_for(&key, &strict).is_ok());
        tries(&mut || KeyFile::open(&key).is_ok());
        tries(&mut || PpkFile::load(&ppk).is_ok());
    }
    mode(folder.path(), 0o700);
    assert!(KeyFile::open_for(&key, &strict).is_ok());
    assert!(PpkFile::load(&ppk).is_ok());
    // A link in a folder where others may write leads wherever they like.
    let link = below.join("link");
    std::os::unix::fs::symlink(&ppk, &link).unwrap();
    assert!(PpkFile::load(&link).is_ok());
    mode(&below, 0o777);
    tries(&mut || PpkFile::load(&link).is_ok());
    if chown(&ppk, Some(4321), None).is_ok() {
        chown(&key, Some(4321), None).unwrap();
        tries(&mut || PpkFile::load(&ppk).is_ok());
        tries(&mut || KeyFile::open_for(&key, &strict).is_ok());
        let named = strict.and(4321);
        assert!(PpkFile::load_for(&ppk, &named).is_ok());
        assert!(KeyFile::open_for(&key, &named).is_ok());
    }
    testing::attack(
        "key files accepted that others could have written",
        accepted,
        0,
    );
}
