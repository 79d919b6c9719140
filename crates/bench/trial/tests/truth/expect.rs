//! Limits of campaigns on devices of known truth: how often an outcome is false.

use crate::bench::{accept, carried_out, empty_journal, invalid};
use crate::device::{CAPACITY, Model, Simulated, Tester};
use campaign::{HostFacts, LabFile, from_text};
use journal::Journal;
use journal::record::{Added, Record};
use plan::Plan;
use stats::{LimitOutcome, Results};

/// Measuring time for added repeats: enough for 100 repeats of a second.
const UNTIL_DECIDED_NS: u64 = 3600 * 1_000_000_000;

/// A device, a trial, and limits with their truth.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) trial: &'static str,
    pub(crate) model: Model,
    /// Each with whether the device keeps it.
    pub(crate) limits: [(String, bool); 2],
}

/// How often a limit was decided, and how often falsely.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    /// Campaigns of which each had two limits.
    pub(crate) runs: u32,
    /// Limits that were decided, of both.
    pub(crate) decided: u32,
    /// Runs with a limit that the device keeps and that counts as violated.
    pub(crate) falsely_violated: u32,
    /// Runs with a limit that the device breaks and that counts as met.
    pub(crate) falsely_met: u32,
    /// Repeats, of all runs.
    pub(crate) repeats: u32,
}

/// The cases: limits so near the truth that chance could decide them, and limits that are clear.
#[must_use]
pub(crate) fn cases() -> Vec<Case> {
    let noisy = |noise| Model {
        noise,
        ..Model::default()
    };
    // The queue of 0.5 ms carries a little more than the capacity in a trial of a second.
    let rate = CAPACITY * 1.0005;
    let rates = |below: f64, above: f64| {
        let limit = |share: f64| format!("throughput >= {:.0} frames/s", share * rate);
        [(limit(below), true), (limit(above), false)]
    };
    let mrr = "mrr: { frame: 64 B, trials: 1, duration: 1 s }";
    let near = |name, noise| Case {
        name,
        trial: mrr,
        model: noisy(noise),
        limits: rates(0.999, 1.001),
    };
    vec![
        near("limits 0.1 % from the truth, noise of 1 %", 0.01),
        near("limits 0.1 % from the truth, noise of 5 %", 0.05),
        Case {
            name: "limits 3 % from the truth, noise of 1 %",
            trial: mrr,
            model: noisy(0.01),
            limits: rates(0.97, 1.03),
        },
        Case {
            name: "search, limits 1 % from the truth",
            trial: "throughput: { frame: 64 B, profile: fast }",
            model: Model::default(),
            limits: rates(0.99, 1.01),
        },
        Case {
            name: "search, limits 6 % from the truth",
            trial: "throughput: { frame: 64 B, profile: fast }",
            model: Model::default(),
            limits: rates(0.94, 1.06),
        },
        Case {
            name: "loss of 9.09 %, limits 0.2 % from it, noise of 2 %",
            trial: "load: { frame: 64 B, rate: 330 kpps, duration: 1 s }",
            model: noisy(0.02),
            limits: [
                ("loss at 330 kpps <= 9.25 %".to_owned(), true),
                ("loss at 330 kpps <= 8.85 %".to_owned(), false),
            ],
        },
        Case {
            name: "no loss",
            trial: "load: { frame: 64 B, rate: 200 kpps, duration: 1 s }",
            model: Model::default(),
            limits: [
                ("loss at 200 kpps = 0".to_owned(), true),
                ("loss at 200 kpps <= 0.1 %".to_owned(), true),
            ],
        },
        Case {
            name: "one frame lost per trial",
            trial: "load: { frame: 64 B, rate: 200 kpps, duration: 1 s }",
            model: Model {
                lost_each_trial: 1,
                ..Model::default()
            },
            limits: [
                ("loss at 200 kpps = 0".to_owned(), false),
                ("loss at 200 kpps <= 100 ppm".to_owned(), true),
            ],
        },
    ]
}

impl Case {
    fn plan(&self, repeats: u32, until_decided: bool) -> Plan {
        let [(one, _), (other, _)] = &self.limits;
        let text = format!(
            "campaign: c\nduts: [router]\nrepeats: {repeats}\ncalibrate: off\n\
             trials: [{}]\nexpect:\n  - {one}\n  - {other}\n",
            self.trial
        );
        let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let planned = campaign.plan(&LabFile::built_in(), &HostFacts { cores: 8 });
        let mut plan = planned.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        plan.expect.until_decided_ns = until_decided.then_some(UNTIL_DECIDED_NS);
        plan
    }

    /// Runs the campaign with each seed, with further repeats if asked.
    #[must_use]
    pub(crate) fn count(&self, repeats: u32, until_decided: bool, seeds: u64) -> Count {
        let plan = self.plan(repeats, until_decided);
        let mut count = Count::default();
        for seed in 0..seeds {
            let results = self.results(&plan, seed);
            let expected = results.expect.as_ref().expect("the campaign has limits");
            let outcomes = expected.limits.iter().map(|limit| limit.outcome);
            let judged: Vec<(LimitOutcome, bool)> = outcomes
                .zip(self.limits.iter().map(|(_, is_kept)| *is_kept))
                .collect();
            let has = |wanted: (LimitOutcome, bool)| u32::from(judged.contains(&wanted));
            count.runs += 1;
            count.falsely_violated += has((LimitOutcome::Violated, true));
            count.falsely_met += has((LimitOutcome::Met, false));
            let decided = judged
                .iter()
                .filter(|(it, _)| *it != LimitOutcome::Undecided);
            count.decided += u32::try_from(decided.count()).unwrap_or(u32::MAX);
            count.repeats += results.cells[0].repeats.measured;
        }
        count
    }

    fn results(&self, plan: &Plan, seed: u64) -> Results {
        let mut journal = empty_journal(plan);
        self.measure(&mut journal, 1..=plan.repeats, seed);
        loop {
            let results = Results::of(&journal);
            let expected = results.expect.as_ref().expect("the campaign has limits");
            let Some(round) = expected.next_round(&journal, &results) else {
                return results;
            };
            let before = journal.header.plan.repeats_of(&round.cells[0]);
            let added = Record::Added(Added {
                at_unix_ns: 0,
                repeats: round.repeats,
                cells: round.cells,
            });
            journal
                .accept(added)
                .unwrap_or_else(|error| panic!("{error}"));
            self.measure(&mut journal, before + 1..=round.repeats, seed);
        }
    }

    fn measure(&self, journal: &mut Journal, repeats: std::ops::RangeInclusive<u32>, seed: u64) {
        let cell = journal.header.plan.cells[0].clone();
        for repeat in repeats {
            // Each repeat differs, and differs from the repeats of every other seed.
            let seed = seed.wrapping_mul(1000).wrapping_add(u64::from(repeat));
            let mut rig = Simulated::new(self.model, Tester::default(), seed);
            let found = carried_out(&cell, repeat, &mut rig);
            let reasons = invalid(&cell, &found);
            accept(journal, (cell.id.clone(), repeat, found, reasons));
        }
    }
}
