//! Waiting until a port has something, or until it is time to stop.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A flag that wakes whoever waits; clones share it. Once raised it stays up.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Flag>);

#[derive(Debug)]
struct Flag {
    raised: AtomicBool,
    /// Readable from the moment that the flag is up.
    event: OwnedFd,
}

impl Stop {
    /// A flag that is down.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just made this descriptor, and nobody else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self(Arc::new(Flag {
            raised: AtomicBool::new(false),
            event,
        })))
    }

    /// Raises the flag. Safe in a signal handler.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: the descriptor is open as long as `self`, and `one` holds the 8 bytes that are read. A full
        // counter (EAGAIN) means that the event is readable, which is what is wanted.
        unsafe { libc::write(self.0.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Whether the flag is up.
    #[inline]
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::Acquire)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

/// Waits until one of `fds` (at most 8) is readable; `false` when `limit` passed first.
///
/// # Errors
/// What `poll` says; a signal is not an error but counts as time passed.
pub fn wait_readable(fds: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<bool> {
    let mut polled: arrayvec::ArrayVec<libc::pollfd, 8> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let limit = limit.map_or(-1, |limit| {
        i32::try_from(limit.as_millis()).unwrap_or(i32::MAX)
    });
    // SAFETY: the array outlives the call, and its length is given.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted {
            Ok(false)
        } else {
            Err(error)
        };
    }
    Ok(ready > 0)
}

/// Waits until `fd` takes output again; `false` when `limit` passed first.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one element, which outlives the call.
    unsafe { libc::poll(&raw mut polled, 1, limit) > 0 }
}
