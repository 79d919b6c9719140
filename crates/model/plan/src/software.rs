//! What a campaign changes of a DUT: its program with version, build and environment, or the
//! settings in force while it is measured.

use crate::pinned::PinnedProgram;
use crate::settings::VersionSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The program that a DUT runs in place of the installed one; by default the installed one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Software {
    /// Name of the version, if the campaign names versions: of programs, or of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Path of the program, or a name that is searched for; `None`: the installed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// How the program is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The settings of the version; with them the version's name is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<VersionSettings>,
    /// The program that was found when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<PinnedProgram>,
}

/// A command that leaves a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The command, for a shell.
    pub command: String,
    /// The folder that it runs in: that of the campaign.
    pub folder: String,
    /// Its longest time, in nanoseconds.
    pub limit_ns: u64,
    /// Files and folders that decide what it makes; empty: it runs in every run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
}

impl Software {
    /// The program to start: the file that was found when the run began, otherwise the named one;
    /// `None` for the installed one.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        let found = self.found.as_ref().map(|found| found.path.as_str());
        found.or(self.program.as_deref())
    }

    /// Whether the DUT's environment or program is the campaign's.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.program.is_some() || !self.environment.is_empty()
    }

    /// Its words behind the settings of a DUT; empty if nothing is given.
    #[must_use]
    pub fn in_words(&self) -> String {
        // Every field is named, so that the compiler asks for the words of a new one.
        let Self {
            version,
            program,
            build,
            environment,
            settings,
            found,
        } = self;
        let mut words = Vec::new();
        if let Some(settings) = settings {
            let name = version.as_deref().unwrap_or_default();
            words.push(format!("settings {name}: {}", settings.in_words()));
        }
        if let Some(program) = program {
            let version = version.as_ref().filter(|_| settings.is_none());
            let version = version.map(|name| format!("version {name}, "));
            let made = build.as_ref().map_or("", |_| ", built");
            let digits = found
                .as_ref()
                .map(|found| format!(", SHA-256 {}", found.short()));
            words.push(format!(
                "{}program {program}{made}{}",
                version.unwrap_or_default(),
                digits.unwrap_or_default()
            ));
        }
        words.extend(
            environment
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.join(", ")
    }

    /// Its demands: key and content.
    pub(crate) fn demands(&self) -> Vec<(String, String)> {
        // A name too: no plan without one runs any installed program.
        let program = self.program.iter();
        let program = program.map(|program| ("program".to_owned(), program.clone()));
        let build = self.build.iter();
        let build = build.map(|build| ("build".to_owned(), build.command.clone()));
        let variables = self.environment.iter();
        let variables =
            variables.map(|(name, value)| ("environment".to_owned(), format!("{name}={value}")));
        let settings = self.settings.iter().flat_map(VersionSettings::demands);
        let all = program.chain(build).chain(variables).chain(settings);
        all.collect()
    }

    /// The first part that no campaign could have given.
    pub(crate) fn mistake(&self) -> Option<String> {
        let mut names = self.environment.keys();
        if let Some(name) = names.find(|name| !is_variable(name)) {
            return Some(format!("the variable `{}`", name.escape_debug()));
        }
        let settings = self.settings.as_ref();
        if let Some(mistake) = settings.and_then(VersionSettings::mistake) {
            return Some(mistake);
        }
        self.found.as_ref().and_then(PinnedProgram::mistake)
    }

    /// The programs of the DUT and of the stations that were found when the run began.
    pub fn found_programs(&self) -> impl Iterator<Item = &PinnedProgram> {
        let settings = self.settings.iter();
        let of_stations = settings.flat_map(|settings| settings.programs.values());
        self.found
            .iter()
            .chain(of_stations.filter_map(|its| its.found.as_ref()))
    }

    /// The program that stations start in place of the installed one of that name.
    #[must_use]
    pub fn station_program(&self, name: &str) -> Option<&str> {
        self.settings.as_ref()?.station_program(name)
    }
}

/// Whether this is the name of an environment variable that a campaign may set.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    // Programs read the output of others in this language, and search them in this path.
    begins && name.bytes().all(fits) && !["LC_ALL", "PATH"].contains(&name)
}
