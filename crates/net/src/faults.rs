//! Faults on demand, for tests: a channel that delays, cuts, alters or shortens what a party sends at a step.

use crate::traffic::covers;
use crate::{Channel, RangeHalt};
use base::ChannelError;
use std::net::IpAddr;
use std::time::Duration;

/// What goes wrong with the bytes that a party sends to a peer at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// Every send waits this long first.
    Delay(Duration),
    /// The connection breaks on the first use at the step, in both directions.
    Cut,
    /// One byte of what is sent at the step changes: the one at this offset, XORed with a mask.
    Corrupt {
        /// Offset in the bytes sent at the step, over all its messages, from 0.
        byte: u64,
        /// What the byte is XORed with.
        mask: u8,
    },
    /// The first message sent at the step loses its last byte; everything after it moves up.
    Truncate,
}

/// Where a fault strikes.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub step: String,
    pub fault: InjectedFault,
}

/// A channel with planned faults. It learns the step from [`Channel::at_step`].
pub(crate) struct Faulty {
    inner: Option<Box<dyn Channel>>,
    faults: Vec<Active>,
}

struct Active {
    planned: Planned,
    here: bool,
    /// Bytes sent where this fault strikes.
    sent: u64,
    /// A truncation strikes once.
    spent: bool,
}

impl Faulty {
    /// `inner` with these faults; `inner` itself when there are none.
    pub(crate) fn wrap(inner: Box<dyn Channel>, faults: Vec<Planned>) -> Box<dyn Channel> {
        if faults.is_empty() {
            return inner;
        }
        let faults = faults.into_iter().map(|planned| {
            let here = covers(&planned.step, "");
            Active { planned, here, sent: 0, spent: false }
        });
        Box::new(Self { inner: Some(inner), faults: faults.collect() })
    }

    fn inner(&mut self) -> Result<&mut dyn Channel, ChannelError> {
        if self.faults.iter().any(|f| f.here && f.planned.fault == InjectedFault::Cut) {
            self.inner = None;
        }
        match &mut self.inner {
            Some(inner) => Ok(&mut **inner),
            None => Err(ChannelError::Cut),
        }
    }
}

impl Active {
    fn strike(&mut self, message: &mut Vec<u8>) {
        let start = self.sent;
        self.sent += message.len() as u64;
        match self.planned.fault {
            InjectedFault::Delay(time) => std::thread::sleep(time),
            InjectedFault::Cut => {}
            InjectedFault::Corrupt { byte, mask } => {
                if let Some(place) = byte.checked_sub(start).and_then(|i| message.get_mut(i as usize)) {
                    *place ^= mask;
                }
            }
            InjectedFault::Truncate => {
                if !std::mem::replace(&mut self.spent, true) {
                    message.pop();
                }
            }
        }
    }
}

impl Channel for Faulty {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut message = bytes.to_vec();
        for fault in self.faults.iter_mut().filter(|fault| fault.here) {
            fault.strike(&mut message);
        }
        self.inner()?.send(&message)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner()?.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner()?.finish()
    }

    fn window(&self) -> usize {
        self.inner.as_ref().map_or(0, |inner| inner.window())
    }

    fn private(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.private())
    }

    fn authenticated(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.authenticated())
    }

    fn deadline(&self) -> Duration {
        self.inner.as_ref().map_or(Duration::ZERO, |inner| inner.deadline())
    }

    fn set_deadline(&mut self, deadline: Duration) {
        if let Some(inner) = &mut self.inner {
            inner.set_deadline(deadline);
        }
    }

    fn local_ip(&self) -> Option<IpAddr> {
        self.inner.as_ref().and_then(|inner| inner.local_ip())
    }

    fn watch(&mut self) -> Result<(), ChannelError> {
        self.inner()?.watch()
    }

    fn halts_with(&mut self, halt: &RangeHalt) {
        if let Some(inner) = &mut self.inner {
            inner.halts_with(halt);
        }
    }

    fn at_step(&mut self, step: &str) {
        for fault in &mut self.faults {
            fault.here = covers(&fault.planned.step, step);
        }
        if let Some(inner) = &mut self.inner {
            inner.at_step(step);
        }
    }
}
