//! Nodes of a path as network namespaces, each held by one process.

use journal::record::InterfaceCounters;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use testbed::protocol::{Ended, Program, Ready, Request, Response, THIS_PROGRAM};
use testbed::{Node, NodeId, Result};

/// A node in a namespace. Dropping it runs what it was asked to run at its end.
pub(crate) struct Place {
    id: NodeId,
    holder: Child,
    running: Mutex<Vec<Running>>,
    at_end: Mutex<Vec<Program>>,
}

/// A program that was started, and what it prints.
struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Place {
    pub(crate) fn new(id: NodeId) -> Self {
        let mut holder = Command::new("unshare")
            .args([
                "--net",
                "sh",
                "-c",
                "ip link set lo up && echo ready && exec cat",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = holder.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self {
            id,
            holder,
            running: Mutex::default(),
            at_end: Mutex::default(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.holder.id()
    }

    /// Runs a command that must succeed.
    #[track_caller]
    pub(crate) fn succeed(&self, words: &str) -> String {
        let program = Program::new(words.split(' '));
        let node: &dyn Node = self;
        let ended = node.run(program, Duration::from_secs(10)).unwrap();
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        ended.stdout
    }

    fn start(&self, program: &Program) -> (u64, u32) {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let words = program
            .argv
            .iter()
            .map(|word| if word == THIS_PROGRAM { own } else { word });
        let pid = self.pid().to_string();
        let mut child = Command::new("nsenter")
            .args(["-t", &pid, "-n"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may end without reading it.
        let _ = child
            .stdin
            .take()
            .unwrap()
            .write_all(program.stdin.as_bytes());
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        if let Ready::Line(beginning) = &program.ready {
            while !said.lines().any(|line| line.starts_with(beginning)) {
                assert_ne!(
                    stdout.read_line(&mut said).unwrap(),
                    0,
                    "{:?} ended",
                    program.argv
                );
            }
        }
        let mut stderr = child.stderr.take().unwrap();
        let id = child.id();
        let running = Running {
            child,
            stdout: Some(std::thread::spawn(move || rest(&mut stdout, said))),
            stderr: Some(std::thread::spawn(move || rest(&mut stderr, String::new()))),
        };
        let mut all = self.running.lock().unwrap();
        all.push(running);
        (all.len() as u64 - 1, id)
    }

    fn end(&self, process: u64, limit_ms: u64) -> Ended {
        let mut all = self.running.lock().unwrap();
        let running = &mut all[process as usize];
        let end = Instant::now() + Duration::from_millis(limit_ms);
        let status = loop {
            if let Some(status) = running.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > end {
                running.child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let text = |thread: &mut Option<JoinHandle<String>>| {
            thread
                .take()
                .map(|it| it.join().unwrap())
                .unwrap_or_default()
        };
        Ended {
            code: status.code(),
            stdout: text(&mut running.stdout),
            stderr: text(&mut running.stderr),
            ..Ended::default()
        }
    }
}

fn rest(from: &mut impl Read, mut text: String) -> String {
    let _ = from.read_to_string(&mut text);
    text
}

impl Node for Place {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response> {
        Ok(match request {
            Request::Start { program, .. } => {
                let (process, pid) = self.start(&program);
                Response::Started {
                    process,
                    pid,
                    stdout: String::new(),
                }
            }
            Request::Wait { process, limit_ms } => Response::Ended(self.end(process, limit_ms)),
            Request::Stop { process, grace_ms } => {
                let pid = self.running.lock().unwrap()[process as usize].child.id();
                let _ = kill(Pid::from_raw(pid as i32), Signal::SIGTERM);
                Response::Ended(self.end(process, grace_ms))
            }
            Request::InterfaceCounters => {
                let text = self.succeed("cat /proc/net/dev");
                Response::InterfaceCounters(counters(&text))
            }
            Request::AtEnd { programs, .. } => {
                *self.at_end.lock().unwrap() = programs;
                Response::Noted
            }
            other => panic!("{other:?} is no request of an examination"),
        })
    }
}

/// Reads `/proc/net/dev`.
fn counters(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .map(|(name, numbers)| (name.trim(), numbers))
        .filter(|(name, _)| *name != "lo")
        .map(|(name, numbers)| {
            let numbers: Vec<u64> = numbers
                .split_whitespace()
                .map(|it| it.parse().unwrap())
                .collect();
            let counters = InterfaceCounters {
                rx_packets: numbers[1],
                tx_packets: numbers[9],
                ..InterfaceCounters::default()
            };
            (name.to_owned(), counters)
        })
        .collect()
}

impl Drop for Place {
    fn drop(&mut self) {
        for running in self.running.lock().unwrap().iter_mut() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}
