//! The shortest form of `make soak`: two minutes of twelve seconds.

use crate::support::PROGRAM;
use std::path::Path;
use std::process::Command;

/// Exit code of the script where a host cannot run it.
const CANNOT: Option<i32> = Some(3);

/// Under loss, reordering, duplication and cuts, with a rekey each second, and either side killed
/// once.
pub(crate) fn a_short_soak_gives_every_frame_one_end() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/soak.py");
    let ended = Command::new("python3")
        .arg(script)
        .args(["--seconds", "24", "--minute", "12", "--rate", "500"])
        .args(["--program", PROGRAM])
        .output();
    let Ok(ended) = ended else {
        eprintln!("SKIPPED: there is no python3 here, so nothing was soaked");
        return;
    };
    let text = String::from_utf8_lossy(&ended.stdout);
    let error = String::from_utf8_lossy(&ended.stderr);
    eprintln!("{text}{error}");
    match ended.status.code() {
        Some(0) => assert!(text.contains("every frame has one end"), "{text}"),
        code => assert_eq!(code, CANNOT, "{text}{error}"),
    }
}
