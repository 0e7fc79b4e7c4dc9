//! Restores timer descriptors: running, expired and not read, or off.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::owned::owned;

/// A timer's state; times are in nanoseconds.
pub struct Timer {
    pub clock: i32,
    pub settime_flags: i32,
    /// Expirations that have not been read.
    pub ticks: u64,
    /// The time left; 0: off, or expired.
    pub value: u64,
    pub interval: u64,
}

impl Timer {
    /// Makes the timer, which continues from its state.
    pub fn start(&self, flags: i32) -> io::Result<OwnedFd> {
        // SAFETY: the call takes numbers and makes a descriptor, which `owned` takes over at once.
        let made = owned(unsafe { libc::timerfd_create(self.clock, flags) })?;
        match (self.ticks, self.value, self.interval) {
            (1.., 0, 0) => self.expire(&made)?,
            // It expired during the capture: the next expiration is a period away.
            (1.., 0, interval) => self.set(&made, interval)?,
            (_, value, _) => self.set(&made, value)?,
        }
        if self.value | self.interval != 0 {
            self.count(&made)?;
        }
        Ok(made)
    }

    /// Lets the timer expire once, for one that is not periodic.
    fn expire(&self, made: &OwnedFd) -> io::Result<()> {
        self.arm(made, 0, 1, 0)?;
        let mut poll = libc::pollfd {
            fd: made.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: poll reads and writes one structure, which lives on this stack. The timer expires at once; a second is for a machine that is busy.
        match unsafe { libc::poll(&raw mut poll, 1, 1000) } {
            1 => Ok(()),
            _ => Err(io::Error::other("a timer of a nanosecond does not expire")),
        }
    }

    fn set(&self, made: &OwnedFd, value: u64) -> io::Result<()> {
        if value == 0 && self.interval == 0 {
            return Ok(());
        }
        // fdinfo shows the time left, so an absolute timer can continue as a relative one. But only an absolute timer notices that the clock is set.
        if self.settime_flags & libc::TFD_TIMER_CANCEL_ON_SET == 0 || value == 0 {
            return self.arm(made, 0, value, self.interval);
        }
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the kernel writes the structure, which lives on this stack.
        if unsafe { libc::clock_gettime(self.clock, &raw mut now) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        self.arm(made, self.settime_flags, now + value, self.interval)
    }

    fn arm(&self, made: &OwnedFd, flags: i32, value: u64, interval: u64) -> io::Result<()> {
        let time = |nanoseconds: u64| libc::timespec {
            tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
        };
        let setting = libc::itimerspec {
            it_interval: time(interval),
            it_value: time(value),
        };
        // SAFETY: the kernel reads the structure, which lives on this stack; null says that the old setting is not asked for.
        let result = unsafe {
            libc::timerfd_settime(
                made.as_raw_fd(),
                flags,
                &raw const setting,
                std::ptr::null_mut(),
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives the timer that was just set its count of expirations that have not been read.
    fn count(&self, made: &OwnedFd) -> io::Result<()> {
        const TFD_IOC_SET_TICKS: libc::c_ulong = 0x4008_5400;
        if self.ticks == 0 {
            return Ok(());
        }
        // SAFETY: the kernel reads eight bytes, which `self` keeps.
        let result =
            unsafe { libc::ioctl(made.as_raw_fd(), TFD_IOC_SET_TICKS, &raw const self.ticks) };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
