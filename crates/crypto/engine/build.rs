//! Builds the shim around Intel's multi-buffer library and sets `cfg(ipsec_mb)`, where the
//! library's header is installed.
//!
//! `CIPHERBENCH_NO_IPSEC_MB=1` builds without it, as on a host that lacks the header.
//! `CIPHERBENCH_SANITIZE=1` builds the shim with AddressSanitizer and UndefinedBehaviorSanitizer;
//! programs then need the former's library preloaded (`make hardening`).

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SHIM: &str = "shim";
const SHIM_FILES: [&str; 4] = ["ipsec_mb.c", "gcm.c", "chacha.c", "encrypt_then_mac.c"];
const HEADER: &str = "/usr/include/intel-ipsec-mb.h";
const OPT_OUT: &str = "CIPHERBENCH_NO_IPSEC_MB";
const SANITIZE: &str = "CIPHERBENCH_SANITIZE";

/// Crates that compute, with the variable for the version of each.
const VERSIONS: [(&str, &str); 4] = [
    ("aws-lc-rs", "AWS_LC_RS_VERSION"),
    ("aes", "AES_VERSION"),
    ("aes-gcm", "AES_GCM_VERSION"),
    ("hmac", "HMAC_VERSION"),
];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(ipsec_mb)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SHIM}");
    println!("cargo::rerun-if-env-changed={OPT_OUT}");
    println!("cargo::rerun-if-env-changed={SANITIZE}");
    for (name, variable) in VERSIONS {
        println!("cargo::rustc-env={variable}={}", locked_version(name));
    }

    let x86_64 = env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if !x86_64 || env::var_os(OPT_OUT).is_some() {
        return;
    }
    // Installing the header later changes its directory.
    let watched = if Path::new(HEADER).exists() {
        HEADER
    } else {
        "/usr/include"
    };
    println!("cargo::rerun-if-changed={watched}");

    let mut build = cc::Build::new();
    build
        .files(SHIM_FILES.map(|file| Path::new(SHIM).join(file)))
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-std=gnu11");
    if finds_header(&build) {
        let sanitize = env::var_os(SANITIZE).is_some();
        if sanitize {
            for flag in ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] {
                build.flag(flag);
            }
        }
        build.compile("cipherbench_ipsec_mb");
        if sanitize {
            println!("cargo::rustc-link-lib=dylib=asan");
            println!("cargo::rustc-link-lib=dylib=ubsan");
        }
        println!("cargo::rustc-cfg=ipsec_mb");
    } else {
        println!(
            "cargo::warning=engine ipsec-mb is not built in: intel-ipsec-mb.h was not found \
             (install libipsec-mb-dev)"
        );
    }
}

/// Runs the compiler, so that include paths from its environment apply. It only preprocesses: zig's
/// fails when it is told to check the syntax, since it looks for an object file afterwards.
fn finds_header(build: &cc::Build) -> bool {
    let mut probe: Command = build.get_compiler().to_command();
    probe.args(["-E", "-include", "intel-ipsec-mb.h", "-x", "c", "/dev/null"]);
    probe.output().is_ok_and(|output| output.status.success())
}

/// Returns the version in the lock file, since the crates do not export theirs.
fn locked_version(name: &str) -> String {
    const LOCK: &str = "../../../Cargo.lock";
    println!("cargo::rerun-if-changed={LOCK}");
    let lock = fs::read_to_string(LOCK).unwrap_or_default();
    let name = format!("name = \"{name}\"\n");
    lock.split("[[package]]")
        .find(|package| package.contains(&name))
        .and_then(|package| package.split("version = \"").nth(1)?.split('"').next())
        .unwrap_or("unknown")
        .to_owned()
}
