//! Contexts and streams: their creation and end, and the submission of work.

use std::collections::BTreeMap;

use stillpoint_emulated_gpu_protocol::channel::STREAMS;
use stillpoint_emulated_gpu_protocol::message::{Request, Work};

use crate::code::{self, Code};
use crate::driver::{Driver, current};
use crate::objects::{Context, Order, Stream};
use crate::window;

impl Driver {
    /// Returns the current context.
    pub fn context(&self) -> Result<(u64, &Context), Code> {
        let handle = current(|stack| stack.last().copied()).ok_or(code::INVALID_CONTEXT)?;
        let context = self.contexts.get(handle);
        Ok((handle, context.ok_or(code::CONTEXT_IS_DESTROYED)?))
    }

    /// Makes a new context of a device.
    pub fn make_context(&mut self, device: u32, flags: u32) -> Result<u64, Code> {
        let place = self.place(device)?;
        let slot = self.slots.take(STREAMS).ok_or(code::OUT_OF_MEMORY)?;
        let there = self.connection()?.tell(&Request::Context { device: place });
        if let Err(code) = there {
            self.slots.give_back(slot);
            return Err(code);
        }
        let context = self.contexts.add(Context {
            device,
            default: 0,
            flags,
            version: 3020,
            peers: vec![],
            limits: BTreeMap::new(),
        });
        let default = self.streams.add(Stream {
            context,
            slot,
            order: Order::Default,
            flags: 0,
            priority: 0,
        });
        if let Some(context) = self.contexts.get_mut(context) {
            context.default = default;
        }
        Ok(context)
    }

    /// Ends a context with everything in it. Its work must be done.
    pub fn end_context(&mut self, handle: u64) -> Result<(), Code> {
        let context = self.contexts.remove(handle);
        let device = context.ok_or(code::INVALID_CONTEXT)?.device;
        let of = |context: u64| context == handle;
        let streams: Vec<u64> = self
            .streams
            .iter()
            .filter(|(_, stream)| of(stream.context))
            .map(|(stream, _)| stream)
            .collect();
        for stream in streams {
            self.end_stream(stream)?;
        }
        let events: Vec<u64> = self
            .events
            .iter()
            .filter(|(_, event)| of(event.context))
            .map(|(event, _)| event)
            .collect();
        for event in events {
            self.end_event(event);
        }
        let memory: Vec<u64> = self
            .memory
            .iter()
            .filter(|(_, memory)| of(memory.context))
            .map(|(address, _)| *address)
            .collect();
        for address in memory {
            self.free(address)?;
        }
        let pinned: Vec<u64> = self
            .pinned
            .iter()
            .filter(|(_, pinned)| of(pinned.context))
            .map(|(address, _)| *address)
            .collect();
        for address in pinned {
            self.unpin(address)?;
        }
        let device = self.place(device)?;
        self.connection()?.tell(&Request::EndContext { device })
    }

    /// Returns the stream of a handle. The default stream is that of the current context.
    pub fn stream(&self, handle: u64) -> Result<(u64, &Stream), Code> {
        let handle = match handle {
            // The default stream has two names. A thread's own default stream is not supported.
            0 | 1 => self.context()?.1.default,
            2 => return Err(code::NOT_SUPPORTED),
            handle => handle,
        };
        let stream = self.streams.get(handle);
        Ok((handle, stream.ok_or(code::INVALID_HANDLE)?))
    }

    /// Ends the use of a stream. Its submitted work is still done.
    pub fn end_stream(&mut self, handle: u64) -> Result<(), Code> {
        let stream = self.streams.remove(handle).ok_or(code::INVALID_HANDLE)?;
        self.slots.give_back(stream.slot);
        let stream = stream.slot;
        self.connection()?.tell(&Request::Close { stream })
    }

    pub fn end_event(&mut self, handle: u64) {
        let time = self.events.remove(handle).and_then(|event| event.time);
        if let Some(time) = time {
            self.times.give_back(time);
        }
    }

    /// Submits work to a stream, and returns its place and number there.
    pub fn submit(
        &mut self,
        stream: u64,
        mut after: Vec<(u32, u32)>,
        work: Work,
    ) -> Result<(u32, u32), Code> {
        let (handle, _) = self.stream(stream)?;
        let Some(work) = self.graphs.write_down(handle, work)? else {
            let slot = self.stream(stream)?.1.slot;
            return Ok((slot, self.slots.last(slot)));
        };
        let (handle, stream) = self.stream(stream)?;
        let (slot, context, order) = (stream.slot, stream.context, stream.order);
        let of = self
            .contexts
            .get(context)
            .ok_or(code::CONTEXT_IS_DESTROYED)?;
        let device = self.place(of.device)?;
        let against = |other: Order| match order {
            Order::Default => other == Order::Blocking,
            Order::Blocking => other == Order::Default,
            Order::Free => false,
        };
        for (other, stream) in self.streams.iter() {
            if other != handle && stream.context == context && against(stream.order) {
                after.push((stream.slot, self.slots.last(stream.slot)));
            }
        }
        let channel = window::channel();
        after.retain(|&(slot, sequence)| !channel.has(slot, sequence));
        let sequence = self.slots.next(slot);
        self.connection()?.tell(&Request::Submit {
            device,
            stream: slot,
            sequence,
            after,
            work,
        })?;
        Ok((slot, sequence))
    }

    /// Returns the last pieces of work of a context's streams.
    pub fn work_of(&self, context: u64) -> Vec<(u32, u32)> {
        let of = self
            .streams
            .iter()
            .filter(|(_, stream)| stream.context == context);
        of.map(|(_, stream)| (stream.slot, self.slots.last(stream.slot)))
            .collect()
    }
}
