//! Commands, files and addresses that boxes need from this machine, and the check that a campaign
//! could contain them.

use super::BOXES_MAX;
use super::settings::{External, ExternalBox, is_command};

impl ExternalBox {
    /// The commands that this machine runs for the box, the agents and pages that it queries, and
    /// the secrets for them, each with its key.
    fn demands(&self) -> Vec<(&'static str, String)> {
        let mut demands = Vec::new();
        if !self.via.is_empty() {
            demands.push(("via", self.via.join(" ")));
        }
        let lists = [
            ("up", &self.up),
            ("down", &self.down),
            ("counters", &self.counter_lines),
        ];
        for (key, commands) in lists {
            demands.extend(commands.iter().map(|command| (key, command.clone())));
        }
        let single = [
            ("version", &self.version),
            ("suite_told", &self.suite_told),
            ("reset", &self.reset),
            ("started", &self.started),
        ];
        for (key, command) in single {
            demands.extend(command.iter().map(|command| (key, command.clone())));
        }
        let counters = self.counters.values();
        demands.extend(counters.map(|command| ("counters", command.clone())));
        demands.extend(self.observed.demands());
        demands
    }

    /// The same without `via`, which precedes each command instead: permission to run a command on
    /// a box does not extend to this machine.
    fn permissions(&self) -> impl Iterator<Item = (&'static str, String)> {
        let with_via = |what: String| {
            // Agents, pages and secrets are used by this machine, without `via`.
            let is_command = self.all_commands().any(|command| command == what);
            if is_command && !self.via.is_empty() {
                format!("{} {what}", self.via.join(" "))
            } else {
                what
            }
        };
        let demands = self.demands().into_iter();
        // Without a command `via` is permission for nothing.
        let others = demands.filter(|(key, _)| *key != "via");
        others.map(move |(key, what)| (key, with_via(what)))
    }

    /// Every command of the box.
    fn all_commands(&self) -> impl Iterator<Item = &str> {
        let resets = self.reset.iter().chain(&self.started).map(String::as_str);
        self.commands().chain(resets)
    }
}

impl External {
    /// The commands that this machine runs, the addresses that it queries and the files that it
    /// reads, each with its key.
    pub(crate) fn demands(&self) -> Vec<(String, String)> {
        self.keyed(|its| its.demands())
    }

    /// The same with `via` in front of each command, as in a file of permissions.
    pub(crate) fn permissions(&self) -> Vec<(String, String)> {
        self.keyed(|its| its.permissions().collect())
    }

    fn keyed(
        &self,
        of_box: impl Fn(&ExternalBox) -> Vec<(&'static str, String)>,
    ) -> Vec<(String, String)> {
        let mut demands = Vec::new();
        for (number, its) in (1..).zip(&self.boxes) {
            let of_box = of_box(its).into_iter();
            demands.extend(of_box.map(|(key, what)| (format!("box {number}, {key}"), what)));
        }
        // It becomes part of commands.
        let word = self.suite_word.iter();
        demands.extend(word.map(|word| ("{suite_word}".to_owned(), word.clone())));
        // Files with secrets need consent as well: a campaign may name any file of this user.
        let files = self.gateway.iter().flat_map(|peer| peer.files());
        demands.extend(files.map(|(key, file)| (key.to_owned(), file.display().to_string())));
        demands
    }

    /// Returns the first setting that no campaign file can contain, as a sentence.
    pub(crate) fn mistake(&self) -> Option<String> {
        if !(1..=BOXES_MAX).contains(&self.boxes.len()) {
            return Some(format!("{} boxes", self.boxes.len()));
        }
        // An unknown placeholder would stop a run at that command.
        let mut commands = self.boxes.iter().flat_map(ExternalBox::all_commands);
        if let Some(command) = commands.find(|command| !is_command(command)) {
            return Some(format!("the command `{}`", command.escape_debug()));
        }
        let wrong = self
            .gateway
            .iter()
            .flat_map(|peer| peer.wrong_words())
            .next();
        wrong.map(|(key, word)| format!("`{}` as {key}", word.escape_debug()))
    }
}
