//! Texts with gaps.

/// Begins the part of a template that short forms do not have.
const LONG: &str = "<long>";

/// Fills a template's gaps: `<name>` with a value, `<short|long>` with the text of the form.
///
/// Values are inserted as they are: gaps of a value are not filled.
pub(super) fn fill(template: &str, is_short: bool, values: &[(&str, &str)]) -> String {
    let (always, long) = template.split_once(LONG).unwrap_or((template, ""));
    let mut filled = filled(always, is_short, values);
    if !is_short {
        filled += &self::filled(long, is_short, values);
    }
    filled
}

fn filled(template: &str, is_short: bool, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(template.len()), template);
    while let Some((before, after)) = rest.split_once('<') {
        let (gap, after) = after.split_once('>').expect("a gap has an end");
        let text = match gap.split_once('|') {
            Some((short, _)) if is_short => short,
            Some((_, long)) => long,
            None => {
                let value = values.iter().find(|(name, _)| *name == gap);
                value.expect("each gap has a value").1
            }
        };
        filled += before;
        filled += text;
        rest = after;
    }
    filled + rest
}

/// A text as YAML, for any characters.
pub(super) fn quoted(text: &str) -> String {
    // YAML reads every string of JSON as that string (YAML 1.2 §1.3).
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_and_values_are_not_read_as_templates() {
        let text = "a: <1|2>\nb: <b>\n<long>c: <c>\n";
        let values = [("b", "<c> <x|y>"), ("c", "3")];
        assert_eq!(fill(text, true, &values), "a: 1\nb: <c> <x|y>\n");
        assert_eq!(fill(text, false, &values), "a: 2\nb: <c> <x|y>\nc: 3\n");
    }

    #[test]
    fn yaml_reads_back_what_was_quoted() {
        for text in [
            "plain",
            "two words",
            "ключ \"x\"",
            "a: b # c",
            "back\\slash",
            "é<>|{}",
        ] {
            let document = format!(
                "campaign: x\ntitle: {}\nduts: [direct]\ntrials: [ping: {{ mtu: 1400 B }}]\n",
                quoted(text)
            );
            let campaign = campaign::from_text("t.yaml", &document).expect("a campaign");
            assert_eq!(campaign.title(), text);
        }
    }
}
