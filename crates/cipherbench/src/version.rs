//! The program's version.

use std::sync::LazyLock;

/// Version and revision, as in journals: `0.1.0 (a1b2c3d4)`, or `0.1.0` if it was not built from a
/// git tree.
pub(crate) fn short() -> &'static str {
    static SHORT: LazyLock<String> = LazyLock::new(|| match env!("CIPHERBENCH_REVISION") {
        "" => env!("CARGO_PKG_VERSION").to_owned(),
        revision => format!("{} ({revision})", env!("CARGO_PKG_VERSION")),
    });
    &SHORT
}

/// Version and revision as one word, in the form of semantic versioning: `0.1.0+a1b2c3d4`.
pub(crate) fn word() -> String {
    match env!("CIPHERBENCH_REVISION") {
        "" => env!("CARGO_PKG_VERSION").to_owned(),
        revision => format!("{}+{revision}", env!("CARGO_PKG_VERSION")),
    }
}

/// Version and revision, followed by the crypto engines with their versions, or why one cannot be
/// used here. The engines are omitted unless the command line asks for them: testing them loads
/// libraries that stay in memory.
pub(crate) fn long() -> &'static str {
    if std::env::args_os().all(|word| word != "--version") {
        return short();
    }
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let engines = engine::engines()
            .iter()
            .map(|engine| match &engine.version {
                Ok(version) => format!("\nengine {}: {version}", engine.name),
                Err(reason) => format!("\nengine {}: {reason}", engine.name),
            });
        short().to_owned() + &engines.collect::<String>()
    });
    &LONG
}
