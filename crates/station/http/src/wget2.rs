//! wget2 as the client: writes files to a disk or a RAM disk, and compares them after each batch.
//!
//! 1. A private mount namespace holds a RAM disk for the files if requested, and resolves the
//!    server's name, which its certificate carries.
//! 2. wget2 fetches batches of files until the time is over. Only its run time counts; between the
//!    batches the files are compared and removed.
//! 3. Files of the same sizes are written directly, to measure the store alone.

use crate::error::HttpError;
use crate::object::{BLOCK_BYTES, Object};
use crate::schedule::Phases;
use crate::server::{own_mounts, ram_disk};
use crate::spec::{Fetch, SERVER_NAME};
use journal::record::{HttpFailure, HttpResult, HttpStored};
use nix::mount::{MsFlags, mount};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::statvfs::statvfs;
use nix::sys::time::TimeValLike;
use plan::{HttpVersion, Store};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Upper limit of a batch's time, long enough that starting wget2 is a small part of it.
const BATCH_NS: u64 = 500_000_000;
/// Minimum number of batches that fit into the sustain phase.
const BATCHES_LEAST: u64 = 4;
/// Most files and bytes of a batch.
const BATCH_FILES: u64 = 2000;
const BATCH_BYTES: u64 = 256 << 20;
/// How often a batch is written directly; the median counts.
const DIRECT_WRITES: usize = 3;
/// Bytes of wget2's messages that are kept.
const WORDS_BYTES_MAX: usize = 1 << 20;

struct Rig<'a> {
    spec: &'a Fetch,
    objects: Vec<Object>,
    folder: PathBuf,
    files: PathBuf,
    list: PathBuf,
    /// Mean size of an object.
    object_bytes: u64,
    /// Files of the next batch.
    batch: usize,
}

/// One batch of files.
struct Batch {
    wall_ns: u64,
    cpu_ns: u64,
    transactions: u64,
    bytes: u64,
}

/// Fetches as specified.
pub(crate) fn fetch(spec: &Fetch) -> Result<HttpResult, HttpError> {
    own_mounts()?;
    let folder = tempfile::Builder::new()
        .prefix("cipherbench-http-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir()
        .map_err(HttpError::system("create a folder for files"))?;
    let mut rig = Rig::new(spec, folder.path())?;
    let phases = Phases::of(&spec.test);
    let started = Instant::now();
    let mut result = HttpResult::default();
    let mut stored = HttpStored::default();
    loop {
        let begun_ns = started.elapsed().as_nanos() as u64;
        // At least one batch counts, however slow.
        if begun_ns >= phases.sustain().end && result.duration_ns > 0 {
            break;
        }
        let batch = rig.fetch(&mut result)?;
        if begun_ns >= phases.sustain().start {
            result.duration_ns += batch.wall_ns;
            result.transactions += batch.transactions;
            result.object_bytes += batch.bytes;
            stored.client_cpu_ns += batch.cpu_ns;
        }
        rig.size_next(&batch);
    }
    stored.direct_bytes_per_s = rig.direct()?;
    result.stored = Some(stored);
    Ok(result)
}

impl<'a> Rig<'a> {
    fn new(spec: &'a Fetch, folder: &Path) -> Result<Self, HttpError> {
        let sizes = spec.test.objects();
        let files = folder.join("files");
        let prepare = || -> io::Result<()> {
            fs::create_dir(&files)?;
            fs::write(
                folder.join("hosts"),
                format!("{} {SERVER_NAME}\n", spec.server.ip()),
            )?;
            if let Some(authority) = &spec.authority {
                fs::write(folder.join("ca.pem"), authority)?;
            }
            let none: Option<&str> = None;
            mount(
                Some(&folder.join("hosts")),
                "/etc/hosts",
                none,
                MsFlags::MS_BIND,
                none,
            )?;
            Ok(())
        };
        prepare().map_err(HttpError::system("prepare the folder of wget2"))?;
        if spec.test.store == Store::Ram {
            ram_disk(&files, spec.store_bytes)?;
        }
        Ok(Self {
            spec,
            objects: Object::all(&sizes),
            list: folder.join("list"),
            folder: folder.to_owned(),
            files,
            object_bytes: sizes.iter().sum::<u64>() / sizes.len().max(1) as u64,
            batch: spec.test.connections as usize,
        })
    }

    /// Sizes the next batch by the rate of the last one; it has at least one file per connection.
    fn size_next(&mut self, last: &Batch) {
        let least = u64::from(self.spec.test.connections);
        let batch_ns = BATCH_NS.min(self.spec.test.duration_ns / BATCHES_LEAST);
        let files = u128::from(last.transactions) * u128::from(batch_ns);
        let files = files / u128::from(last.wall_ns.max(1));
        let most = BATCH_FILES.min(BATCH_BYTES / self.object_bytes.max(1));
        let files = u64::try_from(files).unwrap_or(most).min(most);
        // Bounded by `BATCH_FILES` or the connections of a campaign.
        self.batch = files.max(least) as usize;
    }

    /// Writes the list of URLs. Each has a unique query, which makes the file's name unique.
    fn write_list(&self) -> io::Result<()> {
        let scheme = if self.spec.authority.is_some() {
            "https"
        } else {
            "http"
        };
        let port = self.spec.server.port();
        let url = |at: usize| {
            let name = Object::name(at % self.objects.len());
            format!("{scheme}://{SERVER_NAME}:{port}/{name}?{at}\n")
        };
        fs::write(&self.list, (0..self.batch).map(url).collect::<String>())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("wget2");
        command
            .args([
                "--quiet",
                "--tries=1",
                "--no-hsts",
                "--no-hpkp",
                "--no-ocsp",
            ])
            .args([
                "--no-ocsp-stapling",
                "--no-robots",
                "--no-proxy",
                "--no-config",
            ])
            .arg(format!("--max-threads={}", self.spec.test.connections))
            .arg(match self.spec.test.version {
                HttpVersion::Http1 => "--no-http2",
                HttpVersion::Http2 => "--http2",
            });
        let limit = self.spec.timeout_ns.div_ceil(1_000_000_000).max(1);
        command.arg(format!("--timeout={limit}"));
        if self.spec.authority.is_some() {
            let authority = self.folder.join("ca.pem");
            command.arg("--ca-certificate").arg(authority);
        }
        command.arg("-P").arg(&self.files).arg("-i").arg(&self.list);
        command.env("HOME", &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn fetch(&self, result: &mut HttpResult) -> Result<Batch, HttpError> {
        let written = self.write_list();
        written.map_err(HttpError::system("write the list of URLs"))?;
        // The kernel counts a child's time here once it was waited for.
        let cpu_before = children_cpu_ns()?;
        let begun = Instant::now();
        let mut command = self.command();
        let ended = guard::output(&mut command, WORDS_BYTES_MAX);
        let ended = ended.map_err(HttpError::system("start wget2"))?;
        let wall_ns = begun.elapsed().as_nanos() as u64;
        let cpu_ns = children_cpu_ns()?.saturating_sub(cpu_before);
        result.attempted += self.batch as u64;
        let words = String::from_utf8_lossy(&ended.stderr);
        let absent = self.why_absent(&words)?;
        let (mut transactions, mut bytes) = (0, 0);
        for at in 0..self.batch {
            let number = at % self.objects.len();
            let object = &self.objects[number];
            let path = self.files.join(format!("{}?{at}", Object::name(number)));
            let found = compare(&path, object).map_err(HttpError::system("read a file back"))?;
            match found {
                Compared::Same => {
                    transactions += 1;
                    bytes += object.bytes();
                }
                Compared::Differs(why) => {
                    // A full store also truncates files.
                    let why = match absent {
                        HttpFailure::StoreFull => absent,
                        _ => why,
                    };
                    *result.failed.entry(why).or_default() += 1;
                }
                Compared::Absent => *result.failed.entry(absent).or_default() += 1,
            }
        }
        result.received_bytes += bytes;
        let removed = fs::read_dir(&self.files)
            .and_then(|mut entries| entries.try_for_each(|entry| fs::remove_file(entry?.path())));
        removed.map_err(HttpError::system("remove files"))?;
        Ok(Batch {
            wall_ns,
            cpu_ns,
            transactions,
            bytes,
        })
    }

    /// Why files are absent or too short.
    fn why_absent(&self, words: &str) -> Result<HttpFailure, HttpError> {
        let free = statvfs(&self.files)
            .map_err(io::Error::from)
            .map_err(HttpError::system("read how full the store is"))?;
        // Asked before the files are removed.
        let is_full = free.blocks_available() == 0;
        Ok(if is_full || words.contains("No space left") {
            HttpFailure::StoreFull
        } else if words.contains("refused") {
            HttpFailure::Refused
        } else if words.contains("certificate") || words.contains("TLS") {
            HttpFailure::Tls
        } else {
            HttpFailure::Missing
        })
    }

    /// Writes files of a batch's sizes and returns the rate in bytes/s.
    fn direct(&self) -> Result<u64, HttpError> {
        let mut rates = [0; DIRECT_WRITES];
        for rate in &mut rates {
            *rate = self
                .write_batch()
                .map_err(HttpError::system("write files directly"))?;
        }
        // The median: one write may meet a flush of the disk.
        rates.sort_unstable();
        Ok(rates[DIRECT_WRITES / 2])
    }

    fn write_batch(&self) -> io::Result<u64> {
        let begun = Instant::now();
        let mut bytes = 0_u64;
        let path = |at: usize| self.files.join(format!("direct-{at}"));
        for at in 0..self.batch {
            let object = &self.objects[at % self.objects.len()];
            let mut file = File::create(path(at))?;
            match object.write_to(&mut file) {
                // The files that fit still give a rate.
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                written => written?,
            }
            bytes += object.bytes();
        }
        let nanos = begun.elapsed().as_nanos().max(1);
        for at in 0..self.batch {
            let _ = fs::remove_file(path(at));
        }
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        Ok(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

fn children_cpu_ns() -> Result<u64, HttpError> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(io::Error::from)
        .map_err(HttpError::system("read the CPU time of wget2"))?;
    let ns = usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds();
    Ok(u64::try_from(ns).unwrap_or(0))
}

enum Compared {
    Same,
    Differs(HttpFailure),
    Absent,
}

fn compare(path: &Path, object: &Object) -> io::Result<Compared> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Compared::Absent),
        Err(error) => return Err(error),
    };
    // Before the content, which would take a read of the whole file.
    if file.metadata()?.len() != object.bytes() {
        return Ok(Compared::Differs(HttpFailure::WrongLength));
    }
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut offset = 0;
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        if !object.matches(offset, &buffer[..length]) {
            return Ok(Compared::Differs(HttpFailure::WrongContent));
        }
        offset += length as u64;
    }
    Ok(if offset == object.bytes() {
        Compared::Same
    } else {
        Compared::Differs(HttpFailure::WrongLength)
    })
}
