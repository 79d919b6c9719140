//! The shipped files, which are built into the program: `campaigns/` and `labs/`.

/// A campaign or a lab that is built into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, which is also that of the file without its extension.
    pub name: &'static str,
    /// Its path in the source tree.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// The shipped files of a folder of the source tree.
macro_rules! shipped {
    ($folder:literal, [$($name:literal),+ $(,)?]) => {
        &[$(Shipped {
            name: $name,
            file: concat!($folder, "/", $name, ".yaml"),
            text: include_str!(concat!("../../../../", $folder, "/", $name, ".yaml")),
        }),+]
    };
}

/// The shipped campaigns, by name.
pub const CAMPAIGNS: &[Shipped] = shipped!(
    "campaigns",
    [
        "applications",
        "baikal-gost",
        "bridging",
        "cores",
        "crypto-card",
        "devices",
        "external-gateway",
        "external-junos",
        "external-lcos",
        "external-macsec",
        "external-monitored",
        "external-opaque",
        "external-plain",
        "external-routeros",
        "gate",
        "gost-engines",
        "http",
        "ike",
        "ipsec",
        "keys",
        "lancom-lcos",
        "limits",
        "matrix",
        "memory",
        "one-gateway",
        "overlay",
        "peers",
        "quick",
        "rfc2544",
        "rollover",
        "scaling",
        "sessions",
        "settings",
        "soak",
        "suites",
        "suites-gost",
        "suites-strongswan",
        "tcp-users",
        "tools",
        "tunnels",
        "versions",
        "vipnet-scaling",
        "vut-fekt-100g",
        "weather",
    ]
);

/// The shipped labs, by name.
pub const LABS: &[Shipped] = shipped!(
    "labs",
    [
        "bump",
        "device",
        "ethernet-1500",
        "external",
        "gateway",
        "kubernetes",
        "memory",
        "namespaces",
        "nat",
        "routed",
        "router",
        "switch",
        "two-hosts",
        "two-hosts-boxes",
        "weather",
    ]
);

impl Shipped {
    /// Returns the first sentence of the file's first comment.
    #[must_use]
    pub fn description(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#'));
        // An empty line of the comment ends its paragraph.
        let lines = lines.map(str::trim).take_while(|line| !line.is_empty());
        let paragraph = lines.collect::<Vec<_>>().join(" ");
        // A full stop within a sentence, as in a file's name, is not followed by a space.
        match paragraph.split_once(". ") {
            Some((first, _)) => format!("{first}."),
            None => paragraph,
        }
    }
}

/// The file of that name among these.
pub(crate) fn named(among: &'static [Shipped], name: &str) -> Option<&'static Shipped> {
    among.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folders_is_built_in() {
        for (folder, among) in [("campaigns", CAMPAIGNS), ("labs", LABS)] {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
            let files = fs::read_dir(root.join(folder)).unwrap();
            let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            let files: BTreeSet<_> = files.map(|file| format!("{folder}/{file}")).collect();
            let built_in: BTreeSet<_> = among.iter().map(|file| file.file.to_owned()).collect();
            assert_eq!(files, built_in);
        }
    }

    #[test]
    fn every_file_begins_with_a_short_sentence() {
        let mut seen = BTreeSet::new();
        for file in CAMPAIGNS.iter().chain(LABS) {
            let text = file.description();
            let length = text.chars().count();
            assert!(
                (20..=90).contains(&length),
                "{}: {length}: {text}",
                file.file
            );
            assert!(text.ends_with('.'), "{}: {text}", file.file);
            assert!(
                seen.insert(text),
                "{}: its sentence is not its only",
                file.file
            );
        }
    }
}
