//! Refusal of requests that a page of another site makes a browser send.

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use std::net::IpAddr;

/// Why a request is not answered; `None` if it is.
///
/// 1. Nothing is changed here, so only GET and HEAD are answered.
/// 2. The browser asks for an address, `localhost` or a name of this site (`Host`): a foreign page
///    with a name that was redirected to this machine (DNS rebinding) sends that name. A target
///    that is a whole URL, as a proxy gets it, names the same host.
/// 3. No script of another site asks (`Origin`, `Sec-Fetch-Site`), and no other site shows a part
///    of this one; a link from there is followed.
pub(crate) fn refusal(
    names: &[String],
    method: &Method,
    target: &Uri,
    headers: &HeaderMap,
) -> Option<(StatusCode, &'static str)> {
    if method != Method::GET && method != Method::HEAD {
        return Some((StatusCode::METHOD_NOT_ALLOWED, "this page only reads\n"));
    }
    // Several hosts come from a client that tries to deceive a proxy.
    let mut hosts = headers.get_all(HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    let host = host.and_then(|host| host.to_str().ok());
    let is_same = |authority: &Authority| {
        host.is_some_and(|host| authority.as_str().eq_ignore_ascii_case(host))
    };
    let is_one = another.is_none() && target.authority().is_none_or(is_same);
    let Some(host) = host.filter(|host| is_one && is_known(names, host)) else {
        return Some((
            StatusCode::MISDIRECTED_REQUEST,
            "ask for http://localhost, for an address, or for a name that was given by --name\n",
        ));
    };
    let foreign = (StatusCode::FORBIDDEN, "a page of another site asks\n");
    let origins = headers.get_all(ORIGIN).iter();
    let is_own = |origin: &str| {
        let name = origin.split_once("://").map(|(_, name)| name);
        name.is_some_and(|name| name.eq_ignore_ascii_case(host))
    };
    // No browser sends several, but then each of them must be ours.
    for origin in origins {
        if !origin.to_str().is_ok_and(is_own) {
            return Some(foreign);
        }
    }
    let fetch = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_navigation =
        // A frame navigates as well, but its destination is `iframe`.
        fetch("sec-fetch-mode") == Some("navigate") && fetch("sec-fetch-dest") == Some("document");
    match fetch("sec-fetch-site") {
        // The same site is also another port or sub-domain of this host, with pages that are not
        // ours. Browsers without this header, and programs, send none and are not refused.
        Some("cross-site" | "same-site") if !is_navigation => Some(foreign),
        _ => None,
    }
}

fn is_known(names: &[String], host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        // An IPv6 address in brackets contains colons too, but its last part ends with a bracket.
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let is_same = |known: &str| known.eq_ignore_ascii_case(name);
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    address.parse::<IpAddr>().is_ok()
        || is_same("localhost")
        || names.iter().any(|known| is_same(known))
}

#[cfg(test)]
mod attack {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use testing::attack;

    fn status(names: &[&str], method: &Method, headers: &[(&str, &str)]) -> Option<u16> {
        status_of("/", names, method, headers)
    }

    fn status_of(
        target: &str,
        names: &[&str],
        method: &Method,
        headers: &[(&str, &str)],
    ) -> Option<u16> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let header = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        };
        let mut all = HeaderMap::new();
        for (name, value) in headers.iter().map(header) {
            all.append(name, value);
        }
        refusal(&names, method, &target.parse().unwrap(), &all).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn a_name_that_was_turned_to_this_machine_reads_nothing() {
        let get = |host: &str| status(&["lab.example.org"], &Method::GET, &[("host", host)]);
        let hostile = [
            "evil.example",
            "evil.example:8422",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "lab.example.org.evil.example",
            "127.0.0.1@evil.example",
            "[::1",
            "",
            ":8422",
            "localhost:x",
        ];
        let answered = hostile.iter().filter(|host| get(host) != Some(421));
        attack("pages read by DNS rebinding", answered.count(), 0);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(&[], &Method::GET, &two), Some(421));
        assert_eq!(status(&[], &Method::GET, &[]), Some(421));
        for host in [
            "localhost",
            "LOCALHOST:8422",
            "127.0.0.1:8422",
            "[::1]:8422",
            "[::1]",
            "192.0.2.1",
            "lab.example.org:8422",
        ] {
            assert_eq!(get(host), None, "{host}");
        }
    }

    #[test]
    fn a_whole_url_of_another_host_reads_nothing() {
        let hostile = [
            ("http://evil.example/", "localhost:8422"),
            ("http://evil.example/", "evil.example"),
            ("http://localhost:8422/", "evil.example"),
            ("http://localhost:8422@evil.example/", "localhost:8422"),
            ("http://evil.example@localhost:8422/", "localhost:8422"),
            ("http://localhost:9999/", "localhost:8422"),
            ("http://127.0.0.1:8422/", "localhost:8422"),
        ];
        let get =
            |(target, host): &(&str, &str)| status_of(target, &[], &Method::GET, &[("host", host)]);
        let answered = hostile.iter().filter(|both| get(both) != Some(421));
        attack("pages read by a URL of another host", answered.count(), 0);
        for target in ["http://localhost:8422/", "http://LOCALHOST:8422/run/1", "/"] {
            assert_eq!(get(&(target, "localhost:8422")), None, "{target}");
        }
    }

    #[test]
    fn pages_of_other_sites_ask_for_nothing_and_change_nothing() {
        let host = ("host", "localhost:8422");
        let mut answered = 0;
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
            let method: Method = method.parse().unwrap();
            answered += usize::from(status(&[], &method, &[host]).is_none());
        }
        attack("requests that could change something", answered, 0);
        let hostile: [&[(&str, &str)]; 6] = [
            &[("origin", "http://evil.example")],
            &[("origin", "null")],
            &[("origin", "http://localhost:9999")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "no-cors"),
            ],
            // In a frame, and from another port of this machine.
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "iframe"),
            ],
            &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")],
        ];
        let get =
            |headers: &[(&str, &str)]| status(&[], &Method::GET, &[&[host], headers].concat());
        let answered = hostile.iter().filter(|headers| get(headers) != Some(403));
        attack(
            "requests of other sites that were answered",
            answered.count(),
            0,
        );
        for headers in [
            &[][..],
            &[
                ("origin", "http://localhost:8422"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[("sec-fetch-site", "none")],
            // A link.
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "navigate"),
                ("sec-fetch-dest", "document"),
            ],
        ] {
            assert_eq!(get(headers), None, "{headers:?}");
        }
    }
}
