//! Pages of a browser, whatever they show: the frame around a page's content, its elements, its
//! updates while it is open, and the answer to a request.
//!
//! ```text
//! request ─► server ─► refuse ─► route of a site ─► Shell (lists, parts) ─► answer ─► browser
//!                                      └─► updates ─► server-sent events ─► page.js
//! ```
//!
//! The sites are `live` (recorded and running runs) and `view` (a fleet).

#![forbid(unsafe_code)]

pub mod answer;
pub mod lists;
pub mod parts;
mod refuse;
mod server;
mod updates;

pub use server::serve;
pub use updates::{Content, OpenPage, Place, Places, updates};

use guard::visible_lines;
use maud::{DOCTYPE, PreEscaped, html};

/// The script of live pages, at `/page.js`.
pub const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// The constant part of a page, around its content.
#[derive(Debug, Clone)]
pub struct Shell {
    /// Kind of the page, above its title.
    pub kind: &'static str,
    /// Its title.
    pub title: String,
    /// Source of the content.
    pub provenance: String,
    /// The pages of the site: path and title.
    pub pages: &'static [(&'static str, &'static str)],
    /// Whether the content is replaced when it changes.
    pub is_live: bool,
}

impl Shell {
    /// The whole page around rendered content: names and texts of submitters and agents without
    /// characters that reorder a line or control something.
    #[must_use]
    pub fn around(&self, content: &str) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    // A browser looks for the encoding in the first 1024 bytes only.
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    // Without scripts nothing replaces the content, so the whole page is loaded
                    // again.
                    @if self.is_live { noscript { meta http-equiv="refresh" content="10"; } }
                    title { (self.title) " – cipherbench" }
                    link rel="stylesheet" href="/page.css";
                    @if self.is_live { script src="/page.js" defer {} }
                }
                body {
                    header {
                        p.kind { (self.kind) }
                        h1 { (self.title) }
                        p.provenance {
                            (self.provenance)
                            // The script shows it while the stream of updates is interrupted.
                            span #link hidden { ". This page has lost its server: what it shows is old" }
                        }
                        nav aria-label="Pages" {
                            @for (at, (path, title)) in self.pages.iter().enumerate() {
                                @if at > 0 { " " }
                                a href=(path) { (title) }
                            }
                        }
                    }
                    main { (PreEscaped(content)) }
                }
            }
        };
        visible_lines(&page.into_string()).into_owned()
    }
}

/// Returns the style of every page, at `/page.css`.
#[must_use]
pub fn style() -> String {
    // The report's sheets come first: of two equal rules the later one applies, and that is the
    // page's.
    format!("{}{STYLE}", report::STYLES.concat())
}
