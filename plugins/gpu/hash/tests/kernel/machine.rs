//! An interpreter for exactly those instructions of PTX that the kernel uses. It panics at any other.
//!
//! The threads of a thread block run one after the other, each to the next barrier. They continue when all have come to it.

use std::collections::BTreeMap;

/// Addresses of the device memory that is read, of the hashes, and of shared memory. The kernel may touch no other memory.
const MEMORY: u64 = 0x2_0000_0000;
const HASHES: u64 = 0x3_0000_0000;
const SHARED: u64 = 0x100;

/// One instruction: its condition, its name, and its operands.
#[derive(Clone, Debug)]
struct Instruction {
    guard: Option<String>,
    name: String,
    operands: Vec<String>,
}

pub struct Machine {
    pub entry: String,
    pub threads: u32,
    pub parameters: Vec<String>,
    /// The name of the one array in shared memory, and its size.
    shared: (String, usize),
    program: Vec<Instruction>,
    labels: BTreeMap<String, usize>,
}

/// A thread: its position and its registers.
#[derive(Default)]
struct Thread {
    at: usize,
    registers: BTreeMap<String, u64>,
    ended: bool,
}

/// The input and memory of a thread block.
struct Work<'a> {
    number: u32,
    thread: u32,
    parameters: [u64; 4],
    memory: &'a [u8],
    hashes: &'a mut [u8],
    shared: &'a mut [u8],
}

impl Machine {
    pub fn of(text: &str) -> Machine {
        let lines = text
            .lines()
            .map(|line| line.split("//").next().unwrap_or(""));
        let text = lines.collect::<Vec<_>>().join("\n");
        let (_, rest) = text.split_once(".entry ").expect("an entry");
        let (entry, rest) = rest.split_once('(').expect("parameters");
        let (parameters, rest) = rest.split_once(')').expect("their end");
        let (directives, body) = rest.split_once('{').expect("a body");
        let (body, _) = body.rsplit_once('}').expect("its end");
        let threads = directives
            .trim()
            .strip_prefix(".reqntid ")
            .expect("a shape");
        let [threads, one, other] = threads.split(", ").collect::<Vec<_>>()[..] else {
            panic!("no shape: {threads}");
        };
        assert_eq!((one, other), ("1", "1"));
        let parameter = |text: &str| {
            text.trim()
                .strip_prefix(".param .u64 ")
                .expect("a number")
                .to_owned()
        };
        let mut machine = Machine {
            entry: entry.to_owned(),
            threads: threads.parse().expect("a number"),
            parameters: parameters.split(',').map(parameter).collect(),
            shared: (String::new(), 0),
            program: Vec::new(),
            labels: BTreeMap::new(),
        };
        for statement in body.split(';') {
            machine.add(statement.trim());
        }
        machine
    }

    fn add(&mut self, mut statement: &str) {
        while let Some((label, rest)) = statement.split_once(":\n") {
            self.labels
                .insert(label.trim().to_owned(), self.program.len());
            statement = rest.trim();
        }
        if statement.is_empty() || statement.starts_with(".reg ") {
            return;
        }
        if let Some(array) = statement.strip_prefix(".shared .align 16 .b8 ") {
            let (name, size) = array.split_once('[').expect("an array");
            let size = size.strip_suffix(']').and_then(|size| size.parse().ok());
            self.shared = (name.to_owned(), size.expect("a size"));
            return;
        }
        let (guard, statement) = match statement.strip_prefix('@') {
            Some(rest) => {
                let (guard, rest) = rest.split_once(' ').expect("an instruction");
                (Some(guard.to_owned()), rest)
            }
            None => (None, statement),
        };
        let (name, operands) = statement.split_once(' ').unwrap_or((statement, ""));
        // A pair in braces is two operands.
        let operands = operands.replace(['{', '}'], "");
        let operands = operands.split(',').map(|one| one.trim().to_owned());
        self.program.push(Instruction {
            guard,
            name: name.to_owned(),
            operands: operands.filter(|one| !one.is_empty()).collect(),
        });
    }

    /// Runs so many thread blocks over a memory.
    pub fn launch(&self, blocks: u32, memory: &[u8], block: u64, hashes: &mut [u8]) {
        let parameters = [MEMORY, memory.len() as u64, block, HASHES];
        for number in 0..blocks {
            let mut shared = vec![0xaa; self.shared.1];
            let mut threads: Vec<Thread> = (0..self.threads).map(|_| Thread::default()).collect();
            while threads.iter().any(|thread| !thread.ended) {
                let mut ended = 0;
                for (thread, numbered) in threads.iter_mut().zip(0..) {
                    let mut work = Work {
                        number,
                        thread: numbered,
                        parameters,
                        memory,
                        hashes,
                        shared: &mut shared,
                    };
                    self.run(thread, &mut work);
                    ended += u32::from(thread.ended);
                }
                assert!(
                    ended == 0 || ended == self.threads,
                    "a barrier that some never come to"
                );
            }
        }
    }

    /// Runs a thread to the next barrier, or to its end.
    fn run(&self, thread: &mut Thread, work: &mut Work<'_>) {
        loop {
            let one = &self.program[thread.at];
            thread.at += 1;
            let skipped = one
                .guard
                .as_ref()
                .is_some_and(|guard| thread.registers[guard] == 0);
            if skipped {
                continue;
            }
            let operands: Vec<&str> = one.operands.iter().map(String::as_str).collect();
            match (one.name.as_str(), operands.as_slice()) {
                ("ret", []) => {
                    thread.ended = true;
                    return;
                }
                ("bar.sync", ["0"]) => return,
                ("bra", [label]) => thread.at = self.labels[*label],
                ("ld.param.u64", [to, place]) => {
                    let name = place.trim_matches(['[', ']']);
                    let at = self.parameters.iter().position(|one| one == name);
                    thread.set(to, work.parameters[at.expect("a parameter")]);
                }
                ("ld.global.v2.u64", [low, high, place]) => {
                    let at = (thread.address(place) - MEMORY) as usize;
                    thread.pair(low, high, &work.memory[at..at + 16], at);
                }
                ("ld.shared.v2.u64", [low, high, place]) => {
                    let at = (thread.address(place) - SHARED) as usize;
                    thread.pair(low, high, &work.shared[at..at + 16], at);
                }
                ("st.shared.v2.u64", [place, low, high]) => {
                    let at = (thread.address(place) - SHARED) as usize;
                    let bytes = thread.bytes(low, high);
                    work.shared[at..at + 16].copy_from_slice(&bytes);
                }
                ("st.global.v2.u64", [place, low, high]) => {
                    let at = (thread.address(place) - HASHES) as usize;
                    let bytes = thread.bytes(low, high);
                    work.hashes[at..at + 16].copy_from_slice(&bytes);
                }
                ("mov.u32", [to, "%tid.x"]) => thread.set(to, work.thread.into()),
                ("mov.u32", [to, "%ctaid.x"]) => thread.set(to, work.number.into()),
                ("mov.u64", [to, name]) if *name == self.shared.0 => thread.set(to, SHARED),
                (name, [to, from @ ..]) => {
                    let from: Vec<u64> = from.iter().map(|one| thread.get(one)).collect();
                    thread.set(to, compute(name, &from));
                }
                other => panic!("an instruction that the machine does not know: {other:?}"),
            }
        }
    }
}

/// Evaluates an instruction that uses only numbers.
fn compute(name: &str, from: &[u64]) -> u64 {
    let short = |number: u64| u32::try_from(number).expect("32 bits");
    match (name, from) {
        ("mov.u32", [one]) | ("cvt.u64.u32", [one]) => short(*one).into(),
        ("mov.u64" | "cvta.to.global.u64", [one]) => *one,
        ("add.u64", [one, other]) => one.wrapping_add(*other),
        ("sub.u64", [one, other]) => one.wrapping_sub(*other),
        ("min.u64", [one, other]) => *one.min(other),
        ("mul.lo.u64", [one, other]) => one.wrapping_mul(*other),
        ("xor.b64", [one, other]) => one ^ other,
        ("or.b64", [one, other]) => one | other,
        ("shl.b64", [one, by]) if *by < 64 => one << by,
        ("shr.u64", [one, by]) if *by < 64 => one >> by,
        ("shr.u32", [one, by]) if *by < 32 => (short(*one) >> by).into(),
        ("setp.ge.u64", [one, other]) => (one >= other).into(),
        ("setp.ge.u32", [one, other]) => (short(*one) >= short(*other)).into(),
        ("setp.ne.u32", [one, other]) => (short(*one) != short(*other)).into(),
        other => panic!("an instruction that the machine does not know: {other:?}"),
    }
}

impl Thread {
    fn set(&mut self, register: &str, value: u64) {
        assert!(register.starts_with('%'), "{register} is no register");
        self.registers.insert(register.to_owned(), value);
    }

    /// Returns the value of a register that was set, or a number.
    fn get(&self, operand: &str) -> u64 {
        if operand.starts_with('%') {
            return self.registers[operand];
        }
        let number = match operand.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits.trim_end_matches('U'), 16),
            None => operand.parse(),
        };
        number.unwrap_or_else(|_| panic!("{operand} is no number"))
    }

    fn address(&self, place: &str) -> u64 {
        self.get(place.trim_matches(['[', ']']))
    }

    /// Loads two registers from memory at a multiple of 16.
    fn pair(&mut self, low: &str, high: &str, bytes: &[u8], at: usize) {
        assert!(at.is_multiple_of(16), "{at:#x} lies askew");
        let (words, _) = bytes.as_chunks::<8>();
        self.set(low, u64::from_le_bytes(words[0]));
        self.set(high, u64::from_le_bytes(words[1]));
    }

    fn bytes(&self, low: &str, high: &str) -> Vec<u8> {
        [self.get(low), self.get(high)]
            .map(u64::to_le_bytes)
            .concat()
    }
}
