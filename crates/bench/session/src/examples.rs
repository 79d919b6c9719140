//! The shipped campaigns and labs, which are built into the program.

use crate::error::SessionError;
use crate::listing::{self, Entry};
use campaign::{CAMPAIGNS, Campaign, HostFacts, LABS, LabFile, Shipped};
use plan::Plan;
use std::path::Path;
use units::human;
use yaml::names;

/// Two cores, as for the times in docs/campaign.md: the list is the same on every machine.
const HOST: HostFacts = HostFacts { cores: 2 };

/// Returns the list of all shipped campaigns and labs, for a terminal of `width` columns.
#[must_use]
pub fn examples(width: usize) -> String {
    let campaigns = CAMPAIGNS.iter().map(|shipped| {
        let planned = planned(shipped);
        let (time, lab) = planned.map_or_else(Default::default, |(plan, lab)| {
            let time = human::estimate_ns(plan.estimate_ns() as f64);
            (
                time,
                lab.map(|name| format!(" Needs a lab, such as `--lab {name}`.")),
            )
        });
        Entry {
            columns: vec![shipped.name.to_owned(), time],
            text: shipped.description() + &lab.unwrap_or_default(),
        }
    });
    let campaigns: Vec<Entry> = campaigns.collect();
    let labs = LABS.iter().map(|shipped| Entry {
        columns: vec![shipped.name.to_owned()],
        text: shipped.description(),
    });
    let labs: Vec<Entry> = labs.collect();
    let paragraph = |text: &str| listing::wrapped(text, width, usize::MAX).join("\n");
    format!(
        "{}\n\n{}\n{}\n\n{}\n{}\n",
        paragraph(
            "Campaigns, for `run`, `check` and `plan`; times are estimates for a machine of two cores, `plan` has \
             those for this one:"
        ),
        listing::write(&["Name", "Time", "Measures"], &campaigns, usize::MAX, width),
        paragraph("Labs, for `--lab`:"),
        listing::write(&["Name", "Is"], &labs, usize::MAX, width),
        paragraph(
            "`cipherbench examples NAME` prints one, `cipherbench examples NAME --write` makes a file of it to change."
        ),
    )
}

/// The plan of a shipped campaign in the lab that its text names, or else in the first one that it
/// fits, and that lab's name unless it is the usual one.
fn planned(shipped: &Shipped) -> Option<(Plan, Option<&'static str>)> {
    let campaign = Campaign::built_in_named(shipped.name)?;
    if let Ok(plan) = campaign.plan(&campaign.usual_lab(), &HOST) {
        return Some((plan, None));
    }
    let named = LABS.iter().filter(|lab| shipped.text.contains(lab.file));
    named.chain(LABS).find_map(|lab| {
        let plan = campaign.plan(&LabFile::built_in_named(lab.name)?, &HOST);
        Some((plan.ok()?, Some(lab.name)))
    })
}

/// Returns the shipped campaign or lab of a name. A campaign has precedence over a lab of its name,
/// which is found by its path.
///
/// # Errors
/// When there is none.
pub fn example(name: &str) -> Result<&'static Shipped, SessionError> {
    let all = || CAMPAIGNS.iter().chain(LABS);
    // `quick`, `quick.yaml`, `campaigns/quick` and `campaigns/quick.yaml` are the same.
    let wanted = name.strip_suffix(".yaml").unwrap_or(name);
    let found = all().find(|file| {
        file.name == wanted
            || file
                .file
                .strip_suffix(".yaml")
                .is_some_and(|it| it == wanted)
    });
    found.ok_or_else(|| {
        let wanted = Path::new(wanted).file_name();
        let wanted = wanted.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let nearest = names::nearest(&wanted, all().map(|file| file.name));
        SessionError::UnknownExample {
            name: listing::shown(name),
            nearest: nearest.map(str::to_owned),
        }
    })
}

/// Returns the lab that has the name of a shipped campaign, if this is one.
#[must_use]
pub fn namesake(example: &Shipped) -> Option<&'static Shipped> {
    let mut labs = LABS.iter();
    labs.find(|lab| lab.name == example.name && lab.file != example.file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn every_campaign_fits_a_shipped_lab() {
        for shipped in CAMPAIGNS {
            let (_, lab) = planned(shipped).unwrap_or_else(|| panic!("{}", shipped.name));
            let expected = match shipped.name {
                "weather" => Some("weather"),
                "external-gateway" => Some("gateway"),
                "external-macsec" | "external-opaque" => Some("bump"),
                name if name.starts_with("external-") => Some("external"),
                _ => None,
            };
            assert_eq!(lab, expected, "{}", shipped.name);
        }
    }

    #[test]
    fn the_list_fits_every_terminal() {
        for width in [40, 60, 80, 120] {
            let text = examples(width);
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
            for shipped in CAMPAIGNS.iter().chain(LABS) {
                assert!(text.contains(shipped.name), "{}", shipped.name);
            }
        }
    }

    #[test]
    fn an_example_has_a_name_and_a_path() {
        for name in ["weather", "weather.yaml", "campaigns/weather"] {
            assert_eq!(example(name).unwrap().file, "campaigns/weather.yaml");
        }
        assert_eq!(
            example("labs/weather.yaml").unwrap().file,
            "labs/weather.yaml"
        );
        let weather = example("weather").unwrap();
        assert_eq!(namesake(weather).unwrap().file, "labs/weather.yaml");
        assert_eq!(namesake(example("quick").unwrap()), None);
        let error = example("campaigns/quik.yaml").unwrap_err().to_string();
        assert!(error.contains("did you mean `quick`?"), "{error}");
        assert!(!example("zzzzzz").unwrap_err().to_string().contains("mean"));
    }
}
