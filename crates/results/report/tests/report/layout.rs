//! Pages as a browser lays them out, on a wide screen and on a narrow one: no text over another,
//! none cut, no page that scrolls sideways, and the unfolded part within six screens.

use crate::fixture;
use crate::html::{select, text};
use journal::Journal;
use scraper::Html;
use serde::Deserialize;
use std::path::Path;
use testing::Browser;

const WIDTHS: [u32; 2] = [400, 1300];
/// Height of a screen, and how many the unfolded part may take at the larger width.
const SCREEN: f64 = 1000.0;
const SCREENS_MAX: f64 = 6.0;

/// The measurements of one page at one width.
#[derive(Debug, Deserialize)]
struct Measured {
    width: u32,
    /// Of the folded page.
    height: f64,
    /// How far the page is wider than its window.
    sideways: f64,
    faults: Vec<String>,
    /// Faults of charts.
    drawings: Vec<String>,
}

fn browser() -> Option<Browser> {
    Browser::find("the layout of pages")
}

/// The page at every width.
fn measured(browser: &Browser, html: &str) -> Vec<Measured> {
    // Its policy admits no script but its own.
    let (head, rest) = html.split_once("<meta http-equiv").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    let found = browser.measure(&format!("{head}{rest}"), &WIDTHS);
    serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"))
}

/// What the browser makes of a file in `dir`, which may be followed by a query.
fn loaded(browser: &Browser, dir: &Path, file: &str) -> Html {
    let output = browser
        .dump(dir)
        .arg("--virtual-time-budget=20000")
        .arg(format!("file://{}", dir.join(file).display()))
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(
        dom.contains("</html>"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Html::parse_document(&dom)
}

fn pages() -> Vec<(&'static str, Journal)> {
    let mut pages = vec![
        ("quick", fixture::quick()),
        ("frames", fixture::frame_tests()),
        ("peers", fixture::peers(5)),
        ("scaling", fixture::scaling()),
        ("suites", fixture::suites(None)),
        ("device", fixture::cards()),
        ("soak", fixture::soak()),
        ("disturbed", fixture::disturbed()),
        ("troubled", fixture::troubled()),
    ];
    for name in [
        "shipped-ipsec",
        "shipped-keys",
        "shipped-peers",
        "shipped-suites",
    ] {
        pages.push((name, fixture::shipped(&name["shipped-".len()..])));
    }
    pages
}

/// The faults of a run's page at every width, with their place.
fn faults_of(browser: &Browser, name: &str, journal: &Journal) -> Vec<String> {
    let found = measured(browser, &report::build(journal).html);
    assert_eq!(found.len(), WIDTHS.len(), "{name}");
    let mut faults = Vec::new();
    for page in found {
        let place = format!("{name} at {} px", page.width);
        let mut put = |fault: String| faults.push(format!("{place}: {fault}"));
        page.faults.into_iter().for_each(&mut put);
        page.drawings.into_iter().for_each(&mut put);
        if page.sideways > 0.0 {
            put(format!("scrolls sideways by {} px", page.sideways));
        }
        if page.width == WIDTHS[1] && page.height > SCREENS_MAX * SCREEN {
            put(format!("{} px high", page.height));
        }
    }
    faults
}

#[test]
fn pages_are_laid_out_without_a_fault() {
    let Some(browser) = browser() else {
        return;
    };
    // This test is the last to end: two browsers at once take less time.
    let pages = pages();
    let (one, other) = pages.split_at(pages.len() / 2);
    let of = |pages: &[(&'static str, Journal)]| -> Vec<String> {
        let found = pages.iter();
        found
            .flat_map(|(name, journal)| faults_of(&browser, name, journal))
            .collect()
    };
    let faults = std::thread::scope(|scope| {
        let one = scope.spawn(|| of(one));
        let other = of(other);
        [one.join().unwrap(), other].concat()
    });
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// With the page's own policy in force, so that its hash is that of the script.
#[test]
fn the_address_says_how_rows_are_sorted_and_filtered() {
    let Some(browser) = browser() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let html = report::build(&fixture::peers(5)).html;
    std::fs::write(dir.path().join("page.html"), html).unwrap();
    let devices = |query: &str| -> Vec<String> {
        let page = loaded(&browser, dir.path(), &format!("page.html?{query}"));
        let rows = select(&page, "#summary tbody tr:not([hidden]) th");
        rows.into_iter().map(text).collect()
    };
    let all = devices("");
    let mut falling = devices("t1.sort=1d");
    assert!(falling[0].starts_with("null"), "{falling:?}");
    assert!(falling[1].starts_with("cipherbench"), "{falling:?}");
    assert_ne!(falling, all);
    falling.sort();
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(falling, sorted);
    assert_eq!(devices("t1.find=open"), ["openvpn"]);
    assert_eq!(
        devices("t1.pick=0.2&t1.only=1"),
        [all[0].clone(), all[2].clone()]
    );
}
