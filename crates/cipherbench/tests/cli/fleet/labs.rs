//! Which lab a job goes to, and what a submitter is told of it.

use super::{CAMPAIGN, free};
use crate::support::{Sandbox, end, finish, kill, read_line, start, wait_for};
use nix::sys::signal::SIGTERM;

pub(crate) fn a_job_goes_to_the_lab_that_its_campaign_names_and_submit_says_if_none_is_there() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    let naming = |lab: &str| CAMPAIGN.replace("repeats", &format!("lab: {lab}\nrepeats"));
    sandbox.write("here.yaml", &naming("memory"));
    sandbox.write("nowhere.yaml", &naming("namespaces"));
    sandbox.write("another.yaml", "lab: another\nkind: memory\n");
    let (listen, url) = free();
    let fleet = |words: &[&str]| {
        let mut all = vec!["fleet", "--url", &url];
        all.extend(words);
        sandbox.interruptible(&all)
    };
    let mut server = start(&mut fleet(&["server", "--open", "--listen", &listen]));
    assert_eq!(read_line(&mut server).trim(), format!("ready url={url}"));
    let submit = |words: &[&str]| {
        let mut all = vec!["submit"];
        all.extend(words);
        let ended = end(&mut fleet(&all)).exits(0);
        (ended.stdout.trim().to_owned(), ended.stderr)
    };
    let (job, said) = submit(&["campaign.yaml"]);
    let expected = format!(
        "warning: job {job} waits: no agent offers a lab\n\
         help: no lab is on offer: `cipherbench fleet agent LAB` offers one; `cipherbench fleet cancel {job}` withdraws \
         the job\n"
    );
    assert_eq!(said, expected);
    end(&mut fleet(&["cancel", &job])).exits(0);

    let words = ["agent", "memory", "another.yaml", "--label", "site=here"];
    let agent = start(&mut fleet(&words));
    let await_line = |words: &str| {
        wait_for(words, || {
            let status = end(&mut fleet(&["status"])).exits(0).stdout;
            let is_there = status.lines().any(|line| line.contains(words));
            is_there.then_some(())
        });
    };
    for lab in ["lab memory ", "lab another "] {
        await_line(lab);
    }
    // Several, so that both labs would take one.
    let named: Vec<_> = (0..3).map(|_| submit(&["here.yaml"])).collect();
    let elsewhere = submit(&["here.yaml", "--lab", "another"]);
    assert_eq!(elsewhere.1, "");
    for (job, said) in &named {
        assert_eq!(said, "");
        await_line(&format!("{job} here.yaml done in memory"));
    }
    await_line(&format!("{} here.yaml done in another", elsewhere.0));

    let (job, said) = submit(&["nowhere.yaml"]);
    let expected = format!(
        "warning: job {job} waits: no agent offers the lab namespaces\n\
         help: on offer: another site=here, memory site=here; `cipherbench fleet cancel {job}` withdraws the job\n"
    );
    assert_eq!(said, expected);
    await_line("not in memory: it asks for lab namespaces");
    let (_, said) = submit(&["here.yaml", "--select", "site=there"]);
    let expected = "no agent offers the lab memory with site=there\nhelp: on offer: another";
    assert!(said.contains(expected), "{said}");
    for child in [agent, server] {
        kill(child.id().cast_signed(), SIGTERM);
        finish(child).exits(0);
    }
}
