//! A cache of curves that an earlier process measured on the same machine with the same engines.
//!
//! One file per suite, in `$XDG_CACHE_HOME/cipherbench` or `~/.cache/cipherbench`, with the curves
//! of all available engines. A file that is unreadable, or from another CPU, other engines or
//! another build of this program, is ignored and rewritten. Errors are ignored: without a cache
//! each process measures for itself.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use engine::Selection;
use serde::{Deserialize, Serialize};
use wire::Suite;

use crate::curve::{Direction, EngineCurves};

/// Incremented when the measurement changes.
const FORMAT: u32 = 1;
/// A longer file is not a cache file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The conditions that curves depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    format: u32,
    /// Version and build: builds of one version may compute differently.
    program: String,
    suite: Suite,
    cpu: String,
    /// Names and versions.
    engines: Vec<(String, String)>,
}

impl Identity {
    /// Returns the identity of this machine and these engines.
    pub(crate) fn of(suite: Suite, engines: &[Selection]) -> Self {
        let build = fs::metadata("/proc/self/exe").map_or_else(|_| String::new(), |it| build(&it));
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let engine = |engine: &Selection| (engine.engine().to_owned(), engine.version().to_owned());
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned() + &build,
            suite,
            cpu: cpu_identity(&cpuinfo),
            engines: engines.iter().map(engine).collect(),
        }
    }
}

/// Length and modification time of the executable: they identify a build without manual versioning.
fn build(executable: &fs::Metadata) -> String {
    let bytes = executable.len();
    let written = executable.modified().unwrap_or(UNIX_EPOCH);
    let written_ns = written
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    format!(" {bytes}-{written_ns}")
}

/// Identifies the first CPU of `/proc/cpuinfo`: its name, and a hash of its stable properties such
/// as microcode and flags.
fn cpu_identity(cpuinfo: &str) -> String {
    const CHANGES: [&str; 4] = ["cpu MHz", "bogomips", "BogoMIPS", "cache size"];
    const NUMBERS: [&str; 7] = [
        "processor",
        "physical id",
        "core id",
        "apicid",
        "initial apicid",
        "siblings",
        "cpu cores",
    ];
    let mut name = "CPU";
    let mut hash = FNV_OFFSET;
    // An empty line ends the first CPU.
    for line in cpuinfo.lines().take_while(|line| !line.trim().is_empty()) {
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        let key = key.trim();
        if key == "model name" {
            name = value.trim();
        }
        // Values that differ between cores or between two reads would make each process measure
        // again.
        if !CHANGES.contains(&key) && !NUMBERS.contains(&key) {
            hash = fnv(fnv(hash, key), value.trim());
        }
    }
    format!("{name} {hash:016x}")
}

/// FNV-1a, which is the same on all platforms and in all versions.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, text: &str) -> u64 {
    // The terminator separates texts.
    text.bytes().chain([0]).fold(hash, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The storage of curves between processes.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct Content {
    identity: Identity,
    curves: Vec<EngineCurves>,
}

impl Cache {
    /// Returns the cache in the user's cache directory; an empty one if that is unknown.
    pub(crate) fn of_user() -> Self {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        // The XDG specification requires ignoring relative paths.
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = || variable("HOME").map(|home| home.join(".cache"));
        let base = variable("XDG_CACHE_HOME").filter(absolute).or_else(home);
        let folder = base.filter(absolute).map(|base| base.join("cipherbench"));
        Self { folder }
    }

    /// Returns a cache that stores nothing.
    pub(crate) const fn none() -> Self {
        Self { folder: None }
    }

    /// Returns the cache in this directory.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_owned()),
        }
    }

    /// Returns the file of a suite.
    fn file(&self, suite: Suite) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("curves-{suite}.json")))
    }

    /// Returns the curves that were measured under the same conditions.
    pub(crate) fn load(&self, identity: &Identity) -> Option<Vec<EngineCurves>> {
        let path = self.file(identity.suite)?;
        // Opening a pipe would wait for its writer.
        if !fs::metadata(&path).ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        let file = File::open(&path).ok()?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
        let content: Content = serde_json::from_str(&text).ok()?;
        let engines = identity.engines.iter().map(|(name, _)| name);
        let complete = engines.eq(content.curves.iter().map(|curves| &curves.engine));
        // Another program may have written the file: sums of huge parts would overflow in
        // predictions.
        let sane = |curves: &EngineCurves| {
            Direction::ALL
                .iter()
                .all(|&direction| curves.of(direction).curve.is_sane())
        };
        let usable = content.identity == *identity && complete;
        (usable && content.curves.iter().all(sane)).then_some(content.curves)
    }

    /// Stores curves, if possible.
    pub(crate) fn store(&self, identity: &Identity, curves: &[EngineCurves]) {
        let Some(path) = self.file(identity.suite) else {
            return;
        };
        let content = Content {
            identity: identity.clone(),
            curves: curves.to_vec(),
        };
        // An unwritable cache only costs the next start a tenth of a second.
        let _ = write(&path, &content);
    }
}

/// Writes a temporary file and renames it, so that readers see the old or the new content.
fn write(path: &Path, content: &Content) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(serde_json::to_string(content)?.as_bytes())?;
    // Not synced: after a crash the file may be cut, and is then ignored.
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{Curve, Fit, Load, PART_PS_MAX, Point};
    use std::time::Duration;

    fn identity() -> Identity {
        let selection = engine::select(&engine::CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
        Identity::of(Suite::Aes256Gcm, &[selection])
    }

    fn curves(identity: &Identity) -> Vec<EngineCurves> {
        let fit = |ps| Fit {
            curve: Curve {
                per_packet_ps: ps,
                ..Curve::default()
            },
            points: vec![Point {
                load: Load::uniform(32, 98),
                measured_ps: ps,
            }],
        };
        vec![EngineCurves {
            engine: identity.engines[0].0.clone(),
            seal: fit(PART_PS_MAX),
            seal_from: fit(2),
            open: fit(3),
        }]
    }

    #[test]
    fn curves_are_loaded_on_the_same_machine_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(&folder.path().join("made/when/needed"));
        let identity = identity();
        let curves = curves(&identity);
        assert_eq!(cache.load(&identity), None);
        cache.store(&identity, &curves);
        assert_eq!(cache.load(&identity), Some(curves));
        let mut others = vec![identity.clone(); 5];
        others[0].cpu.push('x');
        others[1].format += 1;
        others[2].program.push('x');
        others[3].engines[0].1.push('x');
        others[4].suite = Suite::Aes128Gcm;
        for other in others {
            assert_eq!(cache.load(&other), None, "{other:?}");
        }
    }

    #[test]
    fn a_broken_file_is_ignored_and_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let identity = identity();
        let path = cache.file(identity.suite).unwrap();
        for broken in [
            &b""[..],
            b"{}",
            b"\xff\xfe",
            b"{\"identity\":",
            &[b' '; 2 << 20],
        ] {
            fs::write(&path, broken).unwrap();
            assert_eq!(cache.load(&identity), None);
            cache.store(&identity, &curves(&identity));
            assert_eq!(cache.load(&identity), Some(curves(&identity)));
        }
        let mut absurd = curves(&identity);
        absurd[0].open.curve.per_byte_ps = u64::MAX;
        cache.store(&identity, &absurd);
        assert_eq!(cache.load(&identity), None);
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside it");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(cache.load(&identity), None);
        cache.store(&identity, &curves(&identity));
        assert_eq!(cache.load(&identity), None);
    }

    #[test]
    fn a_cache_without_a_directory_does_not_fail() {
        let cache = Cache::none();
        let identity = identity();
        cache.store(&identity, &curves(&identity));
        assert_eq!(cache.load(&identity), None);
    }

    #[test]
    fn another_build_of_the_same_version_is_another_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let build_of = |content: &str, written_s| {
            fs::write(&path, content).unwrap();
            let written = UNIX_EPOCH + Duration::from_secs(written_s);
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(written).unwrap();
            build(&fs::metadata(&path).unwrap())
        };
        let this = build_of("a program", 1);
        assert_eq!(this, build_of("a program", 1));
        assert_ne!(this, build_of("a longer program", 1));
        assert_ne!(this, build_of("a program", 2));
        assert!(identity().program.contains('-'), "the build of this test");
    }

    #[test]
    fn a_cpu_is_identified_by_its_features_and_not_by_its_clock() {
        let cpuinfo = |flags: &str, microcode: &str, mhz: &str| {
            cpu_identity(&format!(
                "processor\t: 0\nmodel name\t: A CPU\nmicrocode\t: {microcode}\ncpu MHz\t\t: {mhz}\n\
                 flags\t\t: {flags}\n\nprocessor\t: 1\nmodel name\t: Another\n"
            ))
        };
        let this = cpuinfo("aes vaes", "0x1", "2300");
        assert!(this.starts_with("A CPU "), "{this}");
        assert_eq!(this, cpuinfo("aes vaes", "0x1", "800"));
        assert_ne!(this, cpuinfo("aes", "0x1", "2300"));
        assert_ne!(this, cpuinfo("aes vaes", "0x2", "2300"));
        assert_ne!(cpu_identity(""), "");
    }
}
