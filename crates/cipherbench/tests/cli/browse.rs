//! Requests of a browser to the program's pages, and the updates of an open page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use testing::Browser;

/// An answer to `GET`: the status and all else.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    get_as(address, address, path)
}

/// As [`get`], for a host name.
pub(crate) fn get_as(address: &str, host: &str, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    ask(address, &request)
}

/// The answer to a request, after which the server closes the connection.
pub(crate) fn ask(address: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the page's server");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8(answer).expect("UTF-8");
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.expect("a status"), answer)
}

/// The longest time until a change shows on a page, on a busy machine.
const PARTS_LIMIT: Duration = Duration::from_secs(120);

/// What a page is sent while it is open.
pub(crate) struct Live(BufReader<TcpStream>);

impl Live {
    pub(crate) fn open(address: &str, path: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("the page's server");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a limit");
        Self(BufReader::new(stream))
    }

    /// The next content; `None` once the server has gone, or it is too late.
    pub(crate) fn next(&mut self, began: Instant) -> Option<String> {
        let mut content = String::new();
        // The server sends comments while nothing changes.
        while began.elapsed() < PARTS_LIMIT {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" if content.contains("data: ") => return Some(content),
                "" => content.clear(),
                line => content.push_str(line),
            }
        }
        None
    }

    /// Waits for a content with all of these parts.
    pub(crate) fn await_parts(&mut self, parts: &[&str]) {
        let mut last = String::new();
        let began = Instant::now();
        while let Some(content) = self.next(began) {
            if parts.iter().all(|part| content.contains(part)) {
                return;
            }
            last = content;
        }
        panic!("no {parts:?} in {last}");
    }
}

/// Lays a page out at every width, where it may be so high.
pub(crate) fn check_layout(browser: &Browser, address: &str, path: &str, screens: &[(u32, u64)]) {
    let body = |path: &str| {
        let (_, answer) = get(address, path);
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        body.to_owned()
    };
    let style = format!("<style>{}</style>", body("/page.css"));
    let page = body(path)
        .replace("<link rel=\"stylesheet\" href=\"/page.css\">", &style)
        .replace("<script src=\"/page.js\" defer></script>", "");
    assert!(page.contains("prefers-color-scheme: dark"), "{page}");
    let widths: Vec<u32> = screens.iter().map(|(width, _)| *width).collect();
    let found = browser.measure(&page, &widths);
    let found: Vec<serde_json::Value> = serde_json::from_str(&found).expect(&found);
    assert_eq!(found.len(), screens.len());
    for page in found {
        let none = serde_json::json!([]);
        let is_fine = page["sideways"] == 0 && page["faults"] == none && page["drawings"] == none;
        assert!(is_fine, "{path}: {page}");
        let screen = screens.iter().find(|(width, _)| page["width"] == *width);
        let (_, most) = screen.expect("one of the widths");
        let height = page["height"].as_u64();
        assert!(
            height.is_some_and(|height| height <= *most),
            "{path}: {page}"
        );
    }
}
