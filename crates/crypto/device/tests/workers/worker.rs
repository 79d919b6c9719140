//! A worker process and its output.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use catalog::device::{
    DeviceKind, DeviceSpeed, DeviceTest, Fatigue as FatigueTest, Kat, KatRow, Workers,
};
use catalog::worker::{Fatigue, Line, Spec, Speed};

/// A worker that has received its spec. It is killed on drop.
pub(crate) struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    says: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(device: DeviceKind, test: DeviceTest) -> Self {
        Self::start_with(device, test, |_| {})
    }

    pub(crate) fn start_with(
        device: DeviceKind,
        test: DeviceTest,
        how: impl FnOnce(&mut Command),
    ) -> Self {
        let spec = Spec {
            device,
            test,
            processes: 1,
            seed: 7,
        };
        Self::start_text(&serde_json::to_string(&spec).unwrap(), how)
    }

    /// Starts a worker with this first line.
    pub(crate) fn start_text(line: &str, how: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .arg("device")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        how(&mut command);
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut worker = Self {
            child,
            orders,
            says,
        };
        worker.send(line);
        worker
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.orders.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes its standard input.
    pub(crate) fn hang_up(&mut self) {
        self.orders = None;
    }

    /// Returns the next line; `None` at the end.
    pub(crate) fn line(&mut self) -> Option<Line> {
        let text = self.says.next()?.unwrap();
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    /// Waits until it is ready and orders it to begin.
    pub(crate) fn go(mut self) -> Self {
        match self.line() {
            Some(Line::Open(_)) => {}
            other => panic!("it did not open: {other:?}"),
        }
        match self.line() {
            Some(Line::Ready) => {}
            other => panic!("it is not ready: {other:?}"),
        }
        self.send("go");
        self
    }

    /// Returns all remaining lines.
    pub(crate) fn lines(mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        while let Some(line) = self.line() {
            lines.push(line);
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {lines:?}");
        lines
    }

    pub(crate) fn speed(self) -> Speed {
        match &self.go().lines()[..] {
            [Line::Speed(speed), Line::End] => speed.clone(),
            other => panic!("no speed: {other:?}"),
        }
    }

    /// Returns the last report of a completed fatigue trial.
    pub(crate) fn fatigue(self) -> Fatigue {
        match &self.lines()[..] {
            [.., Line::Fatigue(fatigue), Line::End] => fatigue.clone(),
            other => panic!("it did not end: {other:?}"),
        }
    }

    pub(crate) fn kat(self) -> Vec<KatRow> {
        let mut lines = self.lines();
        assert_eq!(lines.pop(), Some(Line::End));
        let row = |line| match line {
            Line::Kat(row) => Some(row),
            Line::Open(_) | Line::Trying(_) => None,
            other => panic!("{other:?}"),
        };
        lines.into_iter().filter_map(row).collect()
    }

    /// Returns the reason why the trial cannot run.
    pub(crate) fn refusal(self) -> String {
        match self.lines().pop() {
            Some(Line::Failed(text)) => text,
            other => panic!("it was not refused: {other:?}"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const CPU: DeviceKind = DeviceKind::Engine { kernel: None };

pub(crate) fn kat(algorithms: &[&str]) -> DeviceTest {
    DeviceTest::Kat(Kat {
        algorithms: algorithms.iter().map(|&name| name.to_owned()).collect(),
    })
}

pub(crate) fn speed(operation: &str, bytes: u32, threads: u32, ms: u64) -> DeviceTest {
    DeviceTest::Speed(DeviceSpeed {
        operation: operation.to_owned(),
        bytes: Some(bytes),
        concurrency: threads,
        workers: Workers::Threads,
        depth: 1,
        duration_ns: ms * 1_000_000,
        slices: 4,
    })
}

/// Without invalid inputs and restarts.
pub(crate) fn loops(operations: &[&str], threads: u32, loops: u64) -> DeviceTest {
    fatigue(operations, threads, Some(loops), false)
}

/// Without an end, and with invalid inputs.
pub(crate) fn endless(operations: &[&str], threads: u32, restart: bool) -> DeviceTest {
    fatigue(operations, threads, None, restart)
}

fn fatigue(operations: &[&str], threads: u32, loops: Option<u64>, restart: bool) -> DeviceTest {
    DeviceTest::Fatigue(FatigueTest {
        operations: operations.iter().map(|&name| name.to_owned()).collect(),
        threads,
        loops,
        duration_ns: None,
        invalid_every: if loops.is_none() { 5 } else { 0 },
        restart,
        snapshot_ns: 0,
    })
}
