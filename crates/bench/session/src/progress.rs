//! Progress of a run on standard error: a bar that clears itself on a terminal, otherwise a line
//! for each completed trial, and for the beginning of long steps.

mod frames;
mod step;

use crate::reporter::Reporter;
use console::Term;
use frames::frames_figure;
use guard::visible;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use journal::record::{
    DeviceFatigue, DeviceFound, DeviceResult, DeviceSpeed, FatigueSegment, Figures, FramesSeen,
    HttpResult, KatOutcome, KatRow, Latency, Measured, Outcome, SpeedTrial, ToolParameters,
    Transfer, TrialRecord, VideoResult, in_brief,
};
use plan::Cell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trial::{Checkpoint, Progress, RunEvent, TrialEvent};
use units::human;

/// Interval for redrawing the time left: long enough not to affect measurements.
const TICK: Duration = Duration::from_secs(1);

/// Without a terminal: after this time without a line the next step is also printed.
const SILENCE: Duration = Duration::from_secs(10);

/// Columns of the bar itself, as its template has it.
const BAR_CHARS: usize = 20;

/// Shows the progress of a run.
pub(crate) struct Watch {
    display: Display,
    /// The last figure of each cell, as text.
    figures: BTreeMap<String, String>,
}

enum Display {
    Nothing,
    Lines(Lines),
    Bar(Bar),
}

impl Watch {
    /// Selects the display for standard error; none if the reporter is quiet.
    pub(crate) fn new(reporter: Reporter) -> Self {
        let display = match (reporter.is_quiet, stderr().is_terminal()) {
            (true, _) => Display::Nothing,
            (false, false) => Display::Lines(Lines {
                printed: None,
                reporter,
            }),
            (false, true) => Display::Bar(Bar::new()),
        };
        Self {
            display,
            figures: BTreeMap::new(),
        }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, progress: Progress<'_>) {
        if let RunEvent::Ended(record) = progress.event {
            self.figures.insert(record.cell.clone(), came_of(record));
        }
        match &mut self.display {
            Display::Nothing => {}
            Display::Lines(lines) => lines.show(progress),
            Display::Bar(bar) => bar.show(progress, &self.figures),
        }
    }
}

/// The lines of a run without a terminal.
struct Lines {
    /// When the last one was.
    printed: Option<Instant>,
    reporter: Reporter,
}

impl Lines {
    fn show(&mut self, progress: Progress<'_>) {
        let Some(what) = self.line(progress.event) else {
            return;
        };
        let Progress {
            trial,
            trials,
            left,
            ..
        } = progress;
        self.printed = Some(Instant::now());
        // The estimate of the time left changes when a step ends. At the beginning of one it would
        // repeat the line before.
        let begins = matches!(
            progress.event,
            RunEvent::Started(_)
                | RunEvent::Attempt { .. }
                | RunEvent::InTrial(_, TrialEvent::FrameTrial(_))
        );
        let left = if begins {
            String::new()
        } else {
            format!(" (about {} left)", in_seconds(left))
        };
        self.reporter
            .notice(&format!("[{trial}/{trials}] {what}{left}\n"));
    }

    /// Describes completed trials and tuned cells, and the beginning of steps that take long or
    /// follow a long silence.
    fn line(&self, event: RunEvent<'_>) -> Option<String> {
        let is_silent = self.printed.is_none_or(|at| at.elapsed() >= SILENCE);
        Some(match event {
            RunEvent::Started(trial) => {
                // A longer trial would itself be a silence, so its beginning is printed in any
                // case.
                let time = Duration::from_nanos(trial.cell.estimate_ns);
                if !is_silent && time < SILENCE {
                    return None;
                }
                let time = human::estimate_ns(trial.cell.estimate_ns as f64);
                format!("{} #{} begins, about {time}", trial.cell.id, trial.repeat)
            }
            RunEvent::Attempt { .. } | RunEvent::InTrial(_, TrialEvent::FrameTrial(_))
                if !is_silent =>
            {
                return None;
            }
            RunEvent::Attempt {
                cell,
                parameters,
                attempt,
                attempts_max,
            } => attempted(cell, parameters, (attempt, attempts_max)),
            RunEvent::InTrial(_, TrialEvent::FrameTrial(step)) => step::whole(step),
            RunEvent::InTrial(trial, TrialEvent::Checkpoint(Checkpoint::Soak(soak))) => format!(
                "{}: {} more, {} frames lost in it",
                trial.cell.id,
                human::duration_ns(soak.trial.duration_ns as f64),
                soak.trial.lost()
            ),
            RunEvent::InTrial(trial, TrialEvent::Checkpoint(Checkpoint::Fatigue(of))) => {
                format!("{}: {}", trial.cell.id, fatigue(&of.segment))
            }
            RunEvent::Tuned(tuned) => {
                format!("{}: best with {}", tuned.cell, in_words(&tuned.best))
            }
            RunEvent::Ended(record) => ended(record),
        })
    }
}

/// Describes an attempt to find better parameters.
fn attempted(cell: &Cell, parameters: &ToolParameters, (attempt, of): (u32, u32)) -> String {
    format!("{}: {} ({attempt} of {of})", cell.id, in_words(parameters))
}

fn ended(record: &TrialRecord) -> String {
    format!("{} #{}: {}", record.cell, record.repeat, came_of(record))
}

/// The bar of a run with its expected end.
struct Bar {
    bar: ProgressBar,
    end: Arc<Mutex<Instant>>,
}

impl Bar {
    fn new() -> Self {
        let end = Arc::new(Mutex::new(Instant::now()));
        let expected = Arc::clone(&end);
        let left = move |_: &ProgressState, out: &mut dyn Write| {
            let end = *expected.lock().unwrap_or_else(PoisonError::into_inner);
            // Writing to the bar's buffer does not fail.
            let _ = out.write_str(&in_seconds(end.saturating_duration_since(Instant::now())));
        };
        // `left` counts down between events, since the bar is redrawn every second from the
        // expected end.
        let style =
            ProgressStyle::with_template("{bar:20} {pos}/{len}  about {left} left  {wide_msg}")
                .expect("the template is valid")
                .with_key("left", left)
                .progress_chars("━╸ ");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style);
        bar.enable_steady_tick(TICK);
        Self { bar, end }
    }

    /// The bar writes to the terminal by itself, past the reporter.
    fn say(&self, text: &str) {
        self.bar.set_message(visible(text).into_owned());
    }

    fn show(&self, progress: Progress<'_>, figures: &BTreeMap<String, String>) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + progress.left;
        self.bar.set_length(progress.trials as u64);
        match progress.event {
            RunEvent::Attempt {
                cell,
                parameters,
                attempt,
                attempts_max,
            } => self.say(&attempted(cell, parameters, (attempt, attempts_max))),
            RunEvent::Started(trial) => {
                // Trials count from 1, and this one has only begun.
                self.bar.set_position(progress.trial as u64 - 1);
                let id = format!("{} #{}", trial.cell.id, trial.repeat);
                let before = figures.get(&trial.cell.id);
                let before: Vec<String> = before
                    .iter()
                    .map(|figure| format!("before {figure}"))
                    .collect();
                let line = step::fitted(&id, &before, room(&progress));
                self.say(if line.is_empty() { &id } else { &line });
            }
            RunEvent::Ended(record) => {
                self.bar.set_position(progress.trial as u64);
                self.bar.println(visible(&ended(record)));
            }
            RunEvent::InTrial(_, TrialEvent::FrameTrial(step)) => {
                let parts = step::parts(step);
                self.say(&step::fitted(&step.cell.id, &parts, room(&progress)));
            }
            RunEvent::InTrial(trial, TrialEvent::Checkpoint(Checkpoint::Fatigue(of))) => {
                let figure = fatigue(&of.segment);
                self.say(&format!("{}: {figure}", trial.cell.id));
            }
            // The next step begins immediately and replaces the text.
            RunEvent::Tuned(_)
            | RunEvent::InTrial(_, TrialEvent::Checkpoint(Checkpoint::Soak(_))) => {}
        }
    }
}

/// Columns that the bar, the numbers and the time left leave for the message.
fn room(progress: &Progress<'_>) -> usize {
    let numbers = format!("{0}/{0}", progress.trials);
    let left = format!("  about {} left  ", in_seconds(progress.left));
    let width = usize::from(Term::stderr().size().1);
    width.saturating_sub(BAR_CHARS + 1 + numbers.len() + left.len())
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Describes the outcome of a trial: its figure, or why it has none.
fn came_of(record: &TrialRecord) -> String {
    match &record.outcome {
        Outcome::Invalid { reasons, .. } => {
            let words = reasons
                .iter()
                .map(|reason| invalid(&record.outcome, reason));
            format!("invalid: {}", words.collect::<Vec<_>>().join("; "))
        }
        Outcome::Failed { reason } => format!("failed: {}", on_one_line(reason)),
        Outcome::Measured(measured) => figure(measured),
    }
}

/// Describes a reason of an invalid trial: its check and the difference, or the whole reason.
fn invalid(outcome: &Outcome, reason: &str) -> String {
    match outcome.explanation(reason) {
        Some(found) => format!("{} failed: {}", in_brief(reason), found.difference),
        None => reason.to_owned(),
    }
}

/// Reasons may have several lines: a sentence, then help or a tool's last lines.
fn on_one_line(reason: &str) -> String {
    reason.lines().collect::<Vec<_>>().join("; ")
}

fn figure(measured: &Measured) -> String {
    match &measured.figures {
        Figures::Transfer(transfer) => {
            let words = |way: &Transfer| human::bit_rate(received_bps(way)) + &loss(way);
            transfer
                .each_way()
                .map(words)
                .collect::<Vec<_>>()
                .join(" and back ")
        }
        Figures::Latency(latency) => {
            format!("median {}", human::duration_ns(median_ns(latency)))
        }
        Figures::Http(http) => transactions(http),
        Figures::Video(video) => frames_shown(video),
        Figures::Frames(frames) => frames_figure(frames),
        Figures::Device(device) => device_figure(device),
        Figures::None => "nothing".to_owned(),
    }
}

fn frames_shown(video: &VideoResult) -> String {
    let of = |count: fn(&FramesSeen) -> u64| video.sum(|stream| count(&stream.frames));
    let lost = video.sum(|stream| stream.rtp.map_or(0, |rtp| rtp.lost));
    format!(
        "{} of {} frames shown, {} damaged, {lost} packets lost",
        of(|frames| frames.shown),
        of(|frames| frames.expected),
        of(|frames| frames.damaged)
    )
}

fn transactions(http: &HttpResult) -> String {
    let seconds = http.duration_ns.max(1) as f64 / 1e9;
    let bps = 8.0 * http.object_bytes as f64 / seconds;
    format!(
        "{:.0} transactions/s, {}",
        http.transactions as f64 / seconds,
        human::bit_rate(bps)
    )
}

/// Describes a result of a crypto device: the failed cases, the rate, or a fatigue trial.
fn device_figure(result: &DeviceResult) -> String {
    match &result.found {
        DeviceFound::NotOffered(why) => format!("not offered: {}", on_one_line(why)),
        DeviceFound::Kat(rows) => known_answers(rows),
        DeviceFound::Speed(trial) => speed(trial),
        DeviceFound::Fatigue(segments) => segments.last().map_or_else(String::new, fatigue),
    }
}

fn speed(trial: &SpeedTrial) -> String {
    let sum = |of: fn(&DeviceSpeed) -> u64| trial.devices.iter().map(of).sum::<u64>() as f64;
    let (operations, bytes) = (sum(|device| device.operations), sum(|device| device.bytes));
    let seconds = trial.span_ns.max(1) as f64 / 1e9;
    let rate = format!("{} operations/s", human::number(operations / seconds));
    if bytes > 0.0 {
        format!("{rate}, {}/s", human::data(bytes / seconds))
    } else {
        rate
    }
}

fn known_answers(rows: &[KatRow]) -> String {
    let count = |is: &dyn Fn(&KatOutcome) -> bool| {
        let rows = rows.iter().filter(|row| is(&row.outcome));
        rows.count()
    };
    let absent = match count(&|outcome| matches!(outcome, KatOutcome::NotOffered(_))) {
        0 => String::new(),
        rows => format!(", {rows} not offered"),
    };
    format!(
        "{} cases passed, {} failed{absent}",
        count(&|outcome| *outcome == KatOutcome::Pass),
        count(&KatOutcome::is_bad)
    )
}

/// Describes a fatigue trial so far.
fn fatigue(segment: &FatigueSegment) -> String {
    let sum = |of: fn(&DeviceFatigue) -> u64| segment.devices.iter().map(of).sum::<u64>();
    let right = sum(|device| device.counts.right);
    let bad = sum(|device| device.counts.bad());
    format!(
        "{} operations right and {bad} not in {}",
        human::number(right as f64),
        human::duration_ns(segment.elapsed_ns() as f64)
    )
}

fn received_bps(transfer: &Transfer) -> f64 {
    transfer.received_bytes as f64 * 8e9 / transfer.duration_ns.max(1) as f64
}

fn loss(transfer: &Transfer) -> String {
    match &transfer.datagrams {
        Some(datagrams) if datagrams.sent > 0 => {
            let percent = 100.0 * datagrams.lost as f64 / datagrams.sent as f64;
            format!(", {} % lost", human::number(percent))
        }
        _ => String::new(),
    }
}

/// The median round trip, which the report has as well; 0 without any.
fn median_ns(latency: &Latency) -> f64 {
    let mut times = latency.round_trips_ns.clone();
    times.sort_unstable();
    let middle = times.len().saturating_sub(1) / 2;
    times.get(middle).map_or(0.0, |&time| time as f64)
}

/// Tool parameters as the tool's options: `-P 4 -w 1 MiB`.
fn in_words(parameters: &ToolParameters) -> String {
    let words = [
        parameters.streams.map(|streams| format!("-P {streams}")),
        parameters.window_bytes.map(|bytes| format!("-w {bytes}")),
        parameters.datagram_bytes.map(|bytes| format!("-l {bytes}")),
        parameters
            .rate_bps
            .map(|bps| format!("-b {}", human::bit_rate(bps as f64))),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A time in whole seconds, as a countdown has it: `65 s`, `2 min 5 s`, `1 h 31 min`.
pub(crate) fn in_seconds(time: Duration) -> String {
    match time.as_secs_f64().round() {
        // Else in the smallest unit.
        seconds if seconds < 1.0 => "0 s".to_owned(),
        seconds => human::duration_ns(seconds * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{Check, Explanation};

    #[test]
    fn the_time_left_is_in_whole_seconds() {
        let times = [0, 59_600, 125_000, 3_599_000, 5_460_000];
        let shown = times.map(|ms| in_seconds(Duration::from_millis(ms)));
        assert_eq!(
            shown,
            ["0 s", "60 s", "2 min 5 s", "59 min 59 s", "1 h 31 min"]
        );
    }

    #[test]
    fn without_a_terminal_a_long_trial_and_a_long_silence_are_not_silent() {
        let campaign = campaign::Campaign::quick();
        let host = campaign::HostFacts { cores: 2 };
        let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
        let mut cell = plan.cells[0].clone();
        let line = |lines: &Lines, cell: &Cell| {
            let trial = plan::TrialRef { cell, repeat: 2 };
            lines.line(RunEvent::Started(trial))
        };
        let mut lines = Lines {
            printed: None,
            reporter: Reporter {
                is_quiet: false,
                write: |_| (),
            },
        };
        cell.estimate_ns = 2_000_000_000;
        let first = line(&lines, &cell).unwrap();
        assert_eq!(first, format!("{} #2 begins, about 2 s", cell.id));
        lines.printed = Some(Instant::now());
        assert_eq!(line(&lines, &cell), None);
        lines.printed = Instant::now().checked_sub(SILENCE);
        assert!(line(&lines, &cell).is_some());
        lines.printed = Some(Instant::now());
        cell.estimate_ns = 60_000_000_000;
        assert!(line(&lines, &cell).unwrap().ends_with("about 60 s"));
    }

    #[test]
    fn transfers_show_their_loss_and_failed_trials_their_reason() {
        let mut record = TrialRecord {
            cell: "udp/direct".to_owned(),
            repeat: 2,
            started_unix_ns: 0,
            duration_ns: 0,
            clock_step_ns: 0,
            commands: Vec::new(),
            outcome: Outcome::Failed {
                reason: "iperf3 is gone\nhelp: install it".to_owned(),
            },
        };
        assert_eq!(
            ended(&record),
            "udp/direct #2: failed: iperf3 is gone; help: install it"
        );
        let datagrams = Some(journal::record::Datagrams {
            sent: 1000,
            lost: 25,
            ..Default::default()
        });
        let (duration_ns, received_bytes) = (2_000_000_000, 250_000_000);
        let transfer = Transfer {
            duration_ns,
            received_bytes,
            datagrams,
            ..Default::default()
        };
        let measured = Measured {
            figures: Figures::Transfer(transfer),
            ..Default::default()
        };
        record.outcome = Outcome::Measured(Box::new(measured.clone()));
        assert_eq!(ended(&record), "udp/direct #2: 1 Gbit/s, 2.5 % lost");
        let reasons = vec!["clear-text".to_owned(), "no ESP".to_owned()];
        record.outcome = Outcome::Invalid {
            reasons,
            measured: Box::new(measured),
        };
        assert_eq!(ended(&record), "udp/direct #2: invalid: clear-text; no ESP");
        let failure = Explanation::new("7 frames were readable", "it is broken", "repair it");
        let check = Check::new("no-clear-text", failure, "7 of 300 frames");
        if let Outcome::Invalid { reasons, measured } = &mut record.outcome {
            *reasons = vec!["no-clear-text: 7 of 300 frames".to_owned()];
            measured.evidence.checks.push(check);
        }
        assert_eq!(
            ended(&record),
            "udp/direct #2: invalid: no-clear-text failed: 7 frames were readable"
        );
    }
}
