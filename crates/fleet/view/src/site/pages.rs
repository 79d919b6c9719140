//! The pages of a fleet.

use super::cells::{course_of, named_cells, of_cells};
use super::overview::all;
use fleet::{Fleet, Overview};
use maud::{Markup, html};
use page::Shell;

/// Ended jobs that are listed.
const ENDED: usize = 20;
const KIND: &str = "Fleet";
const PAGES: [(&str, &str); 2] = [("/", "Labs and jobs"), ("/cells", "Cells")];

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// Labs and jobs.
    Overview,
    /// All cells.
    Cells,
    /// The course of a cell, by its id.
    Cell(String),
}

impl Page {
    pub(super) fn shell(&self, url: &str) -> Shell {
        Shell {
            kind: KIND,
            title: match self {
                Self::Overview => "Labs and jobs".to_owned(),
                Self::Cells => "Cells".to_owned(),
                Self::Cell(_) => "A cell over all runs".to_owned(),
            },
            provenance: provenance(url),
            pages: &PAGES,
            is_live: true,
        }
    }

    /// The changing content.
    pub(super) async fn content(&self, fleet: &Fleet, overview: &Overview) -> Markup {
        if let Some(reason) = overview.away() {
            // What was known before would look as if it still held.
            return trouble(&reason);
        }
        let content = match self {
            Self::Overview => overview.see(fleet, ENDED).await.map(|seen| all(&seen)),
            Self::Cells => named_cells(fleet).await.map(|cells| of_cells(&cells)),
            Self::Cell(id) => course_of(fleet, id).await,
        };
        content.unwrap_or_else(|error| trouble(&error.to_string()))
    }
}

/// Of a run that is not in the archive.
pub(super) fn missing(url: &str, job: &str) -> Shell {
    Shell {
        kind: KIND,
        title: format!("No report of {job}"),
        provenance: provenance(url),
        pages: &PAGES,
        is_live: false,
    }
}

/// Without the user's name and password.
fn provenance(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    // A password may contain the sign as well, so the host follows the last one.
    let host = rest.rsplit('@').next().unwrap_or(rest);
    format!("The fleet at {scheme}://{host}")
}

/// The server does not answer.
fn trouble(reason: &str) -> Markup {
    html! {
        section.trouble {
            h2 { "The fleet's server does not answer" }
            p { (reason) }
            p.advice { "Runs go on meanwhile. This page goes on when the server is back." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(
            provenance("nats://me:secret@host:4222"),
            "The fleet at nats://host:4222"
        );
    }
}
