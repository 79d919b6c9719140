//! The page of labs and jobs.

use super::*;
use crate::site::pages::Page;
use fleet::{Assignment, LabOffer, LastTrial, Listing, Progress, Selector};

fn row(id: &str, state: State, misfits: &[(&str, &str)]) -> Row {
    let text = |(lab, reason): &(&str, &str)| ((*lab).to_owned(), (*reason).to_owned());
    Row {
        job: Job {
            id: id.to_owned(),
            name: "<b>campaign</b>.yaml".to_owned(),
            campaign: String::new(),
            quick: false,
            selector: Selector::default(),
            priority: if id == "urgent" { 5 } else { 0 },
            labels: BTreeMap::new(),
            by: "somebody".to_owned(),
            every: None,
            period: None,
            signature: None,
        },
        submitted_at: 1_000_000_000,
        state,
        since: 1_000_003_600,
        misfits: misfits.iter().map(text).collect(),
    }
}

fn lab(name: &str, job: Option<&str>, is_alive: bool) -> LabStatus {
    LabStatus {
        offer: LabOffer {
            lab: name.to_owned(),
            agent: "host-1".to_owned(),
            incarnation: String::new(),
            labels: BTreeMap::from([("firmware".to_owned(), "2.1".to_owned())]),
            job: job.map(str::to_owned),
            waits: false,
            progress: job.map(|_| Progress {
                done: 3,
                planned: 20,
                last: Some(LastTrial {
                    cell: "tcp-1500".to_owned(),
                    repeat: 2,
                    outcome: "measured".to_owned(),
                }),
            }),
            beats: 1,
        },
        renewed_at: 1_000_000_000,
        is_alive,
    }
}

#[test]
fn what_there_is_to_see_is_on_the_page() {
    let held = Assignment {
        lab: "one".to_owned(),
        agent: "host-1".to_owned(),
        attempt: 2,
    };
    let queued = State::Queued {
        attempts: 0,
        priority: 0,
    };
    let done = State::Done {
        held: held.clone(),
        exit: 1,
    };
    let parked = State::Parked {
        reason: "a wrong campaign".to_owned(),
    };
    let seen = Snapshot {
        labs: vec![
            lab("one", Some("5"), true),
            lab("two", None, true),
            lab("three", None, false),
        ],
        repeats: Vec::new(),
        listing: Listing {
            rows: vec![
                row("1", done, &[]),
                row("2", parked, &[]),
                row("3", queued.clone(), &[("one", "it has 2 cores")]),
                row("urgent", queued, &[]),
                row("5", State::Running(held), &[]),
            ],
            left_out: 7,
        },
        headlines: BTreeMap::from([(
            "1".to_owned(),
            vec![Headline {
                cell: "tcp/mtu=1500/box".to_owned(),
                name: "box: TCP, MTU 1500 B, 4 streams, 2 s on 1 core, offloads on".to_owned(),
                figure: Figure {
                    key: "payload_throughput_bps".to_owned(),
                    load_percent: None,
                    value: 2e9,
                    repeats: 3,
                    spread: Some((1.9e9, 2.1e9)),
                },
            }],
        )]),
        names: BTreeMap::from([("tcp-1500".to_owned(), "box: TCP".to_owned())]),
        unreadable: vec![UnreadableEntry {
            bucket: "fleet-states".to_owned(),
            key: "evil".to_owned(),
            reason: "<b>no JSON".to_owned(),
        }],
    };
    let text = all(&seen).into_string();
    for part in [
        "runs <code>5</code>",
        "<span class=\"free\">free</span>",
        "<span class=\"gone\">silent</span>",
        "2001-09-09",
        "one, attempt 2",
        "<progress max=\"20\" value=\"3\"></progress>3 of 20 trials; last: box: TCP, repeat 2, measured",
        "not in one: it has 2 cores",
        "waits for a lab",
        "<td class=\"when\" data-is=\"Submitted\">2001-09-09 01:46:40</td>",
        "<td class=\"when\" data-is=\"Since\">2001-09-09 02:46:40</td>",
        "<td class=\"when\" data-is=\"Ended\">2001-09-09 02:46:40</td>",
        "<b>2 Gbit/s</b> (1.9 Gbit/s to 2.1 Gbit/s) \
         <a href=\"/cell/tcp%2Fmtu%3D1500%2Fbox\" title=\"box: TCP, MTU 1500 B, 4 streams, 2 s on 1 core, offloads on\">\
         box: TCP, MTU 1500 B, 4 streams, 2 s on 1 core, …</a>",
        "done, some trials without a figure",
        "<a href=\"/run/1\">report</a>",
        "gone\">parked: a wrong campaign",
        "7 jobs ended before these.",
        "&lt;b&gt;campaign&lt;/b&gt;.yaml",
        "Entries that cannot be read: 1",
        "entry fleet-states/evil is left out: &lt;b&gt;no JSON",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("<b>campaign"), "{text}");
    let place = |part: &str| text.find(part).unwrap();
    assert!(place("<code>urgent</code>") < place("<code>3</code>"));
}

#[test]
fn a_long_queue_is_folded_and_a_reason_of_many_labs_is_said_once() {
    let state = || State::Queued {
        attempts: 0,
        priority: 0,
    };
    let long = format!("{}\nand more", "x".repeat(SHORT + 1));
    let misfits = [("one", "2 cores"), ("two", "2 cores"), ("three", &long)];
    let rows: Vec<Row> = (0..300)
        .map(|nth| row(&format!("{nth:03}"), state(), &misfits))
        .collect();
    let queue = queue(&rows.iter().collect::<Vec<_>>());
    let text = lists(&[queue], ROOM).into_string();
    let (shown, folded) = text.split_once("id=\"queue-others\">").unwrap();
    assert!(shown.contains("Queue: 300 jobs"), "{shown}");
    let count = shown.matches("<tr>").count() - 1;
    assert!(count > 3, "{count}");
    let others = format!("<summary>{} more jobs</summary>", 300 - count);
    assert!(folded.contains(&others), "{others}");
    assert!(
        shown.contains("<summary>not in one, two: 2 cores…</summary>"),
        "{shown}"
    );
    assert_eq!(shown.matches("not in three: xxx").count(), count);
}

/// Sixty of everything, with long names.
fn crowded() -> Snapshot {
    let name = |what: &str, nth: usize| format!("{what}-of-the-second-floor-{nth}");
    let held = |nth| Assignment {
        lab: name("lab", nth),
        agent: "host-1".to_owned(),
        attempt: 2,
    };
    let long = "the lab lacks a program that the campaign needs, and ".repeat(4);
    let headline = |nth: usize| Headline {
        cell: format!("cell-{nth}"),
        name: "box: TCP, MTU 1500 B, 4 streams, 2 s on 1 core, offloads on".to_owned(),
        figure: Figure {
            key: "payload_throughput_bps".to_owned(),
            load_percent: None,
            value: 2.345e9,
            repeats: 3,
            spread: Some((1.987e9, 2.567e9)),
        },
    };
    let mut rows = Vec::new();
    let mut headlines = BTreeMap::new();
    for nth in 0..60 {
        let id = |what: &str| format!("1a22b80d7d6-d6f98{what}{nth:02}-000000");
        let queued = State::Queued {
            attempts: 0,
            priority: 0,
        };
        rows.push(row(&id("0"), State::Running(held(nth)), &[]));
        rows.push(row(&id("1"), queued, &[(&name("lab", nth), &long)]));
        let done = State::Done {
            held: held(nth),
            exit: 1,
        };
        rows.push(row(&id("2"), done, &[]));
        headlines.insert(id("2"), (0..4).map(headline).collect());
        let reason = long.clone();
        rows.push(row(&id("3"), State::Parked { reason }, &[]));
    }
    let labs = (0..60).map(|nth| LabStatus {
        is_alive: nth % 7 != 0,
        ..lab(
            &name("lab", nth),
            Some(&format!("1a22b80d7d6-d6f980{nth:02}-000000")),
            true,
        )
    });
    let unreadable = (0..60).map(|nth| UnreadableEntry {
        bucket: "fleet-states".to_owned(),
        key: name("key", nth),
        reason: "expected value at line 1 column 1".to_owned(),
    });
    Snapshot {
        labs: labs.collect(),
        repeats: rows.iter().map(|row| row.job.clone()).take(60).collect(),
        listing: Listing { rows, left_out: 7 },
        headlines,
        names: BTreeMap::from([("tcp-1500".to_owned(), headline(0).name)]),
        unreadable: unreadable.collect(),
    }
}

#[test]
fn a_crowded_fleet_takes_two_screens_and_silent_labs_come_first() {
    let content = all(&crowded()).into_string();
    let (_, shown) = content.split_once("<section id=\"labs\">").unwrap();
    let (shown, _) = shown.split_once("labs-others").unwrap();
    assert!(shown.contains("silent, with "), "{shown}");
    let Some(browser) = testing::Browser::find("the page of a crowded fleet") else {
        return;
    };
    let style = format!("<style>{}</style>", page::style());
    let page = Page::Overview.shell("nats://host:4222").around(&content);
    let page = page.replace("<link rel=\"stylesheet\" href=\"/page.css\">", &style);
    let page = page.replace("<script src=\"/page.js\" defer></script>", "");
    let mut trouble_free = crowded();
    trouble_free.unreadable.clear();
    let (_, rest) = page.split_once("<main>").unwrap();
    let other = page.replace(
        rest,
        &format!("{}</main></body></html>", all(&trouble_free).into_string()),
    );
    for page in [page, other] {
        let found = browser.measure(&page, &[400, 1300]);
        let found: Vec<serde_json::Value> = serde_json::from_str(&found).unwrap();
        let heights = [400, 1300].map(|width| {
            let page = found.iter().find(|page| page["width"] == width).unwrap();
            assert_eq!(page["faults"], serde_json::json!([]));
            page["height"].as_u64().unwrap()
        });
        assert!(heights[0] <= 1600 && heights[1] <= 1800, "{heights:?}");
        // Neither is it emptier than it must be.
        assert!(heights[0] >= 1300, "{heights:?}");
    }
}
