//! Turns of the labs of one machine: one lab is measured at a time, across all agents.
//!
//! ```text
//! FOLDER/MACHINE         held while a lab on the machine is measured, also by each process of it
//! FOLDER/MACHINE.next    held by the lab that comes next, so that the last lab cannot overtake it
//! ```
//!
//! MACHINE is the beginning of the SHA-256 of the machine's name.

use base16ct::lower::encode_string as hex;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The two files of a machine.
#[derive(Debug)]
struct Machine {
    own: PathBuf,
    next: PathBuf,
}

/// A lab's turn on all of its machines, or on the first of them while it waits.
#[derive(Debug)]
pub(crate) struct Turn {
    folder: PathBuf,
    /// In the same order for every lab, so that no two wait for each other.
    machines: Vec<Machine>,
    /// The locks that it holds, of the first machines.
    held: Vec<File>,
    /// The `.next` lock of the machine after these, while the lab comes next there.
    next: Option<File>,
}

impl Turn {
    /// Returns the turn of a lab on these machines, with none of them taken.
    pub(crate) fn new(folder: &Path, machines: &BTreeSet<String>) -> Self {
        let files = |name: &String| {
            // Hashed: the words to reach a machine may have any character.
            let name = hex(&Sha256::digest(name)[..8]);
            Machine {
                own: folder.join(&name),
                next: folder.join(format!("{name}.next")),
            }
        };
        Self {
            folder: folder.to_owned(),
            machines: machines.iter().map(files).collect(),
            held: Vec::new(),
            next: None,
        }
    }

    /// Takes the machines in order until one is not free. Returns whether the lab has all of them.
    pub(crate) fn take(&mut self) -> io::Result<bool> {
        while let Some(machine) = self.machines.get(self.held.len()) {
            if self.held.is_empty() {
                fs::create_dir_all(&self.folder)?;
            }
            // First the right to be next, so that waiting labs queue up one behind the other.
            if self.next.is_none() {
                self.next = locked(&machine.next)?;
            }
            let own = match &self.next {
                Some(_) => locked(&machine.own)?,
                None => None,
            };
            let Some(own) = own else { return Ok(false) };
            // From now on shared with the processes of the run. Nobody else tries it while this lab
            // is next.
            own.try_lock_shared()?;
            self.held.push(own);
            self.next = None;
        }
        Ok(true)
    }

    /// Returns the files that each process of a run locks, in addition to the agent.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.machines.iter().map(|machine| &*machine.own)
    }

    /// Gives up the turn, or the wait for it.
    pub(crate) fn give_back(&mut self) {
        // Closing the files releases the locks; a process of the run still has its share.
        (self.next, self.held) = (None, Vec::new());
    }
}

/// Locks a file; `None` if somebody else has locked it.
fn locked(path: &Path) -> io::Result<Option<File>> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{bound, is_free};
    use std::time::{Duration, Instant};

    fn turn(folder: &Path, machines: &[&str]) -> Turn {
        let machines = machines.iter().map(|&name| name.to_owned()).collect();
        Turn::new(folder, &machines)
    }

    /// Whether the lab gets its turn. A child that another test forks holds a copy of every lock of
    /// this process until it executes its program, also of those given back meanwhile.
    fn takes(turn: &mut Turn) -> bool {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match turn.take().unwrap() {
                false if Instant::now() < deadline => std::thread::yield_now(),
                taken => return taken,
            }
        }
    }

    #[test]
    fn one_lab_of_a_machine_has_the_turn_and_who_had_it_comes_after_who_waits() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("turns");
        let [mut one, mut two, mut other] =
            [&["here"][..], &["here"], &["there"]].map(|machines| turn(&folder, machines));
        assert!(takes(&mut one) && takes(&mut one));
        assert!(!two.take().unwrap());
        assert!(takes(&mut other));
        one.give_back();
        // Even if it asks first.
        assert!(!one.take().unwrap());
        assert!(takes(&mut two));
        two.give_back();
        assert!(takes(&mut one));
        // A lab that waits no longer does not block the others.
        assert!(!two.take().unwrap());
        two.give_back();
        one.give_back();
        assert!(takes(&mut one));
        // A lab of two machines needs both.
        let mut both = turn(&folder, &["here", "there"]);
        one.give_back();
        assert!(!both.take().unwrap());
        assert!(!one.take().unwrap());
        other.give_back();
        assert!(takes(&mut both));
    }

    #[test]
    fn what_measures_keeps_the_turn_of_an_agent_that_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let [mut one, mut two] = [(); 2].map(|()| turn(folder.path(), &["here"]));
        assert!(takes(&mut one));
        let lock = folder.path().join("job");
        let mut command = bound("TERM", &lock, one.files(), Path::new("sleep"));
        let mut child = command.arg("60").spawn().unwrap();
        while is_free(&lock).unwrap() {
            std::thread::yield_now();
        }
        let began = || {
            let name = fs::read_to_string(format!("/proc/{}/comm", child.id()));
            name.is_ok_and(|name| name.trim() == "sleep")
        };
        while !began() {
            std::thread::yield_now();
        }
        drop(one);
        assert!(!two.take().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(takes(&mut two));
    }
}
