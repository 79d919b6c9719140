//! The order of trials.

use campaign::{HostFacts, LabFile, from_text};
use plan::{Order, Plan};
use std::collections::BTreeSet;

/// A plan with this order: four groups of three devices.
fn plan_of(head: &str) -> Plan {
    let text = format!(
        "campaign: x\nrepeats: 4\n{head}duts: [direct, cipherbench, wireguard-go]\n\
         trials:\n  - tcp: {{ mtu: [1300 B, 1400 B, 1450 B, 1500 B], cores: 1 }}\n"
    );
    let campaign = from_text("x.yaml", &text).unwrap();
    let host = HostFacts { cores: 2 };
    campaign.plan(&LabFile::built_in(), &host).unwrap()
}

/// The ids of each repeat in the order in which they run.
fn blocks(plan: &Plan) -> Vec<Vec<&str>> {
    let trials: Vec<_> = plan.trials().collect();
    assert_eq!(trials.len(), plan.trial_count());
    let blocks = trials.chunk_by(|a, b| a.repeat == b.repeat);
    let ids = blocks.map(|block| block.iter().map(|trial| trial.cell.id.as_str()).collect());
    ids.collect()
}

#[test]
fn each_repeat_is_a_block_in_an_order_of_its_own() {
    let mut plan = plan_of("");
    assert_eq!(plan.order, Order::Random { seed: None });
    let of_file: Vec<String> = plan.cells.iter().map(|cell| cell.id.clone()).collect();
    plan.order = plan.order.with_seed(1);
    assert_eq!(plan.order.with_seed(2), plan.order, "a seed is drawn once");
    let blocks = blocks(&plan);
    assert_eq!(blocks.len(), 4);
    let different: BTreeSet<_> = blocks.iter().collect();
    assert_eq!(different.len(), 4);
    for block in &blocks {
        let all: BTreeSet<&str> = block.iter().copied().collect();
        assert_eq!(all, of_file.iter().map(String::as_str).collect());
        let group = |id: &str| id.rsplit_once('/').unwrap().0.to_owned();
        let groups = block.chunk_by(|a, b| group(a) == group(b));
        // Cells that are compared must be measured close to one another.
        assert!(groups.map(<[_]>::len).eq([3; 4]), "a group was torn apart");
        assert_ne!(block, &of_file);
    }
    // A pair of repeats: a drift that favours the first cell of one favours the last of the
    // other.
    let mut reversed = blocks[0].clone();
    reversed.reverse();
    assert_eq!(blocks[1], reversed);
}

#[test]
fn a_seed_reproduces_the_order_and_another_changes_it() {
    let (one, again) = (plan_of("seed: 42\n"), plan_of("seed: 42\n"));
    assert_eq!(blocks(&one), blocks(&again));
    assert_ne!(blocks(&one), blocks(&plan_of("seed: 43\n")));
    // Part of the format: a resumed run continues in the order of the journal's seed.
    let first: Vec<&str> = blocks(&one)[0][..3].to_vec();
    assert_eq!(first, PINNED);
    let journal = serde_json::to_string(&one).unwrap();
    let read: Plan = serde_json::from_str(&journal).unwrap();
    assert_eq!(blocks(&read), blocks(&one));
}

/// Computed by another program from the description of `Order::cells`.
const PINNED: [&str; 3] = [
    "tcp/mtu=1300/cores=1/wireguard-go",
    "tcp/mtu=1300/cores=1/direct",
    "tcp/mtu=1300/cores=1/cipherbench",
];

#[test]
fn the_order_of_the_file_is_kept_on_request_and_for_older_journals() {
    let plan = plan_of("order: file\n");
    let of_file: Vec<&str> = plan.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert!(blocks(&plan).iter().all(|block| *block == of_file));
    let mut older = serde_json::to_value(&plan).unwrap();
    // Versions without random blocks measured in the order of the file.
    older.as_object_mut().unwrap().remove("order");
    let older: Plan = serde_json::from_value(older).unwrap();
    assert_eq!(older.order, Order::File);
}

#[test]
fn every_order_of_a_group_is_equally_likely() {
    let mut firsts = [0_u32; 3];
    let mut plan = plan_of("");
    let group: Vec<String> = plan.cells[..3].iter().map(|cell| cell.id.clone()).collect();
    for seed in 0..3_000 {
        plan.order = Order::Random { seed: Some(seed) };
        let of_group = |trial: plan::TrialRef<'_>| group.iter().position(|id| *id == trial.cell.id);
        firsts[plan.trials().find_map(of_group).unwrap()] += 1;
    }
    // Each 1000 with a standard deviation of 26.
    assert!(
        firsts.iter().all(|count| (900..1_100).contains(count)),
        "{firsts:?}"
    );
}

#[test]
fn a_seed_for_the_order_of_the_file_is_a_mistake() {
    let text = "campaign: x\norder: file\nseed: 1\nduts: [direct]\ntrials: [ping]\n";
    let mistakes = from_text("x.yaml", text).unwrap_err().to_string();
    assert!(
        mistakes.contains("needs no seed") && mistakes.contains("x.yaml:3"),
        "{mistakes}"
    );
}
