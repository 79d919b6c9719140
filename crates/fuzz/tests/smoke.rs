//! Every target on its seeds and its minimised corpus, on mutations of them, and on pseudo-random
//! bytes: less than a minute in all.

use fuzz::{TARGETS, Target};
use std::collections::BTreeSet;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

/// Pseudo-random inputs for each target.
const INPUTS: usize = 1000;
const INPUT_BYTES_MAX: u64 = 600;
/// Size of the minimised corpora in the repository.
const MINIMISED_BYTES_MAX: u64 = 5_000_000;

/// SplitMix64 (Steele, Lea, Flood 2014), deterministic.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(INPUT_BYTES_MAX);
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// One of the seeds with a few changes.
    fn mutated(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut input = seeds[self.below(seeds.len() as u64) as usize].clone();
        for _ in 0..self.below(8) {
            if !input.is_empty() {
                let at = self.below(input.len() as u64) as usize;
                match self.below(3) {
                    0 => input[at] = self.next() as u8,
                    1 => drop(input.remove(at)),
                    _ => input.insert(at, self.next() as u8),
                }
            }
        }
        input
    }
}

/// The target's seed files, in the order of their names, and the inputs that fuzzing found.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder = fuzz_folder().join("seeds").join(target.name);
    let mut paths = BTreeSet::new();
    if folder.exists() {
        let entries = fs::read_dir(folder).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let files = paths.into_iter().map(|path| fs::read(path).unwrap());
    files.chain(minimised(target)).collect()
}

/// The minimised corpus: one input in each line, in hexadecimal.
fn minimised(target: &Target) -> Vec<Vec<u8>> {
    let file = fuzz_folder().join(format!("minimised/{}.hex", target.name));
    let text = fs::read_to_string(&file).unwrap_or_default();
    let bytes = |line: &str| {
        let bytes = base16ct::mixed::decode_vec(line);
        bytes.unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    text.lines().map(bytes).collect()
}

fn fuzz_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Runs the target, and reports the input that it fails on.
fn run(target: &Target, input: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| (target.body)(input)) {
        eprintln!("fuzz target `{}` fails on the bytes {input:?}", target.name);
        panic::resume_unwind(cause);
    }
}

#[test]
fn the_kept_corpora_are_small_and_of_targets() {
    let mut total = 0;
    for entry in fs::read_dir(fuzz_folder().join("minimised")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            TARGETS.iter().any(|target| target.name == name),
            "{name} is no target"
        );
        total += fs::metadata(&path).unwrap().len();
    }
    assert!(total <= MINIMISED_BYTES_MAX, "{total} bytes");
}

#[test]
fn no_target_finds_a_mistake_in_a_few_thousand_inputs() {
    for target in TARGETS {
        let seeds = seeds(target);
        for seed in &seeds {
            run(target, seed);
        }
        let mut random = Random(1);
        for _ in 0..INPUTS {
            let input = random.bytes();
            run(target, &input);
            if !seeds.is_empty() {
                run(target, &random.mutated(&seeds));
            }
        }
    }
}

/// Names and versions of the packages in a lock file.
fn locked(path: &Path) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(path).unwrap();
    let value = |package: &str, key: &str| {
        let mut lines = package.lines();
        lines
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
            .unwrap()
            .to_owned()
    };
    let packages = text.split("[[package]]").skip(1);
    packages
        .map(|package| (value(package, "name"), value(package, "version")))
        .collect()
}

#[test]
fn what_is_fuzzed_has_the_versions_of_what_is_shipped() {
    let fuzzed = locked(&fuzz_folder().join("Cargo.lock"));
    let shipped = locked(&fuzz_folder().join("../Cargo.lock"));
    let others: Vec<_> = fuzzed
        .difference(&shipped)
        .map(|(name, _)| name.trim_matches('"'))
        .collect();
    assert_eq!(
        others,
        ["cipherbench-fuzz-targets", "libfuzzer-sys"],
        "run: scripts/fuzz.sh lock"
    );
}

#[test]
fn every_target_has_a_program_and_every_program_a_target() {
    let folder = fuzz_folder();
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder.join("fuzz_targets")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        // Exactly this, as the project's checks do not build these.
        let program = format!(
            "#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::run(\"{name}\", data));\n"
        );
        assert_eq!(text, program, "{}", path.display());
        assert!(
            manifest.contains(&format!("name = \"{name}\"")),
            "{name} is not in the manifest"
        );
        files.insert(name);
    }
    let names: BTreeSet<_> = TARGETS
        .iter()
        .map(|target| target.name.to_owned())
        .collect();
    assert_eq!(files, names);
}
