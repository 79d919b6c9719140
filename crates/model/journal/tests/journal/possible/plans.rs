//! Plans that cannot be.

use super::*;

#[test]
fn a_plan_that_cannot_be_is_refused() {
    for (from, to, problem) in [
        (
            "\"repeats\":3",
            "\"repeats\":0",
            "a plan of 0 repeats cannot be",
        ),
        (
            "\"repeats\":3",
            "\"repeats\":4000000000",
            "a plan of 4000000000 repeats cannot be",
        ),
        (
            "\"estimate_ns\":3000000000",
            "\"estimate_ns\":3000000000000000000",
            "a plan with the number 3000000000000000000 cannot be",
        ),
    ] {
        let header = Header {
            format: 5,
            ..header()
        };
        let line = serde_json::to_string(&Record::Header(Box::new(header))).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let bad = line.replace(from, to) + "\n";
        fs::write(dir.path().join(FILE_NAME), bad).unwrap();
        let error = read(dir.path()).unwrap_err().to_string();
        assert!(error.contains(":1: ") && error.contains(problem), "{error}");
    }
}
