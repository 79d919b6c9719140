//! Times as text, always in UTC. Pure arithmetic without a clock or time zone.

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const SECONDS_PER_DAY: u64 = 86_400;

/// Formats a time as `2026-11-20T11:30:00Z`, for documents (ISO 8601, to the second).
#[must_use]
pub fn utc(unix_ns: u64) -> String {
    let (year, month, day, hour, minute, second) = civil(unix_ns);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Formats a time as `20261120T113000Z`, for folder names: sorts by time and needs no quoting.
#[must_use]
pub fn utc_compact(unix_ns: u64) -> String {
    let (year, month, day, hour, minute, second) = civil(unix_ns);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns year, month, day, hour, minute, second. The date is by Howard Hinnant's
/// `civil_from_days`: years begin in March, so that the leap day is the last of a year, and 400
/// years repeat.
fn civil(unix_ns: u64) -> (u64, u64, u64, u64, u64, u64) {
    let seconds = unix_ns / NANOS_PER_SECOND;
    let (days, second_of_day) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let shifted = days + 719_468; // days from 0000-03-01 to 1970-01-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, five months have 153 days, over and over: the lengths repeat 31, 30, 31, 30,
    // 31.
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    // January and February belong to the year that began in the March before.
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (
        year,
        month,
        day,
        second_of_day / 3_600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_moments_are_written_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_795_174_200, "2026-11-20T11:30:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"), // 2100 is no leap year
        ] {
            assert_eq!(utc(seconds * NANOS_PER_SECOND + 999_999_999), text);
        }
        assert_eq!(
            utc_compact(1_795_174_200 * NANOS_PER_SECOND),
            "20261120T113000Z"
        );
    }

    #[test]
    fn the_last_representable_moment_is_written_too() {
        assert_eq!(utc(u64::MAX), "2554-07-21T23:34:33Z");
    }
}
