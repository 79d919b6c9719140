//! Tunnels of several forms: what each has sealed is called by its name.

use crate::fixture;
use journal::Journal;

const ALL: [&str; 4] = ["direct", "strongswan", "wireguard-go", "openvpn"];

fn terminal(journal: &Journal) -> String {
    crate::terminal(journal, None, 200, false)
}

/// The heading of the table of evidence.
fn heading(journal: &Journal) -> Vec<String> {
    let text = terminal(journal);
    let line = text.lines().find(|line| line.contains("Clear marker"));
    let words = line.unwrap().split_whitespace();
    words.map(str::to_owned).collect()
}

#[test]
fn a_column_of_one_form_has_its_name_and_one_of_several_says_sealed() {
    for (names, sealed) in [
        (&ALL[..], "Sealed"),
        (&ALL[..2], "ESP"),
        (&["direct", "wireguard-go", "boringtun"], "WireGuard"),
        (&["openvpn"], "OpenVPN"),
        (&["direct"], "ESP"),
    ] {
        let journal = fixture::tunnels(names);
        let wanted = ["Cell", "Checks", sealed, "Clear", "marker", "Verdict"];
        assert_eq!(heading(&journal), wanted, "{names:?}");
        let noted = match sealed {
            "Sealed" => "between the gateways: sealed by the device, and",
            form => &format!("between the gateways: {form}, and"),
        };
        let documents = report::build(&journal);
        assert!(documents.markdown.contains(noted), "{names:?}");
        assert!(documents.html.contains(noted), "{names:?}");
    }
}

#[test]
fn each_trial_names_what_was_seen_in_it() {
    let page = report::build(&fixture::tunnels(&ALL)).html;
    for seen in [
        "1000 ESP, 0 with the marker in clear, 0 other; SPI 0x10000001",
        "1000 WireGuard, 0 with the marker in clear, 0 other; receiver index 0x10000001",
        "1000 OpenVPN, 0 with the marker in clear, 0 other; key 0x10000001",
        "0 ESP, 1000 with the marker in clear, 0 other.",
    ] {
        assert!(page.contains(seen), "{seen}");
    }
}

#[test]
fn tunnels_are_listed_with_their_settings() {
    let text = report::build(&fixture::tunnels(&ALL)).markdown;
    for settings in [
        "WireGuard chacha20-poly1305 by wireguard-go",
        "OpenVPN aes-256-gcm",
    ] {
        assert!(text.contains(settings), "{settings} is not in: {text}");
    }
}
