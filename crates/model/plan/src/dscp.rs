//! Classes of service of packets.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The class of service of packets: a codepoint of the DS field (RFC 2474) with a name, ordered by
/// number (RFC 4594, RFC 5865, RFC 8622).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of the RFCs")]
pub enum Dscp {
    Be = 0,
    Le = 1,
    Cs1 = 8,
    Af11 = 10,
    Af12 = 12,
    Af13 = 14,
    Cs2 = 16,
    Af21 = 18,
    Af22 = 20,
    Af23 = 22,
    Cs3 = 24,
    Af31 = 26,
    Af32 = 28,
    Af33 = 30,
    Cs4 = 32,
    Af41 = 34,
    Af42 = 36,
    Af43 = 38,
    Cs5 = 40,
    Va = 44,
    Ef = 46,
    Cs6 = 48,
    Cs7 = 56,
}

impl Dscp {
    /// Name in campaigns, ids, journals and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The number in the upper six bits of the second byte of an IPv4 header.
    #[must_use]
    pub const fn codepoint(self) -> u8 {
        self as u8
    }

    /// The second byte of an IPv4 header with this class and without ECN, as `ping -Q` and
    /// `iperf3 -S` expect it.
    #[must_use]
    pub const fn tos(self) -> u8 {
        self.codepoint() << 2
    }

    /// The name of a codepoint; `dscp-5` for one without a name.
    #[must_use]
    pub fn name_of(codepoint: u8) -> String {
        let mut all = Self::VARIANTS.iter();
        let known = all.find(|class| class.codepoint() == codepoint);
        known.map_or_else(
            || format!("dscp-{codepoint}"),
            |class| class.name().to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_numbers_of_the_rfcs() {
        assert_eq!((Dscp::Ef.codepoint(), Dscp::Ef.tos()), (46, 184));
        assert_eq!((Dscp::Cs1.codepoint(), Dscp::Cs1.tos()), (8, 32));
        let names = [0, 1, 8, 34, 46, 5].map(Dscp::name_of);
        assert_eq!(names, ["be", "le", "cs1", "af41", "ef", "dscp-5"]);
        // RFC 2597 section 6: eight times the class, twice the precedence of drops.
        for class in 1..=4 {
            for drops in 1..=3 {
                assert_eq!(
                    Dscp::name_of(8 * class + 2 * drops),
                    format!("af{class}{drops}")
                );
            }
        }
    }
}
