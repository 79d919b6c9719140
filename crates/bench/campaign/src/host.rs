//! The host that will run a plan, and the limits that it sets for a campaign.

use crate::axis::CORES_MAX;
use crate::tools;
use plan::ProcedureKind;
use strum::VariantArray;
use yaml::{Document, Mistake, Node, Place};

/// Facts about the host that will run a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostFacts {
    /// Logical CPUs that are online.
    pub cores: u16,
}

impl HostFacts {
    /// The mistake of a trial with more cores per station than there are.
    pub(crate) fn lacks_cores(&self, wanted: u16, place: &Place) -> Option<Mistake> {
        let present = self.cores;
        (wanted > present).then(|| {
            let plural = if present == 1 { "core" } else { "cores" };
            let what = format!(
                "{wanted} cores per station are more than the {present} {plural} of this host"
            );
            place.mistake(what, format!("write {present} or less"))
        })
    }

    /// All places of a file that ask for more cores than there are: a campaign with mistakes has no
    /// cells to check. Other mistakes of the file are not reported. None if cells that need more
    /// cores are to be skipped.
    pub(crate) fn too_many_cores(&self, document: &Document) -> Vec<Mistake> {
        let tools = tools::TOOLS.iter().map(|(name, ..)| *name);
        let frames = ProcedureKind::VARIANTS.iter().map(|kind| kind.name());
        // `ping` runs on one core.
        let kinds: Vec<_> = tools.chain(frames).filter(|name| *name != "ping").collect();
        let (mut found, mut is_skipped) = (Vec::new(), false);
        let mut cores = |item: Node<'_>| {
            let wanted = item.integer(1..=CORES_MAX)?;
            found.extend(self.lacks_cores(wanted, &item.place()));
            Ok(())
        };
        let mut settings = |key: &str, value: Node<'_>| match key {
            "cores" => value.one_or_many(&mut cores).map(drop),
            _ => Ok(()),
        };
        let mut trial = |kind: &str, body: Node<'_>| {
            if kinds.contains(&kind) && body.is_map() {
                body.entries(|key, value| settings(key.value, value))
                    .map(drop)
            } else {
                Ok(())
            }
        };
        // The file is read loosely: an entry without the form of a trial is skipped, and mistakes
        // are dropped, since the real reading reports them.
        let _ = document.decode(|root| {
            root.entries(|key, value| match key.value {
                // May follow the trials, so it is applied after all of them.
                "missing_cores" => {
                    is_skipped = matches!(value.text(), Ok("skip"));
                    Ok(())
                }
                "trials" => {
                    let read =
                        value.list(|item| item.entries(|kind, body| trial(kind.value, body)));
                    read.map(drop)
                }
                _ => Ok(()),
            })
        });
        if is_skipped { Vec::new() } else { found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read_for;

    #[test]
    fn mistakes_of_a_file_do_not_hide_cores_that_the_host_lacks() {
        let text = "campaign: c
duts: [direkt]
trials:
  - tcp: { mtu: 1500 B, window: 1 B, cores: [1, 64, 64, 200] }
  - load: { frame: 64 B, cores: 65, dut: x }
  - ping: { mtu: 1500 B, cores: 64 }
  - ping
  - throughput: { frame: 64 B, cores: 3 }
  - 64
";
        let document = yaml::parse("c.yaml", text).unwrap();
        let mistakes = read_for(&document, &HostFacts { cores: 3 }).unwrap_err();
        let at = |mistake: &Mistake| {
            let spot = mistake.place.spot.as_ref().unwrap();
            (spot.line, spot.column)
        };
        let about_cores = |mistake: &&Mistake| mistake.what.contains("cores per station");
        let cores: Vec<_> = mistakes.iter().filter(about_cores).map(at).collect();
        assert_eq!(cores, [(4, 49), (5, 33)], "{mistakes}");
        let lines: Vec<_> = mistakes.iter().map(|it| at(it).0).collect();
        // Each mistake once, in the order of the file; line 4 has three others.
        assert_eq!(lines, [2, 4, 4, 4, 4, 5, 5, 6, 7, 9], "{mistakes}");
        // With the key anywhere in the file, they are skipped and no mistake.
        for text in [
            text.replace("duts:", "missing_cores: skip\nduts:"),
            format!("{text}missing_cores: skip\n"),
        ] {
            let document = yaml::parse("c.yaml", &text).unwrap();
            let mistakes = read_for(&document, &HostFacts { cores: 3 }).unwrap_err();
            assert_eq!(mistakes.iter().filter(about_cores).count(), 0, "{mistakes}");
        }
    }
}
