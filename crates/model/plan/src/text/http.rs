//! Trials over HTTP as people read them.

use crate::{HttpClient, HttpServer, HttpTest, HttpVersion, Store};
use std::time::Duration;
use units::Bytes;
use units::human::counted;
use units::time::print;

/// A trial over HTTP in words, without cores and path.
#[must_use]
pub fn in_words(test: &HttpTest) -> String {
    let HttpTest {
        server,
        client,
        object_bytes,
        version,
        tls,
        store,
        connections,
        transactions_per_connection,
        streams,
        transactions_per_s,
        ramp_ns,
        duration_ns,
    } = *test;
    let objects = match object_bytes {
        Some(bytes) => format!("objects of {}", Bytes::new(bytes)),
        None => "objects of 1, 16, 64 and 256 KiB in turn".to_owned(),
    };
    let pace = transactions_per_s.map_or_else(
        || ", closed loop".to_owned(),
        |rate| format!(", open loop at {rate} transactions/s"),
    );
    let time = |ns| print(Duration::from_nanos(ns));
    let phases = format!(", {} between ramps of {}", time(duration_ns), time(ramp_ns));
    if server == HttpServer::Plain {
        let connections = counted(connections, "connection");
        return format!("short flows, {objects} by {connections} at a time{pace}{phases}");
    }
    let tls = if tls { " over TLS 1.3" } else { "" };
    let mut words = format!(
        "HTTP/{}{tls}, {objects} from {}",
        version.name(),
        server.name()
    );
    match client {
        HttpClient::OpenLoop => {
            words += &format!(" by {}", counted(connections, "connection"));
            if version == HttpVersion::Http2 {
                words += &format!(" of {}", counted(streams, "stream"));
            }
            if let Some(most) = transactions_per_connection {
                words += &format!(" of {} each", counted(most, "transaction"));
            }
            words += &pace;
        }
        HttpClient::Wget2 => {
            let place = match store {
                Store::Ram => "a RAM disk",
                Store::Disk => "the disk",
            };
            words += &format!(
                " by wget2, {} in parallel, to {place}",
                counted(connections, "file")
            );
        }
    }
    words + &phases
}
