//! Widths of texts in the charts' font.
//!
//! The style sheet asks for Liberation Sans, Arial or Helvetica. Their characters have equal
//! widths, so labels can be laid out without a browser.

/// Advance widths of the characters from space to `~`, in thousandths of the font's size.
const REGULAR: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

const BOLD: [u16; 95] = [
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667,
    611, 778, 722, 278, 556, 722, 611, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556,
    278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584,
];

/// Size and weight of a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Font {
    pub(crate) size: f64,
    is_bold: bool,
}

impl Font {
    /// Returns the font of a text with these classes, as in the style sheet.
    pub(crate) fn of(classes: &str) -> Self {
        let has = |names: &[&str]| classes.split(' ').any(|class| names.contains(&class));
        // As in the style sheet, `[class^="on-"]`: texts on a ground are named by its shade.
        let on_bar = classes.starts_with("on-");
        Self {
            size: if on_bar || has(&["tick", "value"]) {
                11.5
            } else {
                12.0
            },
            is_bold: on_bar || has(&["strong", "value", "reason"]),
        }
    }

    /// Returns the width of a text, in the units of the font's size.
    pub(crate) fn width(self, text: &str) -> f64 {
        // Integers add up exactly, whatever the order of the characters.
        let thousandths: u32 = text.chars().map(|c| u32::from(self.advance(c))).sum();
        f64::from(thousandths) / 1000.0 * self.size
    }

    fn advance(self, c: char) -> u16 {
        let table = if self.is_bold { &BOLD } else { &REGULAR };
        // Control characters wrap around to places beyond the table.
        let place = usize::try_from(u32::from(c).wrapping_sub(32)).unwrap_or(usize::MAX);
        match (table.get(place), c) {
            (Some(advance), _) => *advance,
            // The width of the widest of these signs.
            (None, '–' | '±' | '×' | 'µ' | '·') => 584,
            // Other scripts: an upper bound for most characters, as only spacing depends on it.
            (None, '\u{a0}'..='\u{24f}') => 722,
            (None, _) => 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_those_of_the_font() {
        let thousandths = |classes, text| (1000.0 * Font::of(classes).width(text)).round() as u32;
        assert_eq!(thousandths("label", "0"), 6_672);
        assert_eq!(thousandths("value", "7.11"), 22_379);
        assert_eq!(thousandths("tick", "…"), 11_500);
        assert!(thousandths("label strong", "stops") > thousandths("label", "stops"));
    }
}
