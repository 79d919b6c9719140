//! A configuration that another user of the machine could have written.

use encryptor::{Config, ServiceError};
use port::Stop;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// Open: closed, it would change the tables of this machine, and of an encryptor that it runs.
const TEXT: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
keys: { static: gw1.key }
tunnel: { name: cb-attacked, routes: 10.2.0.0/24 }
fail_open: true
";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Why a service with this configuration does not start.
fn refusal(file: &Path) -> ServiceError {
    let config = Config::load(file).unwrap();
    let stop = Stop::new().unwrap();
    let started = encryptor::run(
        &config,
        encryptor::Program {
            version: "test",
            holder: None,
        },
        &stop,
        |_, _| panic!("it has started"),
    );
    started.unwrap_err()
}

#[test]
fn configurations_and_keys_that_others_could_have_written_are_refused() {
    let folder = testing::folder().unwrap();
    let file = folder.path().join("gw1.yaml");
    fs::write(&file, TEXT).unwrap();
    mode(&file, 0o644);
    let [key, other] = ["gw1.key", "gw2.key"].map(|name| folder.path().join(name));
    keying::create_pair(&key, &other).unwrap();
    let mut accepted = 0;
    let mut refused = |path: &Path, bad: u32, usual: u32| {
        mode(path, bad);
        let error = refusal(&file);
        let text = error.to_string();
        accepted += usize::from(!text.contains("(chmod go-w "));
        assert!(text.contains(&path.display().to_string()), "{text}");
        mode(path, usual);
    };
    refused(&file, 0o666, 0o644);
    refused(&file, 0o646, 0o644);
    refused(folder.path(), 0o777, 0o700);
    // The configuration is another user's, and only the keys are here.
    let elsewhere = testing::folder().unwrap();
    let moved = elsewhere.path().join("gw1.yaml");
    let text = TEXT.replace("gw1.key", &key.display().to_string());
    fs::write(&moved, text).unwrap();
    mode(&moved, 0o644);
    mode(folder.path(), 0o777);
    let error = refusal(&moved);
    accepted += usize::from(!matches!(
        error,
        ServiceError::Keys(keying::KeyError::Insecure(_))
    ));
    mode(folder.path(), 0o700);
    // A link leads to the keys, and whoever could replace it chooses others.
    let public = elsewhere.path().join("public");
    fs::create_dir(&public).unwrap();
    mode(&public, 0o777);
    symlink(&key, public.join("link")).unwrap();
    for name in ["public/link", "public/../public/link"] {
        fs::write(&moved, TEXT.replace("gw1.key", name)).unwrap();
        let error = refusal(&moved);
        accepted += usize::from(!matches!(
            error,
            ServiceError::Keys(keying::KeyError::Insecure(_))
        ));
    }
    testing::attack(
        "configurations and keys accepted that others could have written",
        accepted,
        0,
    );
}
