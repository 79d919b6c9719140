//! Files of a KME's client that another user of the machine could have written.

use crate::client::setup::{Authority, Files};
use qkd::Kme;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_that_others_could_have_written_are_refused() {
    let authority = Authority::new("CA");
    let files = Files::new(&authority.issue(&["gw1"]), &authority.pem());
    let setup = files.setup("https://127.0.0.1:1");
    assert!(Kme::new(&setup).is_ok());
    let mode = |path: &std::path::Path, mode| {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let mut accepted = 0;
    let folder = files.path("");
    for (path, usual) in [
        (&setup.ca, 0o644),
        (&setup.certificate, 0o644),
        (&folder, 0o700),
    ] {
        for writable in [0o777, 0o722] {
            mode(path, writable);
            match Kme::new(&setup) {
                Ok(_) => accepted += 1,
                Err(error) => assert!(error.to_string().contains("(chmod go-w "), "{error}"),
            }
        }
        mode(path, usual);
    }
    assert!(Kme::new(&setup).is_ok());
    testing::attack(
        "files for a KME accepted that others could have written",
        accepted,
        0,
    );
}
