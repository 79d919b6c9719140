//! Numbers in texts.

use bisect::Estimate;

/// A ratio as a change in per cent, with its sign.
pub(crate) fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !percent.is_finite() {
        return "any rise".to_owned();
    }
    // Small changes need more digits to be distinguished from none.
    let decimals = if percent.abs() < 1.0 { 2 } else { 1 };
    format!("{percent:+.decimals$} %")
}

/// A change with its interval.
pub(crate) fn change(of: &Estimate) -> String {
    format!(
        "{} ({} to {}, {})",
        percent(of.ratio),
        percent(of.low),
        percent(of.high),
        units::human::counted(of.pairs as u64, "pair")
    )
}

/// A probability, which is never certain.
pub(crate) fn probability(of: f64) -> String {
    if of > 0.999 {
        "over 99.9 %".to_owned()
    } else {
        format!("{:.1} %", 100.0 * of)
    }
}
