//! Whether the node's GPUs are needed. A context takes some hundred MiB of each GPU, which programs can use again once no context is needed. Pure.

/// The users of the GPUs.
#[derive(Debug, Default)]
pub struct Need {
    /// Connections that wait for a requested checkpoint.
    expect: usize,
    /// The number of places with staged memory.
    hold: usize,
}

impl Need {
    /// Notes that a checkpoint has been requested, which may stage something.
    pub fn expects(&mut self) {
        self.expect += 1;
    }

    /// Notes that such a checkpoint is over, or was given up.
    pub fn is_over(&mut self) {
        self.expect = self.expect.saturating_sub(1);
    }

    pub fn hold(&mut self, places: usize) {
        self.hold += places;
    }

    pub fn gives_back(&mut self) {
        self.hold = self.hold.saturating_sub(1);
    }

    pub fn is_there(&self) -> bool {
        self.expect > 0 || self.hold > 0
    }
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn what_is_staged_outlasts_the_checkpoint_and_one_that_was_given_up_needs_nothing() {
        let mut need = Need::default();
        assert!(!need.is_there());
        // Two ranks give up before anything is staged.
        need.expects();
        need.expects();
        need.is_over();
        assert!(need.is_there());
        need.is_over();
        assert!(!need.is_there());
        // One portion is drained while the program runs.
        need.expects();
        need.hold(2);
        need.is_over();
        need.gives_back();
        assert!(need.is_there());
        // The next checkpoint is requested meanwhile.
        need.expects();
        need.gives_back();
        assert!(need.is_there());
        need.is_over();
        assert!(!need.is_there());
        // An extra call takes away no later need.
        need.is_over();
        need.expects();
        assert!(need.is_there());
    }
}
