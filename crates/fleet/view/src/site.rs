//! The fleet in a browser.
//!
//! ```text
//! browser ◄─ HTTP, server-sent events ─► site ─► pages ◄─ overview ◄─ reports of the server
//! ```
//!
//! One loop renders pages, one at a time, for any number of browsers. An open page gets new content
//! when something changed.

mod cells;
mod overview;
mod pages;

use crate::cache::cached;
use crate::error::ViewError;
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use fleet::{Access, Fleet, Overview, watch};
use page::{Content, OpenPage, Places, SCRIPT, answer, parts, style, updates};
use pages::Page;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Delay from a change to rendering, since changes come in groups.
const SETTLE: Duration = Duration::from_millis(300);
/// Interval of rendering without a change: a lab that becomes silent is no change.
const REFRESH: Duration = Duration::from_secs(5);
/// Most open pages with updates; further ones are shown, but do not change.
const OPEN_MAX: usize = 100;
/// Most reports rendered in parallel.
const REPORTS_MAX: usize = 2;

/// A request of a page to the rendering loop.
type PageRequest = (Page, oneshot::Sender<String>);

struct Site {
    access: Access,
    /// Host names that browsers may use, besides addresses and `localhost`.
    names: Vec<String>,
    overview: Arc<Overview>,
    render: mpsc::Sender<PageRequest>,
    open: Places,
    reports: Semaphore,
}

/// Serves the pages until `stop` is true, to browsers that use an address, `localhost` or one of
/// `names`. Calls `ready` with the address when it listens.
///
/// # Errors
/// When the fleet does not answer, and when the address cannot be used.
pub async fn serve(
    access: &Access,
    listen: SocketAddr,
    names: &[String],
    mut stop: watch::Receiver<bool>,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ViewError> {
    let fleet = Fleet::connect(access).await?;
    let cannot = |error| ViewError::Listen {
        address: listen,
        error,
    };
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    ready(listener.local_addr().map_err(cannot)?);
    let overview = Arc::new(Overview::default());
    let (render, mut asked) = mpsc::channel::<PageRequest>(OPEN_MAX);
    let site = Arc::new(Site {
        access: access.clone(),
        names: names.to_vec(),
        overview: Arc::clone(&overview),
        render,
        open: Places::new(OPEN_MAX),
        reports: Semaphore::new(REPORTS_MAX),
    });
    let render = async {
        // Ends only with the last sender, which the router holds.
        while let Some((page, answer)) = asked.recv().await {
            let content = page.content(&fleet, &overview).await.into_string();
            // The browser may have gone.
            let _ = answer.send(content);
        }
    };
    tokio::select! {
        ended = page::serve(listener, router(site)) => ended.map_err(cannot)?,
        () = overview.follow(&fleet) => {}
        () = render => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    Ok(())
}

fn router(site: Arc<Site>) -> Router {
    let fixed = |kind: &'static str, text: String| get(async move || answer::file(kind, text));
    Router::new()
        .route("/", get(async |site| page(site, Page::Overview).await))
        .route("/cells", get(async |site| page(site, Page::Cells).await))
        .route(
            "/cell/{id}",
            get(async |site, Path(id): Path<String>| page(site, Page::Cell(id)).await),
        )
        .route("/live/", get(async |site| live(site, Page::Overview)))
        .route("/live/cells", get(async |site| live(site, Page::Cells)))
        .route(
            "/live/cell/{id}",
            get(async |site, Path(id): Path<String>| live(site, Page::Cell(id))),
        )
        .route("/run/{job}", get(run))
        .route("/page.css", fixed("text/css", style()))
        .route("/page.js", fixed("text/javascript", SCRIPT.to_owned()))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), answered))
        .with_state(site)
}

async fn answered(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    answer::answer(&site.names, request, next).await
}

async fn page(State(site): State<Arc<Site>>, page: Page) -> Response {
    let shell = page.shell(&site.access.url);
    match site.content(&page).await {
        Some(content) => Html(shell.around(&content)).into_response(),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

impl Site {
    /// `None` when the program ends.
    async fn content(&self, page: &Page) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.render.send((page.clone(), answer)).await.ok()?;
        answered.await.ok()
    }
}

/// A page's content as it changes.
fn live(State(site): State<Arc<Site>>, page: Page) -> Response {
    let Some(place) = site.open.take() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let mut changes = match page {
        // A job adds to the archive only at its end, so pages of cells need no other change.
        Page::Overview => site.overview.changes(),
        Page::Cells | Page::Cell(_) => site.overview.ends(),
    };
    // The first content is rendered in any case, so earlier changes must not cause a second one.
    changes.mark_unchanged();
    let open = Open {
        site,
        page,
        changes,
    };
    updates(open, place).into_response()
}

/// A page that is open in a browser.
struct Open {
    site: Arc<Site>,
    page: Page,
    changes: watch::Receiver<()>,
}

impl OpenPage for Open {
    async fn content(&mut self) -> Option<Content> {
        let html = self.site.content(&self.page).await?;
        Some(Content {
            html,
            is_last: false,
        })
    }

    async fn changed(&mut self) {
        // A timeout renders again without a change.
        if timeout(REFRESH, self.changes.changed()).await.is_ok() {
            sleep(SETTLE).await;
            self.changes.mark_unchanged();
        }
    }
}

/// A run's report, from the archive.
async fn run(State(site): State<Arc<Site>>, Path(job): Path<String>) -> Response {
    // The place is held to the end of the function: rendering takes a core and the memory of a run.
    let Ok(_place) = site.reports.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let access = site.access.clone();
    let name = job.clone();
    let render = move || -> Result<String, ViewError> {
        let journal = journal::read(&cached(&access, &job)?)?;
        Ok(report::build(&journal).html)
    };
    // A large run may take seconds, in which other pages are still answered.
    match tokio::task::spawn_blocking(render).await {
        Ok(Ok(html)) => answer::report(html),
        Ok(Err(error)) => {
            let shell = pages::missing(&site.access.url, &name);
            let content = parts::sentence(&format!("error: {error}")).into_string();
            (StatusCode::NOT_FOUND, Html(shell.around(&content))).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
