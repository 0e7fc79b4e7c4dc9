//! Orders for all ranks that are sent after a pause: while a phase only repeats itself, its pauses grow.

use std::time::Duration;

use stillpoint_protocol::agent::Order;

/// The order that waits, and the pauses before it.
#[derive(Debug, Default)]
pub struct Pace {
    /// The time to send it, and the order.
    waiting: Option<(Duration, Order)>,
    /// The number of repetitions without progress.
    repeats: u32,
}

impl Pace {
    /// Delays an order: by 1 ms at first, up to 32 ms while the phase only repeats itself.
    pub fn delay(&mut self, order: Order, now: Duration) {
        let pause = Duration::from_millis(1 << self.repeats.min(5));
        self.repeats += 1;
        self.delay_by(pause, order, now);
    }

    /// Delays a poll. Without patience this is the delay of any order. Otherwise it is a quarter of a second, doubled with each step of patience up to 16 s.
    pub fn delay_poll(&mut self, poll: u32, patience: u32, now: Duration) {
        let order = Order::Poll { poll };
        match patience {
            0 => self.delay(order, now),
            _ => {
                let pause = Duration::from_millis(250 << (patience - 1).min(6));
                self.delay_by(pause, order, now);
            }
        }
    }

    pub fn delay_by(&mut self, pause: Duration, order: Order, now: Duration) {
        self.waiting = Some((now + pause, order));
    }

    /// The time at which the order is due.
    pub fn due(&self) -> Option<Duration> {
        self.waiting.as_ref().map(|(due, _)| *due)
    }

    /// Takes the order if it is due.
    pub fn take_due(&mut self, now: Duration) -> Option<Order> {
        let due = self.waiting.take_if(|(due, _)| *due <= now);
        due.map(|(_, order)| order)
    }
}
