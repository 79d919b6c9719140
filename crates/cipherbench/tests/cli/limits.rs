//! Limits of campaigns: exit codes, JUnit, and repeats until they are decided.

use crate::support::{Sandbox, end};
use serde_json::Value;

/// A campaign in memory that any machine measures, with these limits.
fn campaign(repeats: u32, limits: &[&str]) -> String {
    let limits: String = limits
        .iter()
        .map(|limit| format!("  - {limit}\n"))
        .collect();
    format!(
        "campaign: limits\nlab: memory\nrepeats: {repeats}\ncalibrate: off\nduts: [cipherbench]\n\
         trials:\n  - mrr: {{ frame: 512 B, trials: 1, duration: 200 ms }}\nexpect:\n{limits}"
    )
}

pub(crate) fn limits_decide_the_exit_code() {
    for (limit, code, outcome) in [
        ("mrr throughput >= 10 frames/s", 0, "met"),
        ("mrr throughput <= 10 frames/s", 1, "violated"),
        ("mrr burst >= 10 frames", 2, ""),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("campaign.yaml", &campaign(4, &[limit]));
        let ended = end(&mut sandbox.program(&["run", "campaign.yaml", "--junit", "limits.xml"]));
        if code == 2 {
            ended.exits(2).says("campaign.yaml:9:9");
            continue;
        }
        let ended = ended.exits(code);
        assert!(ended.stdout.contains("Of 1 limit, "), "{}", ended.stdout);
        assert!(ended.stdout.contains(outcome), "{}", ended.stdout);
        let junit = std::fs::read_to_string(sandbox.path("limits.xml")).expect("JUnit");
        assert_eq!(junit.contains("<failure"), code == 1, "{junit}");
        let markdown = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
        assert!(markdown.contains("Limits"), "{markdown}");
        // A report of the same run has the same outcome.
        let run = sandbox.only_run().display().to_string();
        end(&mut sandbox.program(&["report", &run, "--junit", "again.xml"])).exits(code);
        let again = std::fs::read_to_string(sandbox.path("again.xml")).expect("JUnit");
        assert_eq!(again, junit);
    }
}

pub(crate) fn undecided_limits_get_repeats_until_they_are_decided() {
    let sandbox = Sandbox::new();
    let limits = ["mrr throughput >= 10 frames/s"];
    sandbox.write("campaign.yaml", &campaign(1, &limits));
    // One repeat decides nothing.
    let one = end(&mut sandbox.program(&["run", "campaign.yaml", "--out", "one"])).exits(5);
    assert!(one.stdout.contains("1 undecided"), "{}", one.stdout);
    let ended = end(&mut sandbox.program(&["run", "campaign.yaml", "--until-decided", "1 min"]));
    let ended = ended.exits(0);
    assert!(ended.stdout.contains("1 met"), "{}", ended.stdout);
    let results: Value = serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let expect = &results["expect"];
    assert!(expect["rounds"].as_u64() >= Some(1), "{expect}");
    assert!(expect["trials_added"].as_u64() >= Some(2), "{expect}");
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    assert!(journal.contains("\"record\":\"added\""), "{journal}");
    let run = sandbox.only_run().display().to_string();
    end(&mut sandbox.program(&["resume", &run]))
        .exits(0)
        .says("nothing is left to do");

    // Interrupted between the planned repeats and the first round, the run goes on with that round.
    let before: String = journal
        .split_inclusive('\n')
        .take_while(|line| !line.contains("\"record\":\"added\""))
        .collect();
    assert!(before.contains("\"record\":\"end\""), "{before}");
    sandbox.write(&format!("{run}/journal.jsonl"), &before);
    let resumed = end(&mut sandbox.program(&["resume", &run, "--trust"])).exits(0);
    assert!(resumed.stdout.contains("1 met"), "{}", resumed.stdout);
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    assert!(journal.contains("\"record\":\"added\""), "{journal}");
}

pub(crate) fn options_about_limits_need_a_campaign_with_limits() {
    let sandbox = Sandbox::new();
    let text = campaign(1, &["mrr throughput >= 10 frames/s"]);
    let without = text.split("expect:").next().expect("the beginning");
    sandbox.write("campaign.yaml", without);
    for option in [["--until-decided", "1 min"], ["--junit", "x.xml"]] {
        let words = [&["run", "campaign.yaml"][..], &option].concat();
        end(&mut sandbox.program(&words))
            .exits(2)
            .says("this campaign has none");
    }
    assert!(!sandbox.path("runs").exists());
}
