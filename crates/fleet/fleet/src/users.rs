//! The users of a server that this program starts, and their permissions on subjects of
//! nats-server.

use crate::connection::inbox;
use crate::error::FleetError;
use crate::identity::{lines, text_of};
use crate::store::{BUCKETS, FILES};
use crate::streams::RECORDS;
use std::fmt::Write;
use std::path::Path;

const HELP: &str = "write lines `ROLE KEY NAME`: a role is reader, submitter or agent";

/// The role of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Read everything.
    Reader,
    /// Read, and queue, cancel and release jobs.
    Submitter,
    /// Read, have labs, take jobs, and write runs.
    Agent,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Reader, Self::Submitter, Self::Agent];

    /// Returns the role in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Submitter => "submitter",
            Self::Agent => "agent",
        }
    }

    /// The subjects of the entries and records that it writes.
    const fn writes(self) -> &'static [&'static str] {
        match self {
            Self::Reader => &[],
            Self::Submitter => &[
                "$KV.fleet-jobs.>",
                "$KV.fleet-states.>",
                "$KV.fleet-repeats.>",
            ],
            Self::Agent => &[
                // An agent restores jobs that the server lost, and submits repeated ones.
                "$KV.fleet-jobs.>",
                "$KV.fleet-states.>",
                "$KV.fleet-labs.>",
                "$KV.fleet-misfits.>",
                "$KV.fleet-runs.>",
                "$KV.fleet-figures.>",
                "$O.fleet-files.>",
                "fleet.records.>",
                // Damaged files are replaced.
                "$JS.API.STREAM.PURGE.OBJ_fleet-files",
            ],
        }
    }

    /// Returns every subject that it may publish to.
    fn publishes(self) -> Vec<String> {
        let streams = BUCKETS.map(|(name, _)| format!("KV_{name}"));
        // The subjects that the client library uses to read; nats-server knows no simpler right.
        let reads = streams
            .into_iter()
            .chain([format!("OBJ_{FILES}"), RECORDS.to_owned()])
            .flat_map(|stream| {
                [
                    format!("$JS.API.STREAM.INFO.{stream}"),
                    format!("$JS.API.STREAM.MSG.GET.{stream}"),
                    format!("$JS.API.DIRECT.GET.{stream}"),
                    format!("$JS.API.DIRECT.GET.{stream}.>"),
                    format!("$JS.API.CONSUMER.CREATE.{stream}"),
                    format!("$JS.API.CONSUMER.CREATE.{stream}.>"),
                    format!("$JS.API.CONSUMER.INFO.{stream}.>"),
                    format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.>"),
                    format!("$JS.API.CONSUMER.DELETE.{stream}.>"),
                    format!("$JS.FC.{stream}.>"),
                ]
            });
        let writes = self.writes().iter().map(|&subject| subject.to_owned());
        ["$JS.API.INFO".to_owned()]
            .into_iter()
            .chain(reads)
            .chain(writes)
            .collect()
    }
}

/// The users of a server.
#[derive(Debug, Clone)]
pub struct Users(Vec<(Role, String)>);

impl Users {
    /// Reads a file of lines `ROLE KEY NAME`; `#` begins a comment.
    ///
    /// # Errors
    /// When it cannot be read, or a line has another form.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        Self::parse(&text_of(path, "users")?, &path.display().to_string())
    }

    /// Parses the text of a file of users; `place` is its name in messages.
    ///
    /// # Errors
    /// When a line has another form.
    pub fn parse(text: &str, place: &str) -> Result<Self, FleetError> {
        let mut users: Vec<(Role, String)> = Vec::new();
        for line in lines(text, place) {
            let mut words = line.text.split_whitespace();
            let role = words.next().unwrap_or_default();
            let Some(role) = Role::ALL.into_iter().find(|known| known.name() == role) else {
                return Err(line.mistake(format!("`{}` is no role", role.escape_debug()), HELP));
            };
            let key = line.user_key(words.next().unwrap_or_default(), HELP)?;
            // Two lines would leave it to nats-server which role the key has.
            if users.iter().any(|(_, known)| known == key) {
                return Err(line.mistake(format!("{key} is a user already"), HELP));
            }
            users.push((role, key.to_owned()));
        }
        Ok(Self(users))
    }

    /// Returns nats-server's configuration of these users and an administrator.
    #[must_use]
    pub fn config(&self, administrator: &str) -> String {
        let mut text = format!("authorization {{\n  users = [\n    {{ nkey: {administrator} }}\n");
        // No name of a user is written: only keys, which have no character to quote.
        for (role, key) in &self.0 {
            let _ = write!(
                text,
                "    {{ nkey: {key}, permissions: {{\n      publish: {{ allow: {:?} }}\n      subscribe: {{ allow: \
                 [\"{}.>\"] }}\n    }} }}\n",
                role.publishes(),
                inbox(key)
            );
        }
        text.push_str("  ]\n}\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::kept::{private_folder, write_whole};

    #[test]
    fn users_are_read_and_a_wrong_line_is_named() {
        let folder = private_folder();
        let key = |name: &str| {
            Identity::create(&folder.path().join(name))
                .unwrap()
                .public()
        };
        let (one, other) = (key("one"), key("other"));
        let file = folder.path().join("users");
        let read = |text: &str| {
            write_whole(&file, text.as_bytes()).unwrap();
            Users::read(&file)
        };
        let users = read(&format!("# who\nreader {one} one\n\nagent {other}\n")).unwrap();
        assert_eq!(users.0, [(Role::Reader, one.clone()), (Role::Agent, other)]);
        for (text, reason) in [
            (format!("king {one}"), "users:1: `king` is no role"),
            ("\nreader me".to_owned(), "users:2: `me` is no public key"),
            (format!("reader {one}\nagent {one}"), "is a user already"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn each_role_writes_only_what_is_its_own() {
        let writes = |role: Role, subject: &str| {
            let published = role.publishes();
            published.iter().any(|allowed| {
                allowed
                    .strip_suffix('>')
                    .map_or(allowed == subject, |start| subject.starts_with(start))
            })
        };
        let subjects = [
            "$KV.fleet-jobs.1",
            "$KV.fleet-labs.lab",
            "$KV.fleet-runs.1",
            "$O.fleet-files.C.x",
            "fleet.records.1",
            "$KV.fleet-meta.schema",
            "$JS.API.STREAM.DELETE.KV_fleet-jobs",
        ];
        let of = |role| subjects.map(|subject| writes(role, subject));
        assert_eq!(of(Role::Reader), [false; 7]);
        assert_eq!(
            of(Role::Submitter),
            [true, false, false, false, false, false, false]
        );
        assert_eq!(
            of(Role::Agent),
            [true, true, true, true, true, false, false]
        );
    }
}
