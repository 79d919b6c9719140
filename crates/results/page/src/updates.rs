//! The contents of open pages, as server-sent events.

use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use guard::visible_lines;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places for open pages; further pages are shown, but do not change.
#[derive(Debug, Clone)]
pub struct Places(Arc<Semaphore>);

impl Places {
    /// Returns this many places.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    /// Takes a place; `None` if all are taken.
    #[must_use]
    pub fn take(&self) -> Option<Place> {
        let place = Arc::clone(&self.0).try_acquire_owned().ok()?;
        Some(Place { _place: place })
    }

    /// Returns the number of free places.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.available_permits()
    }
}

/// The place of an open page, free again when it is dropped.
#[derive(Debug)]
pub struct Place {
    _place: OwnedSemaphorePermit,
}

/// The content of an open page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// The HTML.
    pub html: String,
    /// Whether it will not change any more.
    pub is_last: bool,
}

/// A page that is open in a browser.
pub trait OpenPage: Send + 'static {
    /// Renders the content; `None` when the program ends.
    fn content(&mut self) -> impl Future<Output = Option<Content>> + Send;

    /// Waits until the content may have changed.
    fn changed(&mut self) -> impl Future<Output = ()> + Send;
}

/// What was sent to an open page.
enum Sent {
    /// A content; empty at the beginning.
    Content(String),
    /// The last content.
    Last,
    /// The event `end`, at which the page stops asking.
    End,
}

/// Returns the contents of an open page, each when it differs from the one before. A browser that
/// reads slowly misses contents in between: nothing is rendered before it has read the last one.
pub fn updates(
    page: impl OpenPage,
    place: Place,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    // The place moves along with the state, so it is free again when the browser closes the stream.
    let state = (page, Sent::Content(String::new()), place);
    let events = stream::unfold(state, |(mut page, sent, place)| async move {
        let shown = match sent {
            Sent::Content(shown) => shown,
            Sent::Last => {
                // Without data a browser would not report the event.
                let end = Event::default().event("end").data("end");
                return Some((Ok(end), (page, Sent::End, place)));
            }
            Sent::End => return None,
        };
        loop {
            let Content { html, is_last } = page.content().await?;
            if html != shown || is_last {
                let event = Event::default().data(visible_lines(&html));
                let sent = if is_last {
                    Sent::Last
                } else {
                    Sent::Content(html)
                };
                return Some((Ok(event), (page, sent, place)));
            }
            page.changed().await;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
