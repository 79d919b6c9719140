//! What is missing is reported, and fails in CI only.

use std::process::Command;

/// Set in the process that lacks something.
const LACKING: &str = "CIPHERBENCH_TEST_LACKS";

#[test]
fn what_is_missing_is_named_and_fails_in_ci_only() {
    if std::env::var_os(LACKING).is_some() {
        return testing::lacks("pages of the moon", "telescope", "apt install telescope");
    }
    let run = |ci: Option<&str>| {
        let mut test = Command::new(std::env::current_exe().expect("this file"));
        test.args(["--exact", "what_is_missing_is_named_and_fails_in_ci_only"]);
        test.env(LACKING, "1").env_remove("CI");
        test.envs(ci.map(|value| ("CI", value)));
        test.output().expect("this file runs")
    };
    for (ci, passes) in [(None, true), (Some("false"), true), (Some("true"), false)] {
        let output = run(ci);
        assert_eq!(output.status.success(), passes, "{ci:?}: {output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let line = "SKIPPED: pages of the moon: no telescope here: apt install telescope";
        assert!(errors.lines().any(|it| it == line), "{ci:?}: {errors}");
    }
}
