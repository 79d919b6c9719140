//! The station: a server on standard input and output, in one network namespace (see
//! [`testbed::protocol`]).
//!
//! The thread that reads requests forks all programs, because the kernel kills a child when the
//! *thread* that forked it ends, and this one lives as long as the station. Requests that may wait
//! are answered from separate threads. Daemons that a program leaves behind become children of the
//! station, their subreaper, and are killed with the rest.

mod ending;
mod isolate;
mod output;
mod process;
mod processes;
mod pump;
mod requests;

use crate::remote::SILENCE;
use crate::remote::attentive::Attentive;
use crate::sync::lock;
use crate::{cpus, privilege, state};
use ending::Ending;
use nix::sys::prctl::set_child_subreaper;
use processes::{Processes, end_all};
use requests::{OfMachine, Requests};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use testbed::protocol::{Call, REPLY_BYTES_MAX, Reply, Request, Response};
use testbed::{LabError, NodeId, Result};

/// A longer request is refused; the longest sensible one writes a file.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Most pending requests; further ones are refused.
const REQUESTS_MAX: usize = 256;

/// Serves requests until end of file, then ends every started program and all descendants.
///
/// As a node of the built-in lab (`node`), it first moves into new namespaces; otherwise it serves
/// the namespace that it was started in. Programs with cores are assigned from `cpus`, by the
/// kernel's numbers; if empty, from all CPUs that this process may use. Call it from the main
/// thread of a process that does nothing else and has no other thread.
///
/// # Errors
/// If the station cannot be set up, or its input cannot be read. Everything is ended in that case
/// too.
pub fn serve(
    node: Option<NodeId>,
    cpus: &[u16],
    input: impl Read,
    output: impl Write + Send + 'static,
) -> Result<()> {
    serve_as((node, cpus), None, input, output)
}

/// Serves a host, like [`serve`] without a node, and starts the stations of a lab there on request.
/// After some seconds without input, it behaves as at the end of the input.
///
/// # Errors
/// As for [`serve`], and if this user may not build a lab here.
pub fn serve_host(input: impl Read + AsFd, mut output: impl Write + Send + 'static) -> Result<()> {
    // A login shell may have left an unfinished line. If the reader is gone, the end of the input
    // follows.
    let _ = output.write_all(b"\n");
    let privilege = privilege::acquire()?;
    let folder = state::folder(privilege)?;
    serve_as(
        (None, &[]),
        Some(folder),
        Attentive::new(input, SILENCE),
        output,
    )
}

/// `state_folder` is for the stations of a host.
fn serve_as(
    (node, cpus): (Option<NodeId>, &[u16]),
    state_folder: Option<PathBuf>,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> Result<()> {
    let cannot_build = |error: std::io::Error| {
        let help = "see whether the machine has processes, descriptors and disk space left";
        LabError::cannot_build(format!("the station cannot be set up: {error}"), help)
    };
    // Before the station moves: its new namespace does not show these settings.
    let of_machine = OfMachine::read();
    let cores = cpus::assignable(cpus)?;
    let mut folder_for_files = std::env::temp_dir();
    let ending = Ending::new().map_err(cannot_build)?;
    if let Some(node) = node {
        isolate::isolate(node)?;
        // A separate file system: files written there, including keys, vanish with the station
        // however it ends.
        folder_for_files = "/run".into();
    }
    // Before any program starts, so that every daemon that one leaves behind becomes a child of the
    // station.
    set_child_subreaper(true).map_err(|error| cannot_build(error.into()))?;
    let processes = Processes::new(cores).map_err(cannot_build)?;
    let requests = Requests::new(
        Arc::clone(&processes),
        &folder_for_files,
        of_machine,
        ending,
        state_folder,
    );
    let server = Arc::new(Server {
        processes,
        requests,
        output: Mutex::new(Box::new(output)),
        pending: AtomicUsize::new(0),
    });
    let result = server.read_requests(BufReader::new(input));
    // They end in order by themselves, which returns their interfaces.
    server.requests.leave_part();
    end_all();
    server.requests.come_to_the_end();
    // Programs of the last actions.
    end_all();
    server.requests.remove_folder();
    result.map_err(|error| LabError::Node {
        node: "station",
        reason: format!("cannot read requests: {error}"),
    })
}

struct Server {
    processes: Arc<Processes>,
    requests: Requests,
    output: Mutex<Box<dyn Write + Send>>,
    pending: AtomicUsize,
}

impl Server {
    fn read_requests(self: &Arc<Self>, mut input: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            // A line without an end must not fill the memory.
            let length = input
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') && length as u64 == LINE_BYTES_MAX {
                // Otherwise the rest of the line would be read as a request.
                input.skip_until(b'\n')?;
                // The id is in the discarded rest or cannot be trusted, so the reply has none.
                self.reply(
                    0,
                    Err(format!("a request is at most {LINE_BYTES_MAX} bytes long")),
                );
                continue;
            }
            match serde_json::from_slice::<Call>(&line) {
                Ok(call) => self.take(call),
                Err(error) => self.reply(id_of(&line), Err(format!("not a request: {error}"))),
            }
        }
    }

    /// Answers a call, in a separate thread if the answer may take time.
    fn take(self: &Arc<Self>, Call { id, request }: Call) {
        // Only this thread adds, so no request can slip in between the check and the addition.
        if self.pending.load(Ordering::Relaxed) >= REQUESTS_MAX {
            return self.reply(
                id,
                Err(format!("{REQUESTS_MAX} requests are pending already")),
            );
        }
        match request {
            // Forked here: this thread does not end before the station. Only the wait is aside.
            Request::Start { program, limit_ms } => match self.processes.spawn(&program) {
                Ok((handle, process)) => self.answer_aside(id, move |server| {
                    server
                        .requests
                        .await_ready(handle, &process, &program.ready, limit_ms)
                }),
                Err(error) => self.reply(id, Err(error)),
            },
            request => self.answer_aside(id, move |server| server.requests.answer(request)),
        }
    }

    fn answer_aside(
        self: &Arc<Self>,
        id: u64,
        answer: impl FnOnce(&Self) -> Result<Response, String> + Send + 'static,
    ) {
        let server = Arc::clone(self);
        self.pending.fetch_add(1, Ordering::Relaxed);
        let spawned = thread::Builder::new()
            .name("request".into())
            .spawn(move || {
                let result = answer(&server);
                // Before the reply: its reader may send the next request immediately.
                server.pending.fetch_sub(1, Ordering::Relaxed);
                server.reply(id, result);
            });
        // The thread never ran, so the call is answered and counted off here.
        if let Err(error) = spawned {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            self.reply(id, Err(format!("no thread to answer with: {error}")));
        }
    }

    fn reply(&self, id: u64, result: Result<Response, String>) {
        let line = |result| {
            serde_json::to_vec(&Reply { id, result })
                .unwrap_or_else(|error| unreachable!("a reply is maps, texts and numbers: {error}"))
        };
        // The reader gives up a station that sends a longer line, and all its pending calls.
        let mut line = match line(result) {
            long if long.len() > REPLY_BYTES_MAX => {
                let (bytes, most) = (long.len(), REPLY_BYTES_MAX);
                line(Err(format!(
                    "the answer has {bytes} bytes, and at most {most} are sent"
                )))
            }
            line => line,
        };
        line.push(b'\n');
        let mut output = lock(&self.output);
        // If the reader is gone, the end of the input follows.
        let _ = output.write_all(&line).and_then(|()| output.flush());
    }
}

/// Returns the id of an invalid call, so that its caller need not wait; 0 if it has none.
fn id_of(line: &[u8]) -> u64 {
    let call: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
    call.get("id")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0)
}
