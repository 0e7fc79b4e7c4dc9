//! The table of Linux's system calls: the class of each, when it is trapped, and the function that answers it. The table knows calls by name; `arch` knows
//! their numbers.
//!
//! The filter's rules, the trap's answers and `docs/reference/system-calls.md` all follow from it. A rule contains its answer, so no rule can lack one. Calls
//! that make a descriptor are known by their class. A call that is not in the table does not exist for the upper half, as on an older kernel, so new kernels'
//! calls are not made unnoticed.
//!
//! Rules of this place: read by the trap's handler; static data only.

mod class;
pub mod commands;
mod entries;
#[cfg(test)]
mod page;
mod processor_specific;

pub use class::Class;

use stillpoint_wrappers::gate::{ARENA_END, ARENA_START, LOW_END};

use super::call::Call;
use super::descriptors;
use crate::arch::calls;
use crate::arch::short::DECIDED;
use crate::threads::calls as waits;

/// The condition under which a rule applies to its system call.
#[derive(Clone, Copy, Debug)]
pub enum When {
    Always,
    /// The argument with this number is not null.
    Given(u8),
    /// The argument's low half has one of these values.
    Among(u8, &'static [u32]),
    /// The argument's low half has none of these values.
    Beyond(u8, &'static [u32]),
    /// The argument's low half has one of these values, and the other argument is not null.
    AmongGiven(u8, &'static [u32], u8),
    /// The argument's low half is a negative number.
    Negative(u8),
    /// The argument is an address that belongs to neither half by address.
    Elsewhere(u8),
    /// The arguments are address and length of a range, some part of which may belong to neither half by address.
    Outside(u8, u8),
    /// The argument lacks this bit of its low half.
    Without(u8, u32),
}

const fn high_half(address: usize) -> usize {
    address >> 32
}

impl When {
    /// Whether it holds for a call with these arguments.
    pub fn holds(self, arguments: [usize; 6]) -> bool {
        let argument = |index: u8| arguments.get(usize::from(index)).copied().unwrap_or(0);
        match self {
            When::Always => true,
            When::Given(index) => argument(index) != 0,
            When::Among(index, values) => values.contains(&(argument(index) as u32)),
            When::Beyond(index, values) => !values.contains(&(argument(index) as u32)),
            When::AmongGiven(index, values, given) => {
                values.contains(&(argument(index) as u32)) && argument(given) != 0
            }
            When::Negative(index) => (argument(index) as i32) < 0,
            When::Elsewhere(index) => {
                let address = high_half(argument(index));
                let arena = high_half(ARENA_START)..high_half(ARENA_END);
                address >= high_half(LOW_END) && !arena.contains(&address)
            }
            When::Outside(address, length) => {
                let high = |index: u8| high_half(argument(index));
                // A range of less than 4 GiB can leave its room only from that room's last 4 GiB.
                let arena = high_half(ARENA_START)..high_half(ARENA_END) - 1;
                let inside =
                    high(address) < high_half(LOW_END) - 1 || arena.contains(&high(address));
                high(length) != 0 || !inside
            }
            When::Without(index, bit) => argument(index) as u32 & bit == 0,
        }
    }
}

/// The treatment of a call to which a rule applies.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The call is trapped, and this function answers it.
    By(fn(&mut Call) -> isize),
    /// The call fails with this error at once.
    Error(u32),
}

/// The first rule that applies to a call counts.
#[derive(Clone, Copy)]
pub struct Rule {
    pub when: When,
    pub answer: Answer,
    /// Applies in restarted processes only: before, the application knows every process and thread by the kernel's own id. (An id of 0 always means the
    /// caller.)
    pub restarted: bool,
}

/// A rule for every launch.
const fn every(when: When, by: fn(&mut Call) -> isize) -> Rule {
    Rule {
        when,
        answer: Answer::By(by),
        restarted: false,
    }
}

/// A rule for restarted processes.
const fn restarted(when: When, by: fn(&mut Call) -> isize) -> Rule {
    Rule {
        restarted: true,
        ..every(when, by)
    }
}

/// A call that fails as on a kernel that does not have it.
const fn refused(when: When, error: i32) -> Rule {
    Rule {
        when,
        answer: Answer::Error(error as u32),
        restarted: false,
    }
}

/// The meaning of a system call, by name, on every processor that has it.
#[derive(Clone, Copy)]
struct Meaning {
    name: &'static str,
    class: Class,
    rules: &'static [Rule],
    /// A note about the call at a checkpoint.
    note: &'static str,
}

const fn call(name: &'static str, class: Class, rules: &'static [Rule]) -> Meaning {
    told(name, class, rules, "")
}

const fn told(
    name: &'static str,
    class: Class,
    rules: &'static [Rule],
    note: &'static str,
) -> Meaning {
    Meaning {
        name,
        class,
        rules,
        note,
    }
}

/// A system call of this processor.
#[derive(Clone, Copy)]
pub struct Entry {
    pub number: i64,
    #[cfg(test)]
    pub name: &'static str,
    pub class: Class,
    rules: &'static [Rule],
    /// A note about the call at a checkpoint.
    #[cfg(test)]
    pub note: &'static str,
}

/// The rule of calls that make a descriptor and have no other rule.
static NEW_DESCRIPTOR: &[Rule] = &[every(When::Always, descriptors::on_new)];

impl Entry {
    const fn of(number: i64, meaning: &Meaning) -> Entry {
        // Only the generated page uses both.
        let _ = (meaning.name, meaning.note);
        Entry {
            number,
            #[cfg(test)]
            name: meaning.name,
            class: meaning.class,
            rules: meaning.rules,
            #[cfg(test)]
            note: meaning.note,
        }
    }

    pub fn rules(&self) -> &'static [Rule] {
        if self.rules.is_empty() && matches!(self.class, Class::MakesDescriptor) {
            NEW_DESCRIPTOR
        } else {
            self.rules
        }
    }
}

/// Calls by number, in two ranges.
static FIRST: [Entry; calls::FIRST.len()] = numbered(0, calls::FIRST);
static NEWER: [Entry; calls::NEWER.len()] = numbered(calls::NEWER_FROM, calls::NEWER);

/// Numbers from here on are not in the table.
pub const END: i64 = (calls::NEWER_FROM + calls::NEWER.len()) as i64;

/// The call with this number.
pub fn entry(number: i64) -> Option<&'static Entry> {
    let index = usize::try_from(number).ok()?;
    FIRST
        .get(index)
        .or_else(|| NEWER.get(index.checked_sub(calls::NEWER_FROM)?))
}

/// Every call, by number.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    FIRST.iter().chain(&NEWER)
}

/// Whether a call makes threads or processes, executes another program, or ends one.
pub fn makes_or_ends_threads(number: i64) -> bool {
    entry(number).is_none_or(|entry| matches!(entry.class, Class::Threads))
}

/// Whether a call may go the short way (`gate::short`): in every launch it is trapped for all arguments, or the short way itself decides by the arguments, and
/// its answer does not need a whole frame.
pub fn goes_short(number: i64) -> bool {
    entry(number).is_some_and(|entry| {
        let always = |rule: &Rule| {
            let decided = matches!(rule.when, When::Always) || DECIDED.contains(&number);
            decided && matches!(rule.answer, Answer::By(_)) && !rule.restarted
        };
        !entry.class.needs_frame() && entry.rules().first().is_some_and(always)
    })
}

/// Returns the function that answers a call that the filter has stopped.
pub fn answers(call: &Call) -> Option<fn(&mut Call) -> isize> {
    let arguments = call.arguments();
    let mut rules = entry(call.number())?.rules().iter();
    rules.find_map(|rule| match rule.answer {
        Answer::By(by) if rule.when.holds(arguments) => Some(by),
        _ => None,
    })
}

/// Returns the calls with these names, numbered from `first` on. A name that the table does not know is a compile-time error.
const fn numbered<const COUNT: usize>(first: usize, names: [&str; COUNT]) -> [Entry; COUNT] {
    let mut entries = [Entry::of(0, &entries::EVERYWHERE[0]); COUNT];
    let mut at = 0;
    while at < COUNT {
        let meaning = match find(entries::EVERYWHERE, names[at]) {
            Some(meaning) => meaning,
            None => match find(processor_specific::SOMEWHERE, names[at]) {
                Some(meaning) => meaning,
                None => panic!("a system call has no line in the table"),
            },
        };
        assert!(sound(meaning));
        entries[at] = Entry::of((first + at) as i64, meaning);
        at += 1;
    }
    entries
}

const fn find(meanings: &'static [Meaning], name: &str) -> Option<&'static Meaning> {
    let mut at = 0;
    while at < meanings.len() {
        if same(meanings[at].name.as_bytes(), name.as_bytes()) {
            return Some(&meanings[at]);
        }
        at += 1;
    }
    None
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Whether a class has the rules that it needs, and the list of interrupted calls has its calls that wait.
const fn sound(meaning: &Meaning) -> bool {
    if meaning.class.waits() && !waits::is_listed(meaning.name) {
        return false;
    }
    if meaning.class.is_untrapped() {
        meaning.rules.is_empty()
    } else {
        !meaning.class.needs_rule() || !meaning.rules.is_empty()
    }
}

#[cfg(test)]
mod tests;
