//! Waits for a port to become readable, or for a stop request.

use crate::kernel;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a call ended only because its time was up.
#[must_use]
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// A flag that wakes waiting threads; clones share it. Once raised it stays raised.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Flag>);

#[derive(Debug)]
struct Flag {
    raised: AtomicBool,
    /// Readable once the flag is raised.
    event: OwnedFd,
}

impl Stop {
    /// A flag that is not raised.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Flag {
            raised: AtomicBool::new(false),
            event: kernel::eventfd()?,
        })))
    }

    /// Raises the flag. Safe in a signal handler.
    pub fn raise(&self) {
        // Before the event: a thread that wakes up by it finds the flag raised.
        self.0.raised.store(true, Ordering::Release);
        let one = 1u64.to_ne_bytes();
        // SAFETY: the descriptor is open as long as `self`, and `one` holds the 8 bytes that are
        // read. A full counter (EAGAIN) means that the event is readable, which is the goal.
        unsafe { libc::write(self.0.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Whether the flag is raised.
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

/// Waits for the same `N` descriptors repeatedly. Each is registered with the kernel once, and not
/// at each wait as by [`wait_readable`], so that waking up is faster.
#[derive(Debug)]
pub struct Waiter<const N: usize> {
    epoll: Epoll,
    /// The descriptors registered with the kernel.
    registered: [Option<RawFd>; N],
}

/// The readable ones of a [`Waiter`]'s descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready<const N: usize>([bool; N]);

impl<const N: usize> Waiter<N> {
    /// A waiter without descriptors.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            registered: [None; N],
        })
    }

    /// Waits until some of `fds` are readable, and returns which; none when a signal came first. No
    /// descriptor may occur twice, and each must stay open until the call that replaces it.
    ///
    /// # Errors
    /// The error of `epoll`: one of them is a regular file.
    pub fn wait(&mut self, fds: [Option<BorrowedFd<'_>>; N]) -> io::Result<Ready<N>> {
        for (place, (registered, fd)) in (0..).zip(self.registered.iter_mut().zip(&fds)) {
            let number = fd.map(|fd| fd.as_raw_fd());
            if *registered == number {
                continue;
            }
            if let Some(before) = registered.take() {
                // SAFETY: the caller keeps it open until this call.
                let before = unsafe { BorrowedFd::borrow_raw(before) };
                self.epoll.delete(before)?;
            }
            if let Some(fd) = fd {
                self.epoll
                    .add(fd, EpollEvent::new(EpollFlags::EPOLLIN, place))?;
            }
            *registered = number;
        }
        let mut events = [EpollEvent::empty(); N];
        let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        let mut ready = [false; N];
        for event in &events[..count] {
            ready[event.data() as usize] = true;
        }
        Ok(Ready(ready))
    }
}

impl<const N: usize> Ready<N> {
    /// Whether the descriptor at this place is readable.
    #[must_use]
    pub const fn has(self, place: usize) -> bool {
        self.0[place]
    }
}

/// Waits until one of `fds` (at most 8) is readable; `false` when `limit` passed first, which is
/// exact to the timer slack of the thread.
///
/// # Errors
/// The error of `poll`; a signal is not an error but counts as time passed.
pub fn wait_readable(fds: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<bool> {
    let mut polled: arrayvec::ArrayVec<libc::pollfd, 8> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the array and the limit outlive the call; the array's length is given; no mask of
    // signals is.
    let ready = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            limit,
            ptr::null(),
        )
    };
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

/// Waits until `fd` accepts output again; `false` when `limit` passed first.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLOUT,
        revents: 0,
    };
    // Whole milliseconds are enough here: `poll` waits for room in a buffer, not for a time.
    let limit = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: one element, which outlives the call.
    unsafe { libc::poll(&raw mut polled, 1, limit) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_waiter_reports_which_of_its_descriptors_are_readable() {
        let (mut one, first) = UnixStream::pair().unwrap();
        let (mut two, second) = UnixStream::pair().unwrap();
        let (idle, _other_end) = UnixStream::pair().unwrap();
        let stop = Stop::new().unwrap();
        let mut waiter = Waiter::new().unwrap();
        let mut wait = |fds: [&UnixStream; 2]| {
            let [first, second] = fds.map(|fd| Some(fd.as_fd()));
            let ready = waiter.wait([first, second, Some(stop.as_fd())]).unwrap();
            [0, 1, 2].map(|place| ready.has(place))
        };
        two.write_all(b"x").unwrap();
        assert_eq!(wait([&first, &second]), [false, true, false]);
        // It remains readable until it is read.
        stop.raise();
        assert_eq!(wait([&first, &second]), [false, true, true]);
        // A different descriptor in its place.
        one.write_all(b"x").unwrap();
        assert_eq!(wait([&first, &idle]), [true, false, true]);
    }
}
