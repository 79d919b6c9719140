use super::*;
use std::path::{Path, PathBuf};

/// A library with this C code.
fn library(folder: &Path, code: &str) -> PathBuf {
    let (source, library) = (folder.join("library.c"), folder.join("library.so"));
    std::fs::write(&source, code).expect("a source");
    let mut cc = std::process::Command::new("cc");
    cc.args(["-shared", "-fPIC", "-w", "-o"])
        .args([&library, &source]);
    assert!(cc.status().expect("cc").success(), "{cc:?}");
    library
}

/// A libcrypto of this version with functions that do nothing.
fn libcrypto(version: &str, functions: &[&[&str]]) -> String {
    let functions: String = functions
        .concat()
        .iter()
        .map(|name| format!("void {name}(void) {{}}\n"))
        .collect();
    format!("unsigned long OpenSSL_version_num(void) {{ return {version}; }}\n{functions}")
}

fn open_code(code: &str) -> Result<bool, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = library(folder.path(), code);
    let opened = open(&[path.to_str().expect("it is UTF-8")]);
    opened.map(|(_, _, engines)| engines.is_some())
}

#[test]
fn a_missing_libcrypto_is_told_with_its_package() {
    let names = ["libcrypto.so.never", "libcrypto-of-nobody.so"];
    let error = open(&names).err().expect("there is none");
    for part in [
        "version 3.0 or newer",
        "sudo apt install libssl3",
        names[0],
        names[1],
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_libcrypto_before_version_3_is_refused() {
    for (number, version) in [("0x1010117fUL", "1.1"), ("0x20000000UL", "2.0")] {
        let code = libcrypto(number, &[Functions::NAMES, EngineFunctions::NAMES]);
        let error = open_code(&code).expect_err("it is old");
        let reason = format!("library.so has version {version}; install it");
        assert!(error.contains(&reason), "{error}");
    }
}

#[test]
fn a_libcrypto_that_lacks_functions_is_refused_with_their_name() {
    let (lacking, others) = Functions::NAMES.split_last().expect("there are some");
    let error = open_code(&libcrypto("0x30000020UL", &[others])).expect_err("it lacks one");
    assert!(error.contains("library.so lacks a function: "), "{error}");
    assert!(error.contains(lacking), "{error}");
    let error = open_code("int unrelated;").expect_err("it is none");
    assert!(error.contains("OpenSSL_version_num"), "{error}");
}

#[test]
fn a_libcrypto_without_engines_serves() {
    let code = libcrypto("0x40000000UL", &[Functions::NAMES]);
    assert_eq!(open_code(&code), Ok(false));
    let code = libcrypto("0x30000020UL", &[Functions::NAMES, EngineFunctions::NAMES]);
    assert_eq!(open_code(&code), Ok(true));
}
