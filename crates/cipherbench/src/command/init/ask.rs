//! Questions on a terminal, one line each.

use crate::exit::{Exit, Failure};
use crate::output;
use session::init::Choice;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Read};
use std::str::FromStr;

/// Longer than any name of a file.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// Asks, if there is a terminal.
#[derive(Clone, Copy)]
pub(super) struct Dialogue {
    is_possible: bool,
    /// The sub-command, and the flags that it needs without a terminal.
    command: &'static str,
    flags: &'static str,
}

impl Dialogue {
    /// Questions go to standard error, since standard output may be piped.
    pub(super) fn of(command: &'static str, flags: &'static str) -> Self {
        Self {
            is_possible: io::stdin().is_terminal() && io::stderr().is_terminal(),
            command,
            flags,
        }
    }

    pub(super) const fn is_possible(self) -> bool {
        self.is_possible
    }

    /// What is missing without a terminal.
    pub(super) fn impossible(self) -> Failure {
        let Self { command, flags, .. } = self;
        Failure::new(
            Exit::Usage,
            format!(
                "`init {command}` asks questions, and there is no terminal\nhelp: answer them by flags: {flags}; \
                 `cipherbench init {command} --help` has all of them"
            ),
        )
    }

    /// One line, or the default for an empty one. Asked again until it can be read.
    pub(super) fn line<T: FromStr<Err: Display>>(
        self,
        question: &str,
        default: Option<&str>,
    ) -> Result<T, Failure> {
        self.until(question, default, |answer| {
            answer.parse().map_err(|error: T::Err| error.to_string())
        })
    }

    /// One of several choices, by number or word.
    pub(super) fn choose<T>(
        self,
        question: &str,
        known: &'static [Choice<T>],
        default: &'static Choice<T>,
    ) -> Result<&'static Choice<T>, Failure> {
        self.show(known, |_| String::new())?;
        self.until(question, Some(default.word), |answer| find(known, answer))
    }

    /// Several choices, by numbers or words. `mark` follows a choice in the list.
    pub(super) fn choose_several<T>(
        self,
        question: &str,
        known: &'static [Choice<T>],
        default: &[&'static Choice<T>],
        mark: impl Fn(&T) -> String,
    ) -> Result<Vec<&'static Choice<T>>, Failure> {
        self.show(known, mark)?;
        let words: Vec<_> = default.iter().map(|choice| choice.word).collect();
        self.until(question, Some(&words.join(",")), |answer| {
            let words = answer.split([',', ' ']).filter(|word| !word.is_empty());
            words.map(|word| find(known, word)).collect()
        })
    }

    fn show<T>(self, known: &[Choice<T>], mark: impl Fn(&T) -> String) -> Result<(), Failure> {
        if !self.is_possible {
            return Err(self.impossible());
        }
        let width = known.iter().map(|choice| choice.word.len()).max();
        let width = width.unwrap_or(0);
        for (number, choice) in (1..).zip(known) {
            let Choice { word, what, value } = choice;
            let mark = mark(value);
            output::stderr(&format!("  {number}  {word:width$}  {what}{mark}\n"));
        }
        Ok(())
    }

    fn until<T>(
        self,
        question: &str,
        default: Option<&str>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Failure> {
        if !self.is_possible {
            return Err(self.impossible());
        }
        let proposed = default.map_or_else(String::new, |default| format!(" [{default}]"));
        loop {
            output::stderr(&format!("{question}{proposed}: "));
            let answer = answer()?;
            let answer = answer.trim();
            let answer = match (answer, default) {
                ("", Some(default)) => default,
                (answer, _) => answer,
            };
            let why = match answer {
                "" => "an answer is needed".to_owned(),
                answer => match read(answer) {
                    Ok(value) => return Ok(value),
                    Err(why) => why,
                },
            };
            output::stderr(&format!("{why}\n"));
        }
    }
}

fn find<T>(known: &'static [Choice<T>], answer: &str) -> Result<&'static Choice<T>, String> {
    let number = answer.parse::<usize>().ok();
    // The list is shown from 1 on: 0 is no number of it.
    let by_number = number.and_then(|number| known.get(number.checked_sub(1)?));
    let by_word = || known.iter().find(|choice| choice.word == answer);
    by_number.or_else(by_word).ok_or_else(|| {
        format!(
            "`{answer}` is not in the list: answer with a number from 1 to {}",
            known.len()
        )
    })
}

/// One line of standard input.
fn answer() -> Result<String, Failure> {
    // A file given as standard input could have a line without an end, but it is no terminal.
    let mut line = String::new();
    let read = io::stdin()
        .lock()
        .take(ANSWER_BYTES_MAX)
        .read_line(&mut line);
    let nothing = |why: &dyn Display| {
        let help = "answer the question, or give its flag; nothing was written";
        Failure::new(Exit::Usage, format!("{why}\nhelp: {help}"))
    };
    match read {
        // Ctrl-D. The cursor is still behind the question.
        Ok(0) => {
            output::stderr("\n");
            Err(nothing(&"there was no answer"))
        }
        Ok(_) => Ok(line),
        Err(error) => Err(nothing(&format!("cannot read the answer: {error}"))),
    }
}
