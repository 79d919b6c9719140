//! What a box is monitored by: net-snmp's agent in the box, and pages at the tester.

use super::rack::{MANAGED, Rack, TESTER};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Objects that the agent has beside its own: 415, and `37.5 W`.
pub(super) const TENTHS: &str = "1.3.6.1.4.1.8072.2.999.1.0";
pub(super) const WATTS: &str = "1.3.6.1.4.1.8072.2.999.2.0";

/// Its community and its users' passwords, by the name of their files.
const SECRETS: [(&str, &str); 5] = [
    ("community", "measure"),
    ("password", "password-of-bench"),
    ("privacy", "privacy-of-bench"),
    ("wrong", "none of the others"),
    ("short", "seven77"),
];

/// The agent of the first box, as long as this lives.
pub(super) struct Agent(Child);

impl Agent {
    /// `None` where net-snmp's agent is not installed.
    pub(super) fn start(rack: &Rack) -> Option<Self> {
        let places = ["/usr/sbin/snmpd", "/usr/local/sbin/snmpd", "/sbin/snmpd"];
        let program = places.into_iter().find(|path| Path::new(path).exists())?;
        for (name, secret) in SECRETS {
            let path = rack.path(name);
            fs::write(&path, format!("{secret}\n")).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        }
        let config = format!(
            "agentAddress udp:{MANAGED}:161\n\
             rocommunity measure\n\
             createUser bench SHA-256 password-of-bench AES privacy-of-bench\n\
             createUser plainer SHA password-of-bench\n\
             rouser bench priv\n\
             rouser plainer auth\n\
             override .{TENTHS} integer 415\n\
             override .{WATTS} octet_str \"37.5 W\"\n"
        );
        fs::write(rack.path("snmpd.conf"), config).unwrap();
        let log = rack.path("snmpd.log");
        let via = rack.via(1);
        let child = Command::new(&via[0])
            // Without the shell at the end: the agent is the child itself, and can be killed.
            .args(&via[1..via.len() - 2])
            .args([program, "-f", "-C", "-I", "-smux", "-c"])
            .arg(rack.path("snmpd.conf"))
            .arg("-Lf")
            .arg(&log)
            .env("SNMP_PERSISTENT_DIR", rack.path("snmpd"))
            // No MIBs are loaded, since objects have numbers here.
            .env("MIBS", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let agent = Self(child);
        let begun = Instant::now();
        let is_ready =
            || fs::read_to_string(&log).is_ok_and(|log| log.contains("NET-SNMP version"));
        while !is_ready() {
            assert!(begun.elapsed() < PATIENCE, "{:?}", fs::read_to_string(&log));
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(agent)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of one page at the tester, whose answers differ from request to request.
pub(super) struct Pages {
    pub(super) url: String,
    pub(super) served: Arc<AtomicUsize>,
    over: Arc<(Mutex<bool>, Condvar)>,
}

/// How a request is answered.
pub(super) enum Reply {
    Text(&'static str),
    /// Text without end.
    Endless,
    /// Never.
    Silence,
}

impl Pages {
    pub(super) fn serve(reply: fn(usize) -> Reply) -> Self {
        let listener = TcpListener::bind((TESTER, 0)).unwrap();
        let url = format!("http://{}/metrics", listener.local_addr().unwrap());
        let served = Arc::new(AtomicUsize::new(0));
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let (count, ending) = (Arc::clone(&served), Arc::clone(&over));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let number = count.fetch_add(1, Ordering::Relaxed);
                let ending = Arc::clone(&ending);
                std::thread::spawn(move || answer(stream.unwrap(), &reply(number), &ending));
            }
        });
        Self { url, served, over }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        *self.over.0.lock().unwrap() = true;
        self.over.1.notify_all();
    }
}

fn answer(mut stream: TcpStream, reply: &Reply, over: &(Mutex<bool>, Condvar)) {
    let mut request = [0; 1024];
    assert!(stream.read(&mut request).unwrap() > 0);
    match reply {
        Reply::Text(text) => {
            let _ = stream.write_all(format!("HTTP/1.0 200 OK\r\n\r\n{text}").as_bytes());
        }
        Reply::Endless => {
            let line = "node_load1 0.5\n".repeat(1000);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n");
            // Until the reader has had enough and closes the connection.
            while stream.write_all(line.as_bytes()).is_ok() {}
        }
        Reply::Silence => {
            let over = over.1.wait_while(over.0.lock().unwrap(), |over| !*over);
            drop(over.unwrap());
        }
    }
}
