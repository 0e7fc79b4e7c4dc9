//! What everything above the processor may need: what the kernel tells, what the launcher gave, what wakes the agent, what the agent
//! sees of the gate page.

pub mod apart;
pub mod arriving;
pub mod aside;
pub mod background;
pub mod children;
pub mod connection;
pub mod cores;
pub mod disk;
pub mod elf;
pub mod ended;
pub mod environment;
pub mod faults;
pub mod free;
pub mod heap;
pub mod inherited;
pub mod input;
pub mod lock;
pub mod page;
pub mod ranges;
pub mod say;
pub mod soon;
pub mod space;
pub mod starters;
pub mod told;
pub mod unnoticed;
pub mod wake;
pub mod writing;
