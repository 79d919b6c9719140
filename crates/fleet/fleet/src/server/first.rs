//! The users of a server that is started without a file of users: made at the first start, one per
//! role.

use crate::error::{FleetError, disk};
use crate::identity::Identity;
use crate::kept::write_whole;
use crate::users::{Role, Users};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Users, keys and trusted keys in the folder of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstUsers {
    /// The file of users, with their roles.
    pub users: PathBuf,
    /// The file of trusted keys, for agents that run only jobs signed by the submitter.
    pub trust: PathBuf,
    /// Whether they were made now.
    pub is_new: bool,
    folder: PathBuf,
}

impl FirstUsers {
    /// Returns the users of a folder, and makes them if it has no file of users yet.
    ///
    /// # Errors
    /// When they cannot be written, or a key that is there cannot be read.
    pub fn of(folder: &Path) -> Result<Self, FleetError> {
        let (users, trust) = (folder.join("users"), folder.join("trust"));
        let is_new = !users.exists();
        let found = Self {
            users,
            trust,
            is_new,
            folder: folder.to_owned(),
        };
        if !is_new {
            return Ok(found);
        }
        make_private(folder)?;
        let mut lines = "# ROLE KEY NAME; changes are in force within seconds\n".to_owned();
        for role in Role::ALL {
            let path = found.key(role);
            // An interrupted start may have made some.
            let key = if path.exists() {
                Identity::read(&path)?
            } else {
                Identity::create(&path)?
            };
            let (role, key) = (role.name(), key.public());
            lines.push_str(&format!("{role} {key} {role}\n"));
            if role == Role::Submitter.name() {
                write(&found.trust, &format!("{key} {role}\n"))?;
            }
        }
        // Last: without it the next start begins anew, with the keys that are there.
        write(&found.users, &lines)?;
        Ok(found)
    }

    /// Returns nats-server's configuration of these users, for a server that another program
    /// starts. It includes an administrator, with a key that is made if absent.
    ///
    /// # Errors
    /// When a file cannot be read or written, or has a mistake.
    pub fn config(&self) -> Result<String, FleetError> {
        let administrator = super::administrate(&super::administrator(&self.folder))?;
        Ok(Users::read(&self.users)?.config(&administrator))
    }

    /// Returns the file of a role's key.
    #[must_use]
    pub fn key(&self, role: Role) -> PathBuf {
        self.folder.join(format!("{}.nk", role.name()))
    }
}

/// Makes a folder that only its owner can read; an existing one is not changed.
pub(super) fn make_private(folder: &Path) -> Result<(), FleetError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(disk("write", folder))
}

fn write(path: &Path, text: &str) -> Result<(), FleetError> {
    write_whole(path, text.as_bytes()).map_err(disk("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::private_folder;
    use crate::signing::Trust;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_start_makes_a_user_of_each_role_and_a_later_one_none() {
        let folder = private_folder();
        let store = folder.path().join("store");
        let made = FirstUsers::of(&store).unwrap();
        assert!(made.is_new);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store), 0o700);
        for role in Role::ALL {
            assert_eq!(mode(&made.key(role)), 0o600);
        }
        let users = Users::read(&made.users).unwrap();
        let submitter = Identity::read(&made.key(Role::Submitter)).unwrap().public();
        assert!(users.config("ADMIN").contains(&submitter));
        Trust::read(&made.trust).unwrap();
        let trusted = fs::read_to_string(&made.trust).unwrap();
        assert_eq!(trusted, format!("{submitter} submitter\n"));
        let config = made.config().unwrap();
        assert!(config.contains(&submitter), "{config}");
        assert_eq!(config, made.config().unwrap());
        let again = FirstUsers::of(&store).unwrap();
        assert!(!again.is_new);
        // Keys that are there are used again.
        fs::remove_file(&made.users).unwrap();
        FirstUsers::of(&store).unwrap();
        assert!(
            fs::read_to_string(&made.users)
                .unwrap()
                .contains(&submitter)
        );
    }
}
