//! Values of options.

use std::time::Duration;

/// The campaign's check reports the permitted range.
pub(super) fn long_duration(text: &str) -> Result<Duration, String> {
    units::time::parse(text).map_err(|error| format!("{error}: {}", error.help()))
}

/// A parser of whole numbers from `least` to `most`.
pub(super) fn whole<N: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| match most {
                u64::MAX => format!("write a whole number of at least {least}"),
                most => format!("write a whole number from {least} to {most}"),
            })
    }
}

/// An age in days, or as another duration.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    const SECONDS_PER_DAY: u64 = 24 * 3600;
    // Whole days: units of the other files end at hours, as nothing there takes days.
    let days = ["days", "day", "d"]
        .iter()
        .find_map(|unit| text.strip_suffix(unit));
    if let Some(days) = days.and_then(|days| days.trim_end().parse::<u64>().ok()) {
        let seconds = days.checked_mul(SECONDS_PER_DAY);
        return seconds
            .map(Duration::from_secs)
            .ok_or_else(|| "that is longer than any run is old".to_owned());
    }
    units::time::parse(text)
        .map_err(|_| "write a number of days or hours, such as `30d` or `12h`".to_owned())
}

/// A length in bytes, with or without a unit.
pub(super) fn length(text: &str) -> Result<u16, String> {
    let text = text.trim();
    let bytes = match text.parse() {
        Ok(bytes) => Ok(bytes),
        Err(_) => units::Bytes::parse(text).map(units::Bytes::get),
    };
    match bytes.map(u16::try_from) {
        Ok(Ok(bytes)) if bytes > 0 => Ok(bytes),
        Ok(_) => Err("take from 1 B to 65535 B, which is the longest packet of IP".to_owned()),
        Err(error) => Err(format!(
            "{error}: write whole bytes with or without a unit, as `64`, `64B` or `1 KiB`"
        )),
    }
}

/// Long enough for a few rounds, short enough for a table of a hundred figures.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match units::time::parse(text) {
        Ok(duration)
            if (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&duration) =>
        {
            Ok(duration)
        }
        Ok(_) => Err("take from 1 ms to 1 min".to_owned()),
        Err(error) => Err(format!("{error}: {}", error.help())),
    }
}

/// A share in per cent, above 0.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    // A comparison with NaN is false, so that it is refused too.
    let number = number.filter(|number| *number > 0.0 && *number <= 100.0);
    number.ok_or_else(|| "write a number above 0, up to 100, such as `5`".to_owned())
}
