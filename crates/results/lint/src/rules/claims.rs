//! Compares conclusions of the text with the figures.

use crate::claim::Holds;
use crate::document::Document;
use crate::evaluation::{Outcome, outcomes};
use crate::finding::{Finding, Rule};

/// Claims that do not hold for any values that round to the figures.
pub(super) fn contradicted(document: &Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for claim in &document.claims {
        let tests = claim.tests.iter();
        let outcomes: Vec<Outcome> = tests
            .flat_map(|test| outcomes(test, document, claim.within))
            .collect();
        let failed: Vec<&Outcome> = outcomes.iter().filter(|it| !it.holds).collect();
        let is_contradicted = match claim.holds {
            Holds::Everywhere => !failed.is_empty(),
            // Exactly half is no majority.
            Holds::Mostly => 2 * failed.len() >= outcomes.len(),
        };
        // In logarithms, so that half and double are equally far off.
        let away = |outcome: &&&Outcome| outcome.ratio.ln().abs();
        let worst = failed.iter().max_by(|a, b| away(a).total_cmp(&away(b)));
        let Some(worst) = worst.filter(|_| is_contradicted) else {
            continue;
        };
        let count = match (failed.len(), outcomes.len()) {
            (_, 1) => String::new(),
            (1, all) => format!(", the only one of {all} comparisons"),
            (failed, all) => {
                format!(", as are {failed} of {all} comparisons; this one is the farthest off")
            }
        };
        findings.push(Finding {
            rule: Rule::ClaimContradicted,
            likeness: None,
            place: claim.place.clone(),
            subject: format!("“{}”", claim.says),
            arithmetic: format!("{} is false{count}", worst.shown),
            meaning: match claim.holds {
                Holds::Everywhere => {
                    "the text concludes what its own figures do not show".to_owned()
                }
                Holds::Mostly => format!(
                    "it holds for {} of {} pairs: no majority",
                    outcomes.len() - failed.len(),
                    outcomes.len()
                ),
            },
        });
    }
    findings
}
