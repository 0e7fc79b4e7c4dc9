//! The parts of this rank's MPI state that cannot be carried into an image. While any of them lives, a checkpoint
//! is refused by name; the program's own calls are passed through faithfully.

use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};

use stillpoint_refusals::Code;
use stillpoint_wrappers::gate::HINDRANCES;

/// Objects that no image holds: their places in [`HINDRANCES`], which also has one that only older builds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Reason {
    Window = 0,
    /// On communicators with processes of other worlds, or with a name that is not known.
    File = 1,
    DynamicProcess = 2,
}

/// Things that only the real MPI keeps for the application. No image holds them either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kept {
    /// A port, a published name.
    Port = 2,
    /// Objects of the tools interface that belong to the running MPI.
    ToolHandle = 4,
}

static ALIVE: [AtomicU32; HINDRANCES.len()] = [const { AtomicU32::new(0) }; HINDRANCES.len()];

/// The address of the counts. The agent reads them without waiting for a still point, which such state may keep from coming.
pub fn address() -> u64 {
    ALIVE.as_ptr() as u64
}

/// An object holds one of these as long as it forbids a checkpoint. Only a counted reason can be taken back.
#[derive(Debug)]
pub struct Alive(Reason);

impl Alive {
    pub fn new(reason: Reason) -> Self {
        ALIVE[reason as usize].fetch_add(1, Ordering::Relaxed);
        Self(reason)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE[self.0 as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

/// The real MPI keeps one more of these.
pub fn kept(what: Kept) {
    ALIVE[what as usize].fetch_add(1, Ordering::Relaxed);
}

/// The real MPI has given one of these up.
pub fn given_up(what: Kept) {
    let _ = ALIVE[what as usize].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
        count.checked_sub(1)
    });
}

/// Bytes of refusal text that the agent can read.
pub const TEXT_BYTES: usize = 4096;

/// Text of bounded length; the part that does not fit is left out.
pub struct Text {
    bytes: [u8; TEXT_BYTES],
    used: usize,
}

impl Text {
    pub const fn new() -> Self {
        Self {
            bytes: [0; TEXT_BYTES],
            used: 0,
        }
    }

    pub fn clear(&mut self) {
        self.used = 0;
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Adds a reason, in a line of its own. The lower half reads its code at the end.
    pub fn reason(&mut self, code: Code, what: core::fmt::Arguments<'_>) {
        let separator = if self.is_empty() { "" } else { "\n" };
        let _ = write!(self, "{separator}{what} [{}]", code.name());
    }

    /// The address of the bytes, for the agent.
    pub fn address(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let mut room = text.len().min(TEXT_BYTES - self.used);
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        self.bytes[self.used..self.used + room].copy_from_slice(&text.as_bytes()[..room]);
        self.used += room;
        Ok(())
    }
}

/// Writes every reason that stands now, one a line. The lower half finds the code of each by its words.
pub fn describe(text: &mut Text) {
    for (count, what) in ALIVE.iter().zip(HINDRANCES) {
        let count = count.load(Ordering::Relaxed);
        if count != 0 {
            let separator = if text.is_empty() { "" } else { "\n" };
            let _ = write!(text, "{separator}{count} {what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_come_and_go() {
        let mut text = Text::new();
        let windows = [Alive::new(Reason::Window), Alive::new(Reason::Window)];
        let file = Alive::new(Reason::File);
        describe(&mut text);
        let said = std::str::from_utf8(text.as_bytes()).unwrap();
        assert_eq!(
            said,
            "2 RMA window(s) are open (MPI_Win_*)\n1 MPI file(s) are open (MPI_File_*)"
        );
        drop((windows, file));
        kept(Kept::ToolHandle);
        given_up(Kept::ToolHandle);
        given_up(Kept::ToolHandle);
        text.clear();
        describe(&mut text);
        assert!(text.is_empty());
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mut text = Text::new();
        for _ in 0..TEXT_BYTES {
            let _ = text.write_str("aä");
        }
        assert!(std::str::from_utf8(text.as_bytes()).is_ok());
        assert!(text.as_bytes().len() > TEXT_BYTES - 3);
    }
}
