//! The routes of the site.

mod comparison;
mod history;
mod overview;
mod progress;

use crate::shelf::Shelf;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use journal::JournalError;
use maud::Markup;
use page::{Content, OpenPage, Places, SCRIPT, Shell, answer, parts, style, updates};
use session::SessionError;
use session::progress::{Board, Phase};
use session::runs::Run;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Most open pages with updates; further ones are shown, but do not change.
const OPEN_MAX: usize = 50;
/// Interval at which open pages are rendered: the time left changes all the time.
const REFRESH: Duration = Duration::from_secs(2);
/// Between two looks at whether the run of this process has ended.
const STEP: Duration = Duration::from_millis(250);

const KIND: &str = "Runs";
const PAGES: [(&str, &str); 2] = [("/", "All runs"), ("/history", "History")];

/// The content of the pages.
#[derive(Debug, Clone)]
pub struct Site {
    /// Folder of the runs.
    pub root: PathBuf,
    /// Host names that browsers may use, besides addresses and `localhost`.
    pub names: Vec<String>,
    /// The state of the run that this process makes.
    pub current: Option<Board>,
}

/// What the routes share.
#[derive(Debug)]
pub(crate) struct Pages {
    shelf: Shelf,
    names: Vec<String>,
    current: Option<Board>,
    open: Places,
    /// Reports and comparisons take a core and the memory of a run.
    heavy: Semaphore,
    is_over: AtomicBool,
}

impl Pages {
    pub(crate) fn new(site: Site) -> Self {
        Self {
            shelf: Shelf::new(site.root),
            names: site.names,
            current: site.current,
            open: Places::new(OPEN_MAX),
            heavy: Semaphore::new(1),
            is_over: AtomicBool::new(false),
        }
    }

    /// Makes the next content of each open page the last.
    pub(crate) fn end(&self) {
        // Relaxed: no other data depends on the flag.
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether pages are open.
    pub(crate) fn are_open(&self) -> bool {
        self.open.free() < OPEN_MAX
    }
}

pub(crate) fn router(pages: Arc<Pages>) -> Router {
    let fixed = |kind: &'static str, text: String| get(async move || answer::file(kind, text));
    Router::new()
        .route("/", get(async |pages| show(pages, View::List).await))
        .route(
            "/progress/{run}",
            get(async |pages, Path(run): Path<String>| show(pages, View::Progress(run)).await),
        )
        .route(
            "/compare/{run}",
            get(async |pages, Path(run): Path<String>| show(pages, View::Choice(run)).await),
        )
        .route(
            "/compare/{base}/{other}",
            get(async |pages, Path((base, other)): Path<(String, String)>| {
                show(pages, View::Comparison(base, other)).await
            }),
        )
        .route(
            "/history",
            get(async |pages| show(pages, View::History).await),
        )
        .route("/run/{run}", get(report))
        .route("/live/", get(async |pages| follow(pages, View::List)))
        .route(
            "/live/progress/{run}",
            get(async |pages, Path(run): Path<String>| follow(pages, View::Progress(run))),
        )
        .route("/page.css", fixed("text/css", style()))
        .route("/page.js", fixed("text/javascript", SCRIPT.to_owned()))
        .fallback(async |State(pages): State<Arc<Pages>>| {
            let fault = Fault::unknown("This site has no such page.");
            fault.answer(&pages)
        })
        // Last, as a layer wraps only routes that are there already: neither they nor the fallback
        // may answer a page of another site (DNS rebinding).
        .layer(middleware::from_fn_with_state(Arc::clone(&pages), answered))
        .with_state(pages)
}

async fn answered(State(pages): State<Arc<Pages>>, request: Request, next: Next) -> Response {
    answer::answer(&pages.names, request, next).await
}

/// A page that is rendered.
#[derive(Debug, Clone)]
enum View {
    /// All runs.
    List,
    /// A run in progress, or the end of it.
    Progress(String),
    /// The runs that a run may be compared with.
    Choice(String),
    /// Two runs compared, the base first.
    Comparison(String, String),
    /// Changes of figures over the last runs.
    History,
}

/// A rendered page.
struct Rendered {
    title: String,
    content: Markup,
    /// Whether it changes.
    is_live: bool,
}

/// Why a page is not shown.
struct Fault {
    status: StatusCode,
    text: String,
}

impl Fault {
    fn unknown(text: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            text: text.to_owned(),
        }
    }

    /// Answers with a page.
    fn answer(self, pages: &Pages) -> Response {
        let shell = shell(pages, "Not shown".to_owned(), false);
        let content = parts::sentence(&self.text).into_string();
        (self.status, Html(shell.around(&content))).into_response()
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            text: format!("error: {error}"),
        }
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            text: format!("error: {error}"),
        }
    }
}

fn shell(pages: &Pages, title: String, is_live: bool) -> Shell {
    Shell {
        kind: KIND,
        title,
        provenance: format!("In {}", pages.shelf.root().display()),
        pages: &PAGES,
        is_live,
    }
}

async fn show(State(pages): State<Arc<Pages>>, view: View) -> Response {
    let rendered = match view {
        View::Comparison(..) | View::History => {
            // The place is held to the end of the function.
            let Ok(_place) = pages.heavy.acquire().await else {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            };
            blocking(&pages, view).await
        }
        view => blocking(&pages, view).await,
    };
    match rendered {
        Ok(Rendered {
            title,
            content,
            is_live,
        }) => {
            let shell = shell(&pages, title, is_live);
            Html(shell.around(&content.into_string())).into_response()
        }
        Err(fault) => fault.answer(&pages),
    }
}

/// Renders a page on a thread that may read files.
async fn blocking(pages: &Arc<Pages>, view: View) -> Result<Rendered, Fault> {
    let pages = Arc::clone(pages);
    let rendered = spawn_blocking(move || pages.render(&view)).await;
    rendered.unwrap_or_else(|error| {
        // A bug of a page ends neither the server nor the run.
        Err(Fault {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            text: format!("error: the page cannot be rendered: {error}"),
        })
    })
}

impl Pages {
    fn render(&self, view: &View) -> Result<Rendered, Fault> {
        match view {
            View::List => {
                let runs = self.shelf.list()?;
                Ok(Rendered {
                    title: "All runs".to_owned(),
                    content: overview::all(&runs, self.shelf.root()),
                    is_live: !self.is_over.load(Ordering::Relaxed),
                })
            }
            View::Progress(name) => {
                let run = self.run(name)?;
                // The board knows the trial that runs; a journal has only trials that ended.
                let current = self.current.as_ref().and_then(Board::read);
                let state = match current.filter(|state| state.run == *name) {
                    Some(state) => state,
                    None => self.shelf.state(&run)?,
                };
                // The list may be two seconds old: the state is newer.
                let is_running = run.is_running() && !matches!(state.phase, Phase::Ended(_));
                Ok(Rendered {
                    title: parts::heading(&state.campaign),
                    content: progress::of(&state, &run, is_running, Instant::now()),
                    is_live: is_running && !self.is_over.load(Ordering::Relaxed),
                })
            }
            View::Choice(name) => {
                let run = self.run(name)?;
                Ok(Rendered {
                    title: "Compare two runs".to_owned(),
                    content: comparison::choice(&run, &self.shelf.list()?),
                    is_live: false,
                })
            }
            View::Comparison(base, other) => {
                let runs = [self.run(base)?, self.run(other)?];
                let journals = [self.shelf.journal(&runs[0])?, self.shelf.journal(&runs[1])?];
                Ok(Rendered {
                    title: "Two runs compared".to_owned(),
                    content: comparison::of(&runs, &journals).map_err(|error| Fault {
                        status: StatusCode::UNPROCESSABLE_ENTITY,
                        text: format!("error: {error}"),
                    })?,
                    is_live: false,
                })
            }
            View::History => Ok(Rendered {
                title: "History".to_owned(),
                content: history::of(&self.shelf)?,
                is_live: false,
            }),
        }
    }

    fn run(&self, name: &str) -> Result<Run, Fault> {
        let unknown = || {
            let root = self.shelf.root().display();
            Fault::unknown(&format!(
                "error: there is no run {name} in {root}\nhelp: the first page lists the runs that are there"
            ))
        };
        self.shelf.find(name)?.ok_or_else(unknown)
    }
}

/// A run's report, complete or not.
async fn report(State(pages): State<Arc<Pages>>, Path(name): Path<String>) -> Response {
    let Ok(_place) = pages.heavy.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let of_thread = Arc::clone(&pages);
    let rendered = spawn_blocking(move || {
        let run = of_thread.run(&name)?;
        // From the journal: the file may be of another version, or from before the first trial.
        Ok::<_, Fault>(report::build(&of_thread.shelf.journal(&run)?).html)
    });
    match rendered.await {
        Ok(Ok(html)) => answer::report(html),
        Ok(Err(fault)) => fault.answer(&pages),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// A page's content as it changes.
fn follow(State(pages): State<Arc<Pages>>, view: View) -> Response {
    match pages.open.take() {
        Some(place) => updates(Open { pages, view }, place).into_response(),
        // An `EventSource` does not try again after this status (HTML Standard §9.2).
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// A page that is open in a browser.
struct Open {
    pages: Arc<Pages>,
    view: View,
}

impl OpenPage for Open {
    async fn content(&mut self) -> Option<Content> {
        let content = match blocking(&self.pages, self.view.clone()).await {
            Ok(rendered) => Content {
                html: rendered.content.into_string(),
                is_last: !rendered.is_live,
            },
            // A run that was deleted meanwhile.
            Err(fault) => Content {
                html: parts::sentence(&fault.text).into_string(),
                is_last: true,
            },
        };
        Some(content)
    }

    async fn changed(&mut self) {
        let began = Instant::now();
        // In short steps, so that the last content comes within the time that `finish` waits.
        while began.elapsed() < REFRESH && !self.pages.is_over.load(Ordering::Relaxed) {
            sleep(STEP).await;
        }
    }
}
