//! Tables for a screen that lists failed checks apart.

use super::{Cell, Kind, Table};

impl Table {
    /// The same table without the names of failed checks, for a screen that lists them apart.
    pub(crate) fn in_short(&self) -> Self {
        let mut short = self.clone();
        for cell in short.rows.iter_mut().flat_map(|row| &mut row.cells) {
            cell.text = cell.in_short();
        }
        short
    }
}

impl Cell {
    /// The text without the names of failed checks: `[2 of 3]` for `[2 of 3: no-clear-text]`, and
    /// `invalid`.
    fn in_short(&self) -> String {
        let short = match self.text.rsplit_once(" [") {
            Some((figure, mark)) if self.is_partly() => mark
                .split_once(": ")
                .and_then(|(counts, rest)| Some((counts, rest.split_once(']')?.1)))
                .map(|(counts, after)| format!("{figure} [{counts}]{after}")),
            _ => (self.kind == Kind::Reason && self.text.starts_with("invalid: "))
                .then(|| "invalid".to_owned()),
        };
        short.unwrap_or_else(|| self.text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_checks_are_left_out_and_nothing_else() {
        let short = |cell: Cell| cell.in_short();
        let partly = Cell::plain("871 ± 2 Mbit/s [2 of 3: machine-was-ours] †");
        assert_eq!(short(partly), "871 ± 2 Mbit/s [2 of 3] †");
        assert_eq!(short(Cell::plain("4 [4 of 5]")), "4 [4 of 5]");
        assert_eq!(short(Cell::reason("invalid: no-clear-text")), "invalid");
        assert_eq!(short(Cell::reason("failed: `x`")), "failed: `x`");
        assert_eq!(short(Cell::plain("0.44 [0.42: 0.47]")), "0.44 [0.42: 0.47]");
    }
}
