//! The keys `cells`, `differs`, `absent` and `elsewhere`, and charts.

use super::keys::{Keys, Value};
use crate::beside::{Beside, Chart, Setting};

/// Reads the statements of a table or figure about the corresponding measurement.
pub(super) fn read(keys: &Keys<'_>) -> Beside {
    let mut beside = Beside {
        differs: keys.text("differs"),
        absent: keys.text("absent"),
        ..Beside::default()
    };
    if let Some(inner) = keys.optional("cells").and_then(|it| it.keys()) {
        settings(&inner, "", &mut beside.cells);
    }
    if let Some(inner) = keys.optional("elsewhere").and_then(|it| it.keys()) {
        let reasons = inner.entries().into_iter();
        beside.elsewhere = reasons
            .filter_map(|(column, _, reason)| Some((column, reason.text()?)))
            .collect();
    }
    beside
}

fn settings(keys: &Keys<'_>, outer: &str, found: &mut Vec<Setting>) {
    for (key, _, value) in keys.entries() {
        let key = format!("{outer}{key}");
        if value.is_table() {
            if let Some(inner) = value.keys() {
                settings(&inner, &format!("{key}."), found);
            }
            continue;
        }
        let values = if value.is_list() {
            value.list()
        } else {
            vec![value]
        };
        found.extend(values.iter().filter_map(|value| setting(&key, value)));
    }
}

fn setting(key: &str, value: &Value<'_>) -> Option<Setting> {
    Some(Setting {
        key: key.to_owned(),
        text: value.printed()?,
        place: value.place(),
    })
}

pub(super) fn chart(keys: &Keys<'_>) -> Option<Chart> {
    let id = keys.required("id").and_then(|it| it.text());
    let title = keys.required("title").and_then(|it| it.text());
    let (section, absent) = (keys.text("section"), keys.text("absent"));
    if section.is_none() && absent.is_none() {
        keys.mistake(
            "the chart states neither `section` nor `absent`",
            "name the section of our report that shows the same, or why there is none",
        );
    }
    keys.refuse_others();
    Some(Chart {
        id: id?,
        title: title?,
        section,
        absent,
    })
}
