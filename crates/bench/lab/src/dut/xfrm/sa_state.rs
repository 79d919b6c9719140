//! Parser of `ip -s xfrm state`. It discards the keys and keeps only their lengths.

/// An SA as the kernel reports it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SaState {
    pub(super) from: String,
    pub(super) to: String,
    /// In hexadecimal, without leading zeros.
    pub(super) spi: String,
    pub(super) mode: String,
    /// Whether extended sequence numbers are on.
    pub(super) esn: bool,
    /// Kind, name, key length in bits, and ICV length in bits if the kernel prints it.
    pub(super) algorithms: Vec<String>,
    /// Bytes and packets since the SA was installed, and packets it rejected.
    pub(super) counters: Vec<(&'static str, u64)>,
}

impl SaState {
    /// Returns the addresses, the mode and the sequence numbers for error messages.
    pub(super) fn summary(&self) -> String {
        let esn = if self.esn { "with" } else { "without" };
        let Self { from, to, mode, .. } = self;
        format!("from {from} to {to} in {mode} mode {esn} extended sequence numbers")
    }
}

/// The section that a heading line opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Other,
    Lifetime,
    Stats,
}

/// Reads all SAs and ignores lines without any of the above fields.
pub(super) fn parse(text: &str) -> Vec<SaState> {
    let mut sas: Vec<SaState> = Vec::new();
    let mut section = Section::Other;
    for line in text.lines() {
        // By words: versions of `ip` differ in their white space.
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // An SA begins at the start of a line, and a selector does not.
        if let (["src", from, "dst", to, ..], true) = (&*words, line.starts_with("src")) {
            section = Section::Other;
            sas.push(SaState {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                ..SaState::default()
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
            // The settings and the statistics each have a line with this first word.
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
                let present = |(name, value): (_, Option<u64>)| Some((name, value?));
                sa.counters.extend(counted.into_iter().filter_map(present));
                section = Section::Other;
            }
            [
                kind @ ("aead" | "auth-trunc" | "auth" | "enc" | "comp"),
                name,
                ..,
            ] => {
                let key = words.get(2).and_then(|word| word.strip_prefix("0x"));
                let bits = key.map_or(0, |key| 4 * key.len());
                let is_number = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
                // The last word, unless it is the key, which begins with `0x`.
                let icv = words.iter().skip(2).next_back().filter(is_number);
                let icv = icv.map(|icv| format!(" {icv}")).unwrap_or_default();
                sa.algorithms
                    .push(format!("{kind} {name} ({bits} bits){icv}"));
            }
            _ => {}
        }
    }
    sas
}

/// Returns the word after `word`.
fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    let at = words.iter().position(|it| *it == word)?;
    words.get(at + 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of iproute2 6.1 on Linux 6.1; the keys are made up.
    const TEXT: &str = "\
src 192.0.2.2 dst 192.0.2.1
\tproto esp spi 0x00001002(4098) reqid 1(0x00000001) mode tunnel
\treplay-window 0 seq 0x00000000 flag af-unspec esn (0x10100000)
\tauth-trunc hmac(sha1) 0x0102030405060708090a0b0c0d0e0f1011121314 (160 bits) 96
\tenc ecb(cipher_null)\u{20}
\tanti-replay esn context:
\t seq-hi 0x0, seq 0x7, oseq-hi 0x0, oseq 0x0
\t replay_window 4096, bitmap-length 128
\t 00000000 00000000\u{20}
\tif_id 0x1
\tlifetime config:
\t  limit: soft (INF)(bytes), hard (INF)(bytes)
\tlifetime current:
\t  588(bytes), 7(packets)
\t  add 2026-01-01 00:00:00 use 2026-01-01 00:00:01
\tstats:
\t  replay-window 1 replay 2 failed 3
src 192.0.2.1 dst 192.0.2.2
\tproto esp spi 0x00001001(4097) reqid 1(0x00000001) mode transport
\treplay-window 32 seq 0x00000000\u{20}
\taead rfc4106(gcm(aes)) 0x0102030405060708090a0b0c0d0e0f1011121314 (160 bits) 128
\tsel src 10.1.0.0/24 dst 10.2.0.0/24\u{20}
";

    #[test]
    fn sas_are_read_with_their_counters_and_without_their_keys() {
        let [first, second] = &*parse(TEXT) else {
            panic!("two SAs");
        };
        assert_eq!([&*first.from, &*first.to], ["192.0.2.2", "192.0.2.1"]);
        assert_eq!(
            (&*first.spi, &*first.mode, first.esn),
            ("0x1002", "tunnel", true)
        );
        let algorithms = [
            "auth-trunc hmac(sha1) (160 bits) 96",
            "enc ecb(cipher_null) (0 bits)",
        ];
        assert_eq!(first.algorithms, algorithms);
        let counters = [
            ("bytes", 588),
            ("packets", 7),
            ("late_packets", 1),
            ("replayed_packets", 2),
            ("failed_packets", 3),
        ];
        assert_eq!(first.counters, counters);
        assert_eq!(
            (&*second.spi, &*second.mode, second.esn),
            ("0x1001", "transport", false)
        );
        assert_eq!(second.algorithms, ["aead rfc4106(gcm(aes)) (160 bits) 128"]);
        assert!(!format!("{first:?}{second:?}").contains("0102030405"));
    }

    #[test]
    fn what_is_cut_off_is_never_a_panic() {
        for end in (0..TEXT.len()).filter(|end| TEXT.is_char_boundary(*end)) {
            parse(&TEXT[..end]);
        }
    }
}
