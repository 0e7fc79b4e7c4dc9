//! Graphs: work that is recorded while a stream is captured, and submitted as a whole, as often as the program likes.
//!
//! The record is this library's own memory. A launched graph is work like any other.

use std::collections::BTreeMap;

use stillpoint_emulated_gpu_protocol::message::Work;

use crate::code::{self, Code};
use crate::driver::Driver;
use crate::objects::Handles;

/// Captured work and graphs.
#[derive(Debug)]
pub struct Graphs {
    /// Work by captured stream.
    captures: BTreeMap<u64, Vec<Work>>,
    graphs: Handles<Vec<Work>>,
    executable: Handles<Vec<Work>>,
}

impl Graphs {
    pub fn new() -> Graphs {
        Graphs {
            captures: BTreeMap::new(),
            graphs: Handles::new(0x1_00c0),
            executable: Handles::new(0x1_00e0),
        }
    }

    /// Tells whether a stream is being captured.
    pub fn captures(&self, stream: u64) -> bool {
        self.captures.contains_key(&stream)
    }

    /// Records work if its stream is being captured; otherwise returns it.
    pub fn write_down(&mut self, stream: u64, work: Work) -> Result<Option<Work>, Code> {
        let Some(written) = self.captures.get_mut(&stream) else {
            return Ok(Some(work));
        };
        match work {
            Work::ToDevice { .. }
            | Work::ToHost { .. }
            | Work::Within { .. }
            | Work::Fill { .. }
            | Work::Launch(_) => written.push(work),
            // Events, functions of the program, and memory to free cannot be captured.
            _ => return Err(code::STREAM_CAPTURE_UNSUPPORTED),
        }
        Ok(None)
    }
}

impl Driver {
    pub fn begin_capture(&mut self, stream: u64) -> Result<(), Code> {
        let (handle, one) = self.stream(stream)?;
        if one.order == crate::objects::Order::Default || self.graphs.captures(handle) {
            return Err(code::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.graphs.captures.insert(handle, vec![]);
        Ok(())
    }

    pub fn end_capture(&mut self, stream: u64) -> Result<u64, Code> {
        let (handle, _) = self.stream(stream)?;
        let written = self.graphs.captures.remove(&handle);
        let written = written.ok_or(code::ILLEGAL_STATE)?;
        Ok(self.graphs.graphs.add(written))
    }

    /// Makes a graph that can be launched. Later changes of the original do not affect it.
    pub fn instantiate(&mut self, graph: u64) -> Result<u64, Code> {
        let works = self.graphs.graphs.get(graph).ok_or(code::INVALID_VALUE)?;
        let works = works.clone();
        Ok(self.graphs.executable.add(works))
    }

    pub fn launch_graph(&mut self, graph: u64, stream: u64) -> Result<(), Code> {
        let works = self.graphs.executable.get(graph).cloned();
        for work in works.ok_or(code::INVALID_VALUE)? {
            self.submit(stream, vec![], work)?;
        }
        Ok(())
    }

    pub fn end_graph(&mut self, graph: u64, executable: bool) -> Result<(), Code> {
        let all = match executable {
            true => &mut self.graphs.executable,
            false => &mut self.graphs.graphs,
        };
        all.remove(graph).map(drop).ok_or(code::INVALID_VALUE)
    }
}
