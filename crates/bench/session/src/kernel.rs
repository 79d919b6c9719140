//! Kernel features that a campaign needs and this host lacks: reported before anything is measured.

use lab::host::KernelFeature;
use plan::{LabKind, Plan};
use std::fmt::Write;
use units::human::counted;

/// A feature that this host's kernel lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lack {
    feature: KernelFeature,
    /// The kernel's reason.
    reason: String,
    /// Names of the devices under test that need it.
    duts: Vec<String>,
    /// Number of their cells.
    cells: usize,
}

/// Returns the features that a plan needs and that this host's kernel lacks. Hosts of a lab are not
/// asked.
pub(crate) fn lacking(plan: &Plan) -> Vec<Lack> {
    if plan.lab.kind != LabKind::Namespaces || plan.lab.hosts.is_some() {
        return Vec::new();
    }
    lacking_where(plan, KernelFeature::refusal)
}

fn lacking_where(plan: &Plan, refusal: impl Fn(KernelFeature) -> Option<String>) -> Vec<Lack> {
    // A plan has thousands of cells: each feature is tried once.
    let mut tried: Vec<(KernelFeature, Option<Lack>)> = Vec::new();
    let needed = plan.cells.iter().flat_map(|cell| {
        let features = KernelFeature::of_cell(cell);
        features.map(move |feature| (cell, feature))
    });
    for (cell, feature) in needed {
        let known = tried.iter().position(|(known, _)| *known == feature);
        let at = known.unwrap_or_else(|| {
            let lack = refusal(feature).map(|reason| Lack {
                feature,
                reason,
                duts: Vec::new(),
                cells: 0,
            });
            tried.push((feature, lack));
            tried.len() - 1
        });
        if let Some(lack) = &mut tried[at].1 {
            lack.cells += 1;
            if !lack.duts.contains(&cell.dut.name) {
                lack.duts.push(cell.dut.name.clone());
            }
        }
    }
    tried.into_iter().filter_map(|(_, lack)| lack).collect()
}

/// A warning about features that a campaign with this number of cells lacks, if any.
pub(crate) fn warning(subject: &str, lacks: &[Lack], cells: usize) -> Option<String> {
    let mut text = String::new();
    for lack in lacks {
        let affected = match lack.cells {
            all if all == cells => "all cells".to_owned(),
            some => format!("{some} of {}", counted(cells as u64, "cell")),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "warning: {subject}this kernel lacks {}, for DUT {}: {affected} ({})",
            lack.feature.name(),
            lack.duts.join(", "),
            lack.reason
        );
    }
    let features: Vec<KernelFeature> = lacks.iter().map(|lack| lack.feature).collect();
    (!lacks.is_empty()).then(|| text + &help(&features))
}

fn help(features: &[KernelFeature]) -> String {
    let in_user_space = if features.contains(&KernelFeature::Esp) {
        "; `strongswan: { data_path: libipsec }` seals without it"
    } else {
        ""
    };
    format!(
        "help: load its module, or use another kernel: these cells fail otherwise{in_user_space}\n"
    )
}

/// The same of several campaigns: each feature once, with the number of campaigns that need it.
/// Empty without any.
pub(crate) fn warning_of_several(campaigns: &[&[Lack]]) -> String {
    let mut all: Vec<(&Lack, usize)> = Vec::new();
    for lack in campaigns.iter().copied().flatten() {
        match all
            .iter_mut()
            .find(|(known, _)| known.feature == lack.feature)
        {
            Some((_, count)) => *count += 1,
            None => all.push((lack, 1)),
        }
    }
    let lines = all.iter().map(|(lack, count)| {
        format!(
            "warning: this kernel lacks {}, for {} ({})\n",
            lack.feature.name(),
            counted(*count as u64, "campaign"),
            lack.reason
        )
    });
    let text: String = lines.collect();
    let features: Vec<KernelFeature> = all.iter().map(|(lack, _)| lack.feature).collect();
    if text.is_empty() {
        text
    } else {
        text + &help(&features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign::{HostFacts, from_text};

    #[test]
    fn a_module_that_is_missing_is_warned_of_with_its_cells() {
        let text = "campaign: c\nduts: [direct, wireguard, xfrm]\ntrials:\n  - tcp: { mtu: [1300 B, 1500 B] }\n";
        let campaign = from_text("c.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let plan = campaign.plan(&campaign.usual_lab(), &HostFacts { cores: 2 });
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let of_wireguard = |feature: KernelFeature| {
            (feature == KernelFeature::WireGuard).then(|| "Error: Unknown device type.".to_owned())
        };
        let lacks = lacking_where(&plan, of_wireguard);
        assert_eq!(
            warning("c.yaml: ", &lacks, plan.cells.len()).unwrap(),
            "warning: c.yaml: this kernel lacks WireGuard, for DUT wireguard: 2 of 6 cells (Error: Unknown \
             device type.)\nhelp: load its module, or use another kernel: these cells fail otherwise\n"
        );
        let lacks = lacking_where(&plan, |_| None);
        assert_eq!(warning("", &lacks, plan.cells.len()), None);
    }

    #[test]
    fn an_overlay_that_is_missing_is_warned_of_with_its_cells() {
        let text = "campaign: c\nduts: [direct, cipherbench]\ntrials:\n  - tcp: { mtu: 1400 B, overlay: [none, vxlan, geneve] }\n";
        let campaign = from_text("c.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let plan = campaign.plan(&campaign.usual_lab(), &HostFacts { cores: 2 });
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let of_geneve = |feature: KernelFeature| {
            (feature == KernelFeature::Geneve).then(|| "Error: Unknown device type.".to_owned())
        };
        let lacks = lacking_where(&plan, of_geneve);
        assert_eq!(
            warning("", &lacks, plan.cells.len()).unwrap(),
            "warning: this kernel lacks Geneve, for DUT direct, cipherbench: 2 of 6 cells (Error: Unknown \
             device type.)\nhelp: load its module, or use another kernel: these cells fail otherwise\n"
        );
    }

    #[test]
    fn only_the_data_path_of_the_kernel_needs_its_esp() {
        let text = "campaign: c\nduts: [strongswan: { data_path: [libipsec, kernel] }]\ntrials:\n  - ping: { mtu: 1400 B }\n";
        let campaign = from_text("c.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let plan = campaign.plan(&campaign.usual_lab(), &HostFacts { cores: 2 });
        let plan = plan.unwrap_or_else(|error| panic!("{error}"));
        let lacks = lacking_where(&plan, |_| Some("Error: Protocol not supported.".to_owned()));
        let warned = warning("", &lacks, plan.cells.len()).unwrap();
        assert!(warned.contains("lacks ESP"), "{warned}");
        assert!(warned.contains(": 1 of 2 cells"), "{warned}");
    }
}
