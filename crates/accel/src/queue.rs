//! Several devices behind one in-order queue.

use crate::split::{blocks, cut, put_together, terms};
use crate::{Command, Cpu, Descriptor, Device, Event, Keys, check};
use base::Error;
use kernels::Block;
use std::sync::Arc;
use std::time::Instant;

/// Blocks, times terms, that are worth a thread of a device: some ten times what it takes to start one.
const WORTH: usize = 1 << 13;

/// One or more devices of a seat. Commands run in order; a long one runs on several devices at once, on each its share of
/// the blocks, with the result that one device would give.
pub struct Queue {
    devices: Vec<Box<dyn Device>>,
    worth: usize,
    keys: Option<Arc<Keys>>,
    events: Option<Record>,
}

/// Events since they were taken last.
struct Record {
    epoch: Instant,
    events: Vec<Event>,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new(vec![Box::new(Cpu::default())])
    }
}

impl Queue {
    /// A queue in front of these devices, at least one. The first of them gets the short commands.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        assert!(!devices.is_empty(), "a queue has a device");
        Self { devices, worth: WORTH, keys: None, events: None }
    }

    /// The same queue, which gives no device less than `blocks` times terms of a command; at least 1.
    #[must_use]
    pub fn with_least(self, blocks: usize) -> Self {
        Self { worth: blocks.max(1), ..self }
    }

    /// The name of its first device.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.devices[0].name()
    }

    /// How many devices there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Configures all devices.
    ///
    /// # Errors
    /// Those of the devices.
    pub fn configure(&mut self, keys: &Arc<Keys>) -> Result<(), Error> {
        self.devices.iter_mut().try_for_each(|device| device.configure(keys.clone()))?;
        self.keys = Some(keys.clone());
        Ok(())
    }

    /// Whether to keep completion events from now on. Those not taken are dropped.
    pub fn keep_events(&mut self, keep: bool) {
        self.events = keep.then(|| Record { epoch: Instant::now(), events: Vec::new() });
    }

    /// The events since the last call, in order of commands, and of devices within a command.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(|record| std::mem::take(&mut record.events)).unwrap_or_default()
    }

    /// Runs a command to its completion.
    ///
    /// # Errors
    /// Those of the devices: nothing of the output may be used.
    pub fn run(&mut self, command: &mut Command<'_>) -> Result<(), Error> {
        let keys = self.keys.clone().ok_or_else(|| Error::misuse("the queue has no keys yet"))?;
        let work = blocks(command).saturating_mul(terms(command));
        let parts = (work / self.worth).min(self.devices.len()).min(blocks(command)).max(1);
        if parts == 1 {
            let watch = self.events.as_ref().map(|record| (record.epoch, &*keys));
            let event = watched(0, &mut *self.devices[0], command, watch)?;
            self.note(event);
            return Ok(());
        }
        check(command, keys.seat())?;
        let mut digests = vec![[Block::ZERO; 2]; parts];
        self.run_parts(command, &keys, &mut digests)?;
        put_together(&keys, command, &digests);
        Ok(())
    }

    /// Runs as many parts as there are digests, the first one on this thread.
    fn run_parts(
        &mut self,
        command: &mut Command<'_>,
        keys: &Keys,
        digests: &mut [[Block; 2]],
    ) -> Result<(), Error> {
        let watch = self.events.as_ref().map(|record| (record.epoch, keys));
        let work = cut(command, digests).into_iter().zip(&mut self.devices).enumerate();
        let mut jobs = work.map(|(index, (part, device))| {
            move || part.run(|command| watched(index, &mut **device, command, watch))
        });
        let first = jobs.next().expect("a command has a part");
        let done: Vec<Result<Option<Event>, Error>> = std::thread::scope(|scope| {
            let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
            let first = first();
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(first).chain(others).collect()
        });
        done.into_iter().try_for_each(|event| event.map(|event| self.note(event)))
    }

    fn note(&mut self, event: Option<Event>) {
        if let Some(record) = &mut self.events {
            record.events.extend(event);
        }
    }
}

/// Runs a command on a device, and looks at the clock where somebody wants to know.
fn watched(
    index: usize,
    device: &mut dyn Device,
    command: &mut Command<'_>,
    watch: Option<(Instant, &Keys)>,
) -> Result<Option<Event>, Error> {
    let Some((epoch, keys)) = watch else {
        return device.run(command).map(|()| None);
    };
    let (descriptor, begun): (Descriptor, _) = (command.descriptor(keys.seat()), Instant::now());
    device.run(command)?;
    let (start, duration) = (begun.duration_since(epoch), begun.elapsed());
    Ok(Some(Event { descriptor, device: index, name: device.name(), start, duration }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::keys;
    use crate::{Half, Linear, Operation, Ring};

    fn cpus(n: usize) -> Queue {
        Queue::new((0..n).map(|_| Box::new(Cpu::default()) as Box<dyn Device>).collect())
    }

    fn add(queue: &mut Queue, n: usize) -> Result<(), Error> {
        let (x, mut z) =
            (vec![Block::ONE; n], [vec![Block::ZERO; n], vec![Block::ZERO; n], vec![Block::ZERO; n]]);
        let [z0, z1, z2] = &mut z;
        let x = [&*x; 3];
        queue.run(&mut Command::Add(Linear { ring: Ring::Z128, x, y: x, z: [z0, z1, z2] }))
    }

    #[test]
    fn events_are_kept_when_asked_for() {
        let mut queue = cpus(3).with_least(100);
        let [keys, ..] = keys();
        assert!(add(&mut queue, 1).unwrap_err().to_string().contains("no keys"));
        queue.configure(&keys).unwrap();
        add(&mut queue, 1000).unwrap();
        assert!(queue.take_events().is_empty());
        queue.keep_events(true);
        for n in [99, 200, 1000] {
            add(&mut queue, n).unwrap();
        }
        let events = queue.take_events();
        let seen: Vec<_> = events.iter().map(|e| (e.device, e.descriptor.blocks)).collect();
        assert_eq!(seen, [(0, 99), (0, 100), (1, 100), (0, 333), (1, 333), (2, 334)]);
        for event in &events {
            let d = &event.descriptor;
            assert_eq!((event.name, d.operation, d.peer, d.place), ("cpu", Operation::Add, None, None));
            assert_eq!((d.source.len(), d.destination.len()), (6, 3));
            assert!(d.source.iter().chain(&d.destination).all(|v| v.blocks == d.blocks));
        }
        assert!(queue.take_events().is_empty());
        queue.keep_events(false);
        add(&mut queue, 1000).unwrap();
        assert!(queue.take_events().is_empty());
    }

    #[test]
    fn a_command_is_described_without_its_data() {
        let seat = crate::Seat::new(1);
        let (a, mut z) = (vec![Block(0x5ec2e7); 5], [vec![Block::ZERO; 5], vec![Block::ZERO; 5]]);
        let [z1, z2] = &mut z;
        let fold = crate::Fold {
            ring: Ring::Z64,
            round: 7,
            first: 11,
            half: Half::First,
            z: [z1, z2],
            a: &a,
            c: &[],
            masked: true,
            digests: None,
        };
        let descriptor = Command::Fold(fold).descriptor(seat);
        assert_eq!((descriptor.operation, descriptor.blocks, descriptor.terms), (Operation::Fold, 5, 1));
        assert_eq!((descriptor.peer, descriptor.place), (Some(seat.after(1)), Some((7, 11, Half::First))));
        let names = |v: &[crate::Operand]| v.iter().map(|v| v.name).collect::<Vec<_>>();
        assert_eq!((names(&descriptor.source), names(&descriptor.destination)), (vec!["a"], vec!["z2"]));
        assert!(!format!("{descriptor:?}").contains(&0x5ec2e7.to_string()));
    }

    /// Fails when a part of a command comes to it.
    struct Broken;

    impl Device for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn configure(&mut self, _: Arc<Keys>) -> Result<(), Error> {
            Ok(())
        }
        fn run(&mut self, _: &mut Command<'_>) -> Result<(), Error> {
            Err(Error::misuse("the device is broken"))
        }
    }

    #[test]
    fn a_device_that_fails_fails_the_command() {
        let mut queue = Queue::new(vec![Box::new(Cpu::default()), Box::new(Broken)]).with_least(10);
        let [keys, ..] = keys();
        queue.configure(&keys).unwrap();
        add(&mut queue, 19).unwrap();
        assert!(add(&mut queue, 20).unwrap_err().to_string().contains("broken"));
    }
}
