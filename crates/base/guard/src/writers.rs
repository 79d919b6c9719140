//! Files that decide whom or what to trust: the check of who could have written them.

use nix::unistd::{Gid, Group, Uid, User, geteuid};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Write access by group and by others.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// In a folder with this bit, as in /tmp, users can replace only entries that belong to them.
const STICKY: u32 = 0o1000;
/// The list of this machine's accounts.
const ACCOUNTS: &str = "/etc/passwd";
/// The kernel's limit on followed links (`path_resolution(7)`).
const LINKS_MAX: usize = 40;

/// The reason why a file is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum Insecure {
    /// A file, a folder on the way to it, or a link belongs to another user.
    #[error("{} belongs to the user {}, who could replace it (chown it to root or to the user who runs this)",
        .path.display(), name_of(*.uid))]
    Owner {
        /// File, folder or link.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Users other than its owner may change a file, or replace the entries of a folder.
    #[error("{} has mode {mode:04o}: others than its owner may change it (chmod go-w {})",
        .path.display(), .path.display())]
    Writable {
        /// File or folder.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
    },
    /// It cannot be examined.
    #[error("{} cannot be examined: {source}", .path.display())]
    NotExamined {
        /// File, folder or link.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// The users who may have written a file that decides on trust.
///
/// The rules are those that OpenSSH applies to `authorized_keys` (`StrictModes`), for every folder
/// from `/` to the file and for every link on the way: each must belong to one of these users, and
/// neither group nor others may write to it, except to a folder with the sticky bit. As in Debian's
/// OpenSSH, the owner's private group may write: its number is the owner's user id, and it has no
/// other members, neither in its list nor as the group of their account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writers {
    uids: Vec<u32>,
}

impl Writers {
    /// Root and the effective user of this process.
    ///
    /// In a user namespace that does not map all users, this includes the unmapped users, usually
    /// with the machine's root among them: they cannot be distinguished there.
    #[must_use]
    pub fn of_process() -> Self {
        let mut uids = vec![0, geteuid().as_raw()];
        uids.extend(unmapped());
        Self { uids }
    }

    /// Root alone, and in a user namespace the unmapped users.
    #[must_use]
    pub fn root() -> Self {
        let mut uids = vec![0];
        uids.extend(unmapped());
        Self { uids }
    }

    /// Also accepts this user.
    #[must_use]
    pub fn and(mut self, uid: u32) -> Self {
        self.uids.push(uid);
        self
    }

    /// Checks a file and everything on the way to it, and returns its path without links.
    ///
    /// [`Insecure`], with the first file, folder or link in the kernel's path resolution that
    /// others could have written.
    pub fn check(&self, path: &Path) -> Result<PathBuf, Insecure> {
        // By the working directory, without a look at links: each part is examined below.
        let absolute = std::path::absolute(path).map_err(|source| Insecure::NotExamined {
            path: path.to_owned(),
            source,
        })?;
        let mut left: VecDeque<OsString> = parts(&absolute);
        let mut reached = PathBuf::from("/");
        let mut links = 0;
        self.check_entry(&reached)?;
        while let Some(part) = left.pop_front() {
            // `reached` has no links, so its parent is the folder above it, as for the kernel.
            if part == ".." {
                reached.pop();
                continue;
            }
            let next = reached.join(&part);
            let metadata = self.check_entry(&next)?;
            if !metadata.is_symlink() {
                reached = next;
                continue;
            }
            links += 1;
            let target = if links > LINKS_MAX {
                Err(io::Error::other("too many symbolic links"))
            } else {
                fs::read_link(&next)
            };
            let target = target.map_err(|source| Insecure::NotExamined { path: next, source })?;
            // A relative target counts from the folder of the link, which `reached` still is.
            if target.is_absolute() {
                reached = PathBuf::from("/");
            }
            // In front of the parts that are left, the first one foremost.
            for part in parts(&target).into_iter().rev() {
                left.push_front(part);
            }
        }
        Ok(reached)
    }

    /// Checks one file, folder or link.
    fn check_entry(&self, path: &Path) -> Result<Metadata, Insecure> {
        let metadata = fs::symlink_metadata(path).map_err(|source| Insecure::NotExamined {
            path: path.to_owned(),
            source,
        })?;
        if !self.uids.contains(&metadata.uid()) {
            return Err(Insecure::Owner {
                path: path.to_owned(),
                uid: metadata.uid(),
            });
        }
        // A link's mode bits have no meaning.
        if !metadata.is_symlink() && others_write(&metadata) {
            return Err(Insecure::Writable {
                path: path.to_owned(),
                mode: metadata.mode() & 0o7777,
            });
        }
        Ok(metadata)
    }
}

/// Whether users other than the owner may change a file or replace the entries of a folder.
fn others_write(metadata: &Metadata) -> bool {
    let mode = metadata.mode();
    // The entry itself is examined next, and must belong to one of the trusted users.
    if metadata.is_dir() && mode & STICKY != 0 {
        return false;
    }
    mode & OTHERS_WRITE != 0 || (mode & GROUP_WRITES != 0 && !is_private_group(metadata))
}

/// Whether the file's group has its owner as the only member.
fn is_private_group(metadata: &Metadata) -> bool {
    let (uid, gid) = (metadata.uid(), metadata.gid());
    // Root's group is not private: distributions add users to it.
    if uid != gid || uid == 0 {
        return false;
    }
    let owner = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
    let (Some(owner), Some(group)) = (owner, group) else {
        return false;
    };
    // The list of a group leaves out users who have it as the group of their account (group(5)).
    // Accounts of other sources than this file are not seen; without it nobody counts as alone.
    let is_alone = |accounts: String| !has_other_users(&accounts, gid, &owner.name);
    owner.gid.as_raw() == gid
        && group.mem.iter().all(|member| *member == owner.name)
        && fs::read_to_string(ACCOUNTS).is_ok_and(is_alone)
}

/// Whether a group is the one of another user's account, in the form of passwd(5).
fn has_other_users(accounts: &str, gid: u32, owner: &str) -> bool {
    accounts.lines().any(|account| {
        let mut fields = account.split(':');
        let name = fields.next();
        // After the password and the user's number.
        let group = fields.nth(2).and_then(|number| number.parse::<u32>().ok());
        group == Some(gid) && name != Some(owner)
    })
}

fn name_of(uid: u32) -> String {
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => user.name,
        _ => uid.to_string(),
    }
}

/// Returns the components of a path; keeps `..`, drops `.` and the root.
fn parts(path: &Path) -> VecDeque<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}

/// Returns the user id of unmapped users in a user namespace that does not map all users.
fn unmapped() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    let mut fields = map.split_ascii_whitespace();
    // The map of the initial namespace: every user is mapped to itself.
    let all = ["0", "0", "4294967295"];
    if all.iter().all(|field| fields.next() == Some(field)) {
        return None;
    }
    let number = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
    number.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A folder with a subfolder and a file in it, closed to others under any umask.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        set_mode(top.path(), 0o755);
        let folder = top.path().join("folder");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o755);
        let file = folder.join("ca.pem");
        fs::write(&file, "x").unwrap();
        set_mode(&file, 0o644);
        (top, file)
    }

    #[test]
    fn the_file_and_each_folder_must_be_closed_to_other_writers() {
        let (top, file) = tree();
        let writers = Writers::of_process();
        assert_eq!(writers.check(&file).unwrap(), file.canonicalize().unwrap());
        let folder = file.parent().unwrap();
        for (path, mode) in [
            (file.as_path(), 0o666),
            (folder, 0o777),
            (top.path(), 0o702),
        ] {
            let before = path.metadata().unwrap().mode();
            set_mode(path, mode);
            let error = writers.check(&file).unwrap_err();
            assert!(matches!(&error, Insecure::Writable { path: found, .. } if found == path));
            assert!(error.to_string().contains("chmod go-w"), "{error}");
            set_mode(path, before);
        }
        // In a folder with this bit, others can only replace entries that belong to them.
        set_mode(folder, 0o1777);
        assert!(writers.check(&file).is_ok());
    }

    #[test]
    fn links_are_followed_through_folders_that_are_checked_too() {
        let (top, file) = tree();
        let (writers, other) = (Writers::of_process(), top.path().join("other"));
        fs::create_dir(&other).unwrap();
        set_mode(&other, 0o755);
        symlink("../folder/ca.pem", other.join("link")).unwrap();
        symlink(other.join("link"), top.path().join("first")).unwrap();
        let first = top.path().join("first");
        assert_eq!(writers.check(&first).unwrap(), file.canonicalize().unwrap());
        // A user who may write to the folder of a link can change its target.
        set_mode(&other, 0o777);
        let error = writers.check(&first).unwrap_err();
        assert!(matches!(&error, Insecure::Writable { path, .. } if *path == other));
        symlink("loop", top.path().join("loop")).unwrap();
        assert!(writers.check(&top.path().join("loop")).is_err());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let (_top, file) = tree();
        if !geteuid().is_root() || chown(&file, Some(4321), Some(4321)).is_err() {
            eprintln!("SKIPPED: only root can give a file to another user");
            return;
        }
        let writers = Writers::of_process();
        let error = writers.check(&file).unwrap_err();
        assert!(matches!(error, Insecure::Owner { uid: 4321, .. }));
        assert!(writers.and(4321).check(&file).is_ok());
        assert!(Writers::root().check(&file).is_err());
    }

    #[test]
    fn a_group_is_not_private_if_another_account_has_it() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n\
                        bob:x:1001:1000::/home/bob:/bin/sh\n+::::::\n";
        assert!(has_other_users(accounts, 1000, "ann"));
        let alone = accounts.replace("1001:1000", "1001:1001");
        assert!(!has_other_users(&alone, 1000, "ann"));
        assert!(!has_other_users("", 1000, "ann"));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Writers::of_process()
            .check(Path::new("/nonexistent/x"))
            .unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }
}
