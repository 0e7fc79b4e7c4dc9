//! Whether the node's GPUs are needed: the driver takes some hundred MiB of each for a context, which is the programs' again as soon as nobody does. Pure.

/// Who needs them.
#[derive(Debug, Default)]
pub struct Need {
    /// Connections that wait for a checkpoint which was asked for.
    expect: usize,
    /// Places with something staged in them.
    hold: usize,
}

impl Need {
    /// A checkpoint has been asked for, and something may be staged for it.
    pub fn expects(&mut self) {
        self.expect += 1;
    }

    /// It is over, or was given up.
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
        // Two ranks, given up before anything is staged.
        need.expects();
        need.expects();
        need.is_over();
        assert!(need.is_there());
        need.is_over();
        assert!(!need.is_there());
        // One that is drained behind the running program.
        need.expects();
        need.hold(2);
        need.is_over();
        need.gives_back();
        assert!(need.is_there());
        // The next one is asked for meanwhile.
        need.expects();
        need.gives_back();
        assert!(need.is_there());
        need.is_over();
        assert!(!need.is_there());
        // Whoever is said to be over twice takes nobody else's need away later.
        need.is_over();
        need.expects();
        assert!(need.is_there());
    }
}
