//! Screens of made-up states as goldens, and on a terminal in memory.

use crate::progress::screen::lines;
use crate::progress::state::{Now, Phase, ResultKind, Row, State, TrialResult};
use crate::progress::terminal::Drawing;
use console::Term;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthStr;
use vt100::Parser;

/// Widths of terminals, and their height.
const WIDTHS: [usize; 4] = [40, 60, 80, 120];
const HEIGHT: usize = 24;

const REPEATS: u32 = 3;
const DEVICES: [&str; 3] = ["direct", "wireguard-go", "cipherbench"];
const TRIALS: [&str; 4] = [
    "tcp/mtu=1500/streams=4",
    "udp/mtu=1500/datagram=1400/rate=500M",
    "throughput/frame=64/direction=both",
    "throughput/frame=imix/direction=both",
];

/// The state of a run with this many results, in a frame trial.
fn state(results: usize, now: Instant) -> State {
    let trials = TRIALS
        .iter()
        .flat_map(|trial| DEVICES.map(|device| format!("{trial}/{device}")));
    let mut rows: Vec<Row> = trials
        .map(|cell| Row {
            cell,
            repeats: REPEATS,
            results: BTreeMap::new(),
            newest: None,
            skipped: None,
        })
        .collect();
    let cells = rows.len();
    for at in 0..results {
        let repeat = 1 + (at / cells) as u32;
        let (kind, text) = match at {
            3 => (
                ResultKind::Invalid,
                "invalid: sender-stalled failed: the sender stood still for 12 ms".to_owned(),
            ),
            5 => (
                ResultKind::Failed,
                "failed: wireguard-go ended: no such device; help: load the module".to_owned(),
            ),
            at if at % cells < 6 => (ResultKind::Measured, format!("{} Mbit/s", 900 + at)),
            at => (
                ResultKind::Measured,
                format!("ndr {0} kpps, pdr {0}.5 kpps", 200 + at),
            ),
        };
        let row = &mut rows[at % cells];
        row.results.insert(repeat, TrialResult { text, kind });
        row.newest = Some((repeat, at + 1));
    }
    let current = rows[results % cells].cell.clone();
    State {
        run: "20261120T113000Z-branch-office".to_owned(),
        campaign: "branch-office".to_owned(),
        title: "What a branch office gets through the tunnel".to_owned(),
        lab: "namespaces".to_owned(),
        trials: cells * REPEATS as usize,
        now: Some(Now {
            cell: current,
            repeat: Some(1 + (results / cells) as u32),
            began: now,
            estimate: Duration::from_secs(30),
            facts: [
                "frame trial 18 at 273 kpps",
                "ndr from 24.9 kpps to 281 kpps",
                "the one before lost 2.5 %",
            ]
            .map(str::to_owned)
            .to_vec(),
            soaked: (0, 0),
        }),
        left: Some((Duration::from_secs(754), now)),
        rows: Arc::new(rows),
        phase: Phase::Measuring,
        results,
    }
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/progress/golden");
    let path = path.join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        text, expected,
        "{name} differs: UPDATE_GOLDEN=1 cargo test -p cipherbench-session rewrites it"
    );
}

#[test]
fn screens_are_as_recorded_at_every_width() {
    let begun = Instant::now();
    let now = begun + Duration::from_secs(12);
    for width in WIDTHS {
        let mut text = String::new();
        let mut waiting = state(20, begun);
        waiting.phase = Phase::Waiting("host b does not answer: no route to host".to_owned());
        for (title, state) in [
            ("the first trial", state(0, begun)),
            ("the first repeat", state(8, begun)),
            ("the second repeat", state(20, begun)),
            ("a host has gone", waiting),
        ] {
            let lines = lines(&state, now, width, HEIGHT);
            assert!(lines.len() <= HEIGHT, "{lines:#?}");
            let wide = lines.iter().find(|line| line.width() > width);
            assert_eq!(wide, None);
            // No part of an id stands for several cells.
            assert!(!lines.iter().any(|line| line.contains("…/")), "{lines:#?}");
            text += &format!("# {title}, {width} columns\n{}\n\n", lines.join("\n"));
        }
        golden(&format!("screen-{width}.txt"), &text);
    }
}

#[test]
fn a_screen_fits_a_terminal_of_any_size() {
    let now = Instant::now();
    let mut state = state(20, now);
    state.title = "日本語の表題と\u{1b}[2Jescape".to_owned();
    for columns in (0..45).chain((45..130).step_by(7)) {
        for rows in (0..12).chain([24, 40]) {
            let lines = lines(&state, now, columns, rows);
            assert!(lines.len() <= rows);
            for line in lines {
                assert!(line.width() <= columns.max(1), "{columns}: {line}");
                assert!(!line.contains('\u{1b}'), "{line}");
            }
        }
    }
}

/// A terminal in memory, to which the program writes through a file.
struct Terminal {
    term: Term,
    file: File,
    parser: Parser,
}

impl Terminal {
    fn new(rows: u16, columns: u16) -> Self {
        let folder = testing::folder().unwrap();
        let path = folder.path().join("terminal");
        let written = File::create(&path).unwrap();
        let file = File::open(&path).unwrap();
        let [rows, columns] = [rows, columns].map(|size| NonZero::new(size).unwrap());
        Self {
            term: Term::read_write_pair(File::open("/dev/null").unwrap(), written),
            file,
            parser: Parser::new(rows, columns, 0),
        }
    }

    /// Shows what was written since.
    fn lines(&mut self) -> Vec<String> {
        let mut written = String::new();
        self.file.read_to_string(&mut written).unwrap();
        // As the kernel's terminals do.
        self.parser
            .process(written.replace('\n', "\r\n").as_bytes());
        let text = self.parser.screen().contents();
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
fn a_drawing_replaces_itself_below_what_was_there_before() {
    let now = Instant::now();
    let mut terminal = Terminal::new(30, 80);
    let mut drawing = Drawing::default();
    terminal.parser.process(b"$ cipherbench run\r\n");
    for results in [3, 20, 8, 0] {
        let lines = lines(&state(results, now), now, 79, 28);
        drawing
            .draw(&terminal.term, lines.clone(), (30, 80))
            .unwrap();
        let shown = terminal.lines();
        assert_eq!(shown[0], "$ cipherbench run");
        assert_eq!(shown[1..], lines);
    }
    drawing.clear(&terminal.term).unwrap();
    assert_eq!(terminal.lines(), ["$ cipherbench run"]);
}

#[test]
fn a_terminal_that_is_resized_shows_one_whole_screen() {
    let now = Instant::now();
    let mut terminal = Terminal::new(24, 120);
    let mut drawing = Drawing::default();
    for (rows, columns) in [(24, 120), (24, 40), (10, 40), (24, 60), (40, 120), (6, 20)] {
        let size = [rows, columns].map(|size| NonZero::new(size).unwrap());
        terminal.parser.set_size(size[0], size[1]);
        let (rows, columns) = (usize::from(rows), usize::from(columns));
        let lines = lines(&state(20, now), now, columns - 1, rows - 1);
        drawing
            .draw(&terminal.term, lines.clone(), (rows, columns))
            .unwrap();
        assert_eq!(terminal.lines(), lines, "{rows} rows, {columns} columns");
    }
}
