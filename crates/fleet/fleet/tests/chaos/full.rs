//! Disks and stores without room.

use crate::site::{Site, access, end, job, kill};
use fleet::{Fleet, Selector, ServerExtras, State, submit};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A disk of its own, in the memory of a mount namespace.
struct Disk {
    holder: Child,
}

impl Disk {
    /// `None` where the kernel does not let this user have one.
    fn new(mebibytes: u32) -> Option<Self> {
        let script = format!(
            "mount -t tmpfs -o size={mebibytes}m none /mnt && echo ready && exec sleep infinity"
        );
        let mut holder = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
            ])
            .args(["sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let said = holder.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        let disk = Self { holder };
        let is_there = line == "ready\n" && fs::read_dir(disk.path()).is_ok();
        if !is_there {
            testing::skip("a full disk", "no user namespace here");
        }
        is_there.then_some(disk)
    }

    /// Where it is for everybody else.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root/mnt", self.holder.id()))
    }

    /// Fills it but for so many mebibytes.
    fn fill(&self, but: u64) {
        let mut file = File::create(self.path().join("filler")).unwrap();
        let disk = nix::sys::statvfs::statvfs(&self.path()).unwrap();
        let free = disk.blocks_available() * disk.fragment_size();
        let zeros = vec![0; 64 << 10];
        for _ in 0..free.saturating_sub(but << 20).div_ceil(64 << 10) {
            if file.write_all(&zeros).is_err() {
                break;
            }
        }
    }

    fn empty(&self) {
        fs::remove_file(self.path().join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        kill(self.holder.id());
        self.holder.wait().unwrap();
    }
}

fn is_done(state: &State) -> bool {
    matches!(state, State::Done { .. })
}

/// The run of a job that cannot be uploaded, with what its agent says of it.
fn await_kept(site: &Site, id: &str, says: &str) {
    site.await_some("word that there is no room", || {
        site.log("agent").contains(says).then_some(())
    });
    let run = site.run_of("agent", "lab", id);
    assert!(run.join("report.md").exists());
    assert!(run.join("capture").exists());
}

/// The store's own limit: the server says no, and the agent says so.
pub(crate) fn limit() {
    let mut site = Site::new();
    let agent = site.start("agent", "lab");
    let first = site.submit(0, "fine", Selector::default());
    site.await_all("done", is_done);
    site.extras.store_bytes_max = Some(2_000_000);
    site.restart_server();
    let fat = site.submit(1, "fat", Selector::default());
    await_kept(&site, &fat, "no room to keep capture: ");
    site.await_some("word of the server", || {
        let said = site.tend();
        said.contains("has reached its limit of 1 MiB")
            .then_some(())
    });
    // A command says so too, once and at once.
    let fleet = site.fleet();
    let refused = site.runtime.block_on(submit(&fleet, &job("2", "fine")));
    let error = refused
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        error.contains("has no room to change 2 of fleet-jobs"),
        "{error}"
    );
    assert!(error.contains("--store-max"), "{error}");
    site.extras = ServerExtras::default();
    site.restart_server();
    let states = site.await_all("done", is_done);
    assert_eq!(states.len(), 2, "{states:?}");
    let fleet = site.fleet();
    for id in [first, fat] {
        assert!(matches!(&states[&id], State::Done { held, .. } if held.attempt == 1));
        site.check_run(&fleet, &id);
    }
    end(agent);
}

/// A bucket that its owner has limited.
pub(crate) fn bucket() {
    let site = Site::new();
    let limit = |bytes: i64| {
        site.runtime.block_on(async {
            let client = async_nats::connect(site.url()).await.unwrap();
            let context = async_nats::jetstream::new(client);
            let stream = context.get_stream("OBJ_fleet-files").await.unwrap();
            let mut config = stream.cached_info().config.clone();
            config.max_bytes = bytes;
            context.update_stream(config).await.unwrap();
        });
    };
    limit(1_000_000);
    let agent = site.start("agent", "lab");
    let fat = site.submit(0, "fat", Selector::default());
    await_kept(&site, &fat, "no room to keep capture: ");
    // The lab is its own all the while, and the limit its owner's.
    let access = access(&site.url());
    site.runtime.block_on(Fleet::set_up(&access, None)).unwrap();
    let states = site.states();
    assert!(matches!(states[&fat], State::Running(_)), "{states:?}");
    limit(-1);
    site.await_all("done", is_done);
    site.check_run(&site.fleet(), &fat);
    end(agent);
}

/// The disk under the server's store.
pub(crate) fn server() {
    let Some(disk) = Disk::new(64) else { return };
    let site = Site::at(tempfile::tempdir().unwrap(), disk.path().join("server"));
    let agent = site.start("agent", "lab");
    let before = site.submit(0, "fine", Selector::default());
    site.await_all("done", is_done);
    let held = site.submit(1, "held and fat", Selector::default());
    site.await_running(&held);
    disk.fill(0);
    // More than the rest of a page.
    let fleet = site.fleet();
    let long = job("2", &format!("fine\n{}", "#".repeat(100_000)));
    let unanswered = site.runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(1), submit(&fleet, &long)).await
    });
    assert!(unanswered.is_err(), "{unanswered:?}");
    let is_full = "is full, and the server keeps nothing more";
    let mut said = String::new();
    site.await_some("word of the server", || {
        said.push_str(&site.tend());
        said.contains(is_full).then_some(())
    });
    site.go("agent");
    await_kept(&site, &held, "did not keep capture: ");
    let pid = site.server_pid();
    disk.empty();
    let mut said = String::new();
    site.await_some("server with room", || {
        said.push_str(&site.tend());
        said.contains("there is room again: the server is started anew")
            .then_some(())
    });
    assert_ne!(site.server_pid(), pid);
    let fleet = site.fleet();
    site.runtime.block_on(submit(&fleet, &long)).unwrap();
    let states = site.await_all("done", is_done);
    for id in [before, held, long.id] {
        assert!(matches!(&states[&id], State::Done { held, .. } if held.attempt == 1));
        site.check_run(&fleet, &id);
    }
    end(agent);
}

/// The disk under the agent's folder.
pub(crate) fn agent() {
    let Some(disk) = Disk::new(96) else { return };
    let site = Site::new();
    let folder = site.agent_folder("agent");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(disk.path(), folder.join("lab")).unwrap();
    disk.fill(20);
    let agent = site.start("agent", "lab");
    site.await_some("word that there is no room", || {
        let log = site.log("agent");
        log.contains("left of the 64 MiB that a run needs: no run begins")
            .then_some(())
    });
    // It takes nothing then.
    let id = site.submit(0, "greedy", Selector::default());
    assert!(matches!(site.states()[&id], State::Queued { .. }));
    disk.empty();
    site.await_some("word that there is room", || {
        site.log("agent")
            .contains("there is room again")
            .then_some(())
    });
    // In the midst of a run: it is kept, and goes on.
    site.await_running(&id);
    disk.fill(0);
    site.go("agent");
    site.await_some("word that it ended for want of room", || {
        let log = site.log("agent");
        log.contains(&format!("job {id} ended for want of room"))
            .then_some(())
    });
    assert!(matches!(site.states()[&id], State::Running(_)));
    disk.empty();
    let states = site.await_all("done", is_done);
    assert!(matches!(&states[&id], State::Done { .. }), "{states:?}");
    site.check_run(&site.fleet(), &id);
    end(agent);
}
