//! Sets `cfg(engines)` where the installed libcrypto has engines: version 3 has them unless they
//! were left out of the build, version 4 has none.

fn main() {
    println!("cargo:rustc-check-cfg=cfg(engines)");
    let hexadecimal = |text: String| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let version = std::env::var("DEP_OPENSSL_VERSION_NUMBER")
        .ok()
        .and_then(hexadecimal);
    let version = version.expect("openssl-sys exports the version of libcrypto");
    assert!(
        version >= 0x3000_0000,
        "OpenSSL 3.0 or newer is needed: install libssl-dev of Debian 12, Ubuntu 22.04 or later"
    );
    let left_out = std::env::var("DEP_OPENSSL_CONF").unwrap_or_default();
    if version < 0x4000_0000 && !left_out.split(',').any(|name| name == "OPENSSL_NO_ENGINE") {
        println!("cargo:rustc-cfg=engines");
    }
}
