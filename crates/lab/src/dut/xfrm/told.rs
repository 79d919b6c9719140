//! What `ip -s xfrm state list nokeys` tells of SAs.

/// An SA as the kernel tells it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) from: String,
    pub(super) to: String,
    /// In hexadecimal, without leading zeros.
    pub(super) spi: String,
    pub(super) mode: String,
    /// Whether its sequence numbers are extended.
    pub(super) esn: bool,
    /// Kind, name, bits of the key, and bits that are sent.
    pub(super) algorithms: Vec<String>,
    /// Bytes and packets since it is there, and what it refused.
    pub(super) counters: Vec<(&'static str, u64)>,
}

impl Told {
    /// For people.
    pub(super) fn words(&self) -> String {
        let esn = if self.esn { "with" } else { "without" };
        let Self { from, to, mode, .. } = self;
        format!("from {from} to {to} in {mode} mode {esn} extended sequence numbers")
    }
}

/// What follows a line that is alone with its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Other,
    Lifetime,
    Stats,
}

/// Reads all SAs; lines that say nothing of the above are passed over.
pub(super) fn parse(text: &str) -> Vec<Told> {
    let mut sas: Vec<Told> = Vec::new();
    let mut section = Section::Other;
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // An SA begins at the start of a line, and a selector does not.
        if let (["src", from, "dst", to, ..], true) = (&*words, line.starts_with("src")) {
            section = Section::Other;
            sas.push(Told {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                ..Told::default()
            });
            continue;
        }
        let Some(sa) = sas.last_mut() else { continue };
        match &*words {
            ["proto", ..] => {
                let spi = after(&words, "spi").and_then(|spi| spi.split('(').next());
                let spi = spi.and_then(|spi| spi.strip_prefix("0x"));
                let spi = spi.map(|digits| format!("0x{}", digits.trim_start_matches('0')));
                sa.spi = spi.unwrap_or_default();
                sa.mode = after(&words, "mode").unwrap_or_default().to_owned();
            }
            ["lifetime", "current:"] => section = Section::Lifetime,
            ["stats:"] => section = Section::Stats,
            ["replay-window", ..] if section == Section::Stats => {
                for (word, name) in [
                    ("replay-window", "late_packets"),
                    ("replay", "replayed_packets"),
                    ("failed", "failed_packets"),
                ] {
                    let value = after(&words, word).and_then(|value| value.parse().ok());
                    sa.counters.extend(value.map(|value| (name, value)));
                }
                section = Section::Other;
            }
            ["replay-window", ..] => {
                let flags = words.iter().skip_while(|word| **word != "flag").skip(1);
                sa.esn = flags
                    .flat_map(|word| word.split(','))
                    .any(|flag| flag == "esn");
            }
            [bytes, packets] if section == Section::Lifetime => {
                let count = |word: &str, unit: &str| -> Option<u64> {
                    word.trim_end_matches(',').strip_suffix(unit)?.parse().ok()
                };
                let counted = [
                    ("bytes", count(bytes, "(bytes)")),
                    ("packets", count(packets, "(packets)")),
                ];
                let told = |(name, value): (_, Option<u64>)| Some((name, value?));
                sa.counters.extend(counted.into_iter().filter_map(told));
                section = Section::Other;
            }
            [
                kind @ ("aead" | "auth-trunc" | "auth" | "enc" | "comp"),
                name,
                ..,
            ] => {
                // The key is hidden, or has no length; behind it stands what this is about.
                let bits = words.iter().position(|word| word.starts_with('('));
                let rest = bits.map(|at| words[at..].join(" ")).unwrap_or_default();
                sa.algorithms.push(format!("{kind} {name} {rest}"));
            }
            _ => {}
        }
    }
    sas
}

/// The word behind another.
fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    let at = words.iter().position(|it| *it == word)?;
    words.get(at + 1).copied()
}
