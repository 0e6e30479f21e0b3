//! Several devices behind one in-order queue.

use crate::host_vectors::{HOST_CHUNK_BLOCKS, HOST_SLOTS, HostVectors, RunCommand};
use crate::split::{blocks, cut, put_together, terms};
use crate::steps::{VectorRun, VectorStep, splat};
use crate::{
    Cpu, Device, DeviceCommand, DeviceVector, Inbox, Outbox, SeatKeys, StageVouch, VectorMemory,
    VectorProduct, VectorRing, check,
};
use base::Error;
use kernels::Block;
use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;
use zeroize::Zeroizing;

mod apart;

/// Blocks, times terms, that are worth a thread of a device: some ten times what it takes to start one.
const WORTH: usize = 1 << 13;

/// One or more devices of a seat. Commands run in order; a long one runs on several devices at once, on each
/// its share of the blocks, with the result that one device would give.
pub struct DeviceQueue {
    devices: Vec<Box<dyn Device>>,
    worth: usize,
    keys: Option<Arc<SeatKeys>>,
    /// Vectors, where the device has no memory of its own, or is one of several, or is not worth it.
    vectors: HostVectors,
    /// Slots whose chunks are of such vectors.
    hosted: BTreeSet<usize>,
    /// What takes commands that the devices are not worth.
    cpu: Option<Cpu>,
    work: DeviceWork,
}

/// What a queue did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceWork {
    /// Commands that its devices ran.
    pub commands: u64,
    /// Commands that the CPU took over from them: see [`DeviceQueue::with_cpu`].
    pub taken_over: u64,
    /// Operations on vectors of the host that were handed over: see [`DeviceQueue::takes`].
    pub handed_over: u64,
    /// Vectors, or parts of one, that were copied from the host's memory to a device's or back, for they met
    /// others there.
    pub moved: u64,
    /// Vectors that the host's memory took, since the device's was full.
    pub spilled: u64,
}

impl AddAssign for DeviceWork {
    fn add_assign(&mut self, more: Self) {
        self.commands += more.commands;
        self.taken_over += more.taken_over;
        self.handed_over += more.handed_over;
        self.moved += more.moved;
        self.spilled += more.spilled;
    }
}

impl Default for DeviceQueue {
    fn default() -> Self {
        Self::new(vec![Box::new(Cpu::default())])
    }
}

impl DeviceQueue {
    /// A queue in front of these devices, at least one. The first of them gets the short commands.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        assert!(!devices.is_empty(), "a queue has a device");
        let (vectors, hosted) = (HostVectors::default(), BTreeSet::new());
        Self { devices, worth: WORTH, keys: None, vectors, hosted, cpu: None, work: DeviceWork::default() }
    }

    /// The same queue, which gives no device less than `blocks` times terms of a command; at least 1.
    #[must_use]
    pub fn with_least(self, blocks: usize) -> Self {
        Self { worth: blocks.max(1), ..self }
    }

    /// The same queue, with the CPU for commands and vectors that are too short for the devices: a GPU takes
    /// longer to begin than the CPU to end.
    #[must_use]
    pub fn with_cpu(self) -> Self {
        Self { cpu: Some(Cpu::default()), ..self }
    }

    /// What it did so far.
    #[must_use]
    pub fn work(&self) -> DeviceWork {
        self.work
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
    pub fn configure(&mut self, keys: &Arc<SeatKeys>) -> Result<(), Error> {
        self.devices.iter_mut().try_for_each(|device| device.configure(keys.clone()))?;
        self.cpu.iter_mut().try_for_each(|cpu| cpu.configure(keys.clone()))?;
        self.keys = Some(keys.clone());
        Ok(())
    }

    /// Runs a command to its completion.
    ///
    /// # Errors
    /// Those of the devices: nothing of the output may be used.
    pub fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        let keys = self.keys()?;
        let work = blocks(command).saturating_mul(terms(command));
        let least = self.devices[0].least();
        if let Some(cpu) = self.cpu.as_mut().filter(|_| work < least) {
            self.work.taken_over += 1;
            return cpu.run(command);
        }
        self.work.commands += 1;
        let parts = (work / self.worth).min(self.devices.len()).min(blocks(command)).max(1);
        if parts == 1 {
            let done = self.devices[0].run(command);
            let full = done.is_err() && self.devices[0].full();
            let Some(cpu) = self.cpu.as_mut().filter(|_| full) else { return done };
            self.work.taken_over += 1;
            return cpu.run(command);
        }
        check(command, keys.seat())?;
        let mut digests = vec![[Block::ZERO; 2]; parts];
        self.run_parts(command, &mut digests)?;
        put_together(&keys, command, &digests);
        Ok(())
    }

    /// Runs as many parts as there are digests, the first one on this thread.
    fn run_parts(
        &mut self,
        command: &mut DeviceCommand<'_>,
        digests: &mut [[Block; 2]],
    ) -> Result<(), Error> {
        let work = cut(command, digests).into_iter().zip(&mut self.devices);
        let mut jobs = work.map(|(part, device)| move || part.run(|command| device.run(command)));
        let first = jobs.next().expect("a command has a part");
        let done: Vec<Result<(), Error>> = std::thread::scope(|scope| {
            let others: Vec<_> = jobs.map(|job| scope.spawn(job)).collect();
            let first = first();
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            std::iter::once(first).chain(others).collect()
        });
        done.into_iter().collect()
    }
}

impl DeviceQueue {
    fn keys(&self) -> Result<Arc<SeatKeys>, Error> {
        self.keys.clone().ok_or_else(|| Error::misuse("the queue has no keys yet"))
    }

    /// A vector where another one lies, whatever its length.
    ///
    /// # Errors
    /// As [`VectorMemory::make`].
    pub fn make_beside(
        &mut self,
        other: &DeviceVector,
        ring: VectorRing,
        blocks: usize,
    ) -> Result<DeviceVector, Error> {
        let made = self.memory_of(other).map(|memory| memory.make(ring, blocks));
        self.or_on_host(made, ring, blocks)
    }

    /// What a device made, or a vector of the host where there is none or it is full.
    fn or_on_host(
        &mut self,
        made: Option<Result<DeviceVector, Error>>,
        ring: VectorRing,
        blocks: usize,
    ) -> Result<DeviceVector, Error> {
        match made {
            Some(Err(_)) if self.devices[0].full() => self.work.spilled += 1,
            Some(made) => return made,
            None => {}
        }
        Ok(self.vectors.make(ring, blocks))
    }

    /// Whether vectors stay in the memory of a device, not of the host.
    pub fn keeps_vectors(&mut self) -> bool {
        self.memory().is_some()
    }

    /// Whether an operation on vectors of the host is handed over to the device's memory; counts those that
    /// are. Its rounds are of so many blocks: of one vector of the ring that it computes in, or of one word
    /// of bits, however many operands it has.
    pub fn takes(&mut self, blocks: usize) -> bool {
        let takes = self.memory().is_some_and(|memory| blocks >= memory.least_handed());
        self.work.handed_over += u64::from(takes);
        takes
    }

    /// The memory of the only device, if it has one.
    fn memory(&mut self) -> Option<&mut dyn VectorMemory> {
        if let [device] = &mut self.devices[..] { device.memory() } else { None }
    }

    /// The memory of a vector, unless it lies on the host.
    fn memory_of(&mut self, vector: &DeviceVector) -> Option<&mut dyn VectorMemory> {
        if self.vectors.has(vector) { None } else { self.memory() }
    }

    /// The memory of what is under way in a slot, unless it lies on the host.
    fn memory_at(&mut self, slot: usize) -> Option<&mut dyn VectorMemory> {
        if self.hosted.contains(&slot) { None } else { self.memory() }
    }

    /// Blocks of a chunk of products of vectors that lie where this one does, and how many of these may be
    /// under way.
    pub fn chunks_of(&mut self, vector: &DeviceVector) -> [usize; 2] {
        let host = [HOST_CHUNK_BLOCKS, HOST_SLOTS];
        self.memory_of(vector).map_or(host, |memory| [memory.chunk_blocks(), memory.slots()])
    }

    /// Whether both halves of a product are one chunk whose result lies where this vector does.
    pub fn joins(&mut self, vector: &DeviceVector) -> bool {
        self.memory_of(vector).is_some_and(|memory| memory.joins(vector.blocks()))
    }

    /// Does something with the host's vectors that takes commands.
    fn on_host<T>(&mut self, work: impl FnOnce(&mut HostVectors, &mut RunCommand<'_>) -> T) -> T {
        let mut vectors = std::mem::take(&mut self.vectors);
        let done = work(&mut vectors, &mut |command| self.run(command));
        self.vectors = vectors;
        done
    }
}

impl VectorMemory for DeviceQueue {
    fn chunk_blocks(&mut self) -> usize {
        self.memory().map_or(HOST_CHUNK_BLOCKS, VectorMemory::chunk_blocks)
    }

    fn slots(&mut self) -> usize {
        self.memory().map_or(HOST_SLOTS, VectorMemory::slots)
    }

    fn make(&mut self, ring: VectorRing, blocks: usize) -> Result<DeviceVector, Error> {
        let shorter = self.cpu.is_some();
        let memory = self.memory().filter(|memory| !shorter || blocks >= memory.least_blocks());
        let made = memory.map(|memory| memory.make(ring, blocks));
        self.or_on_host(made, ring, blocks)
    }

    fn write(&mut self, to: &DeviceVector, parts: [&[Block]; 3]) -> Result<(), Error> {
        match self.memory_of(to) {
            Some(memory) => memory.write(to, parts),
            None => self.vectors.write(to, parts),
        }
    }

    fn read(&mut self, from: &DeviceVector, at: usize, parts: [&mut [Block]; 3]) -> Result<(), Error> {
        match self.memory_of(from) {
            Some(memory) => memory.read(from, at, parts),
            None => self.vectors.read(from, at, parts),
        }
    }

    fn step(&mut self, step: &VectorStep<'_>) -> Result<(), Error> {
        let on_host = self.is_on_host(step.z().vector);
        if step.reads().iter().any(|x| self.is_on_host(x.vector) != on_host) {
            return self.step_apart(step);
        }
        if let Some(memory) = self.memory_of(step.z().vector) {
            return memory.step(step);
        }
        // What the devices have a command for, they do.
        if let VectorStep::Combine { ring, z, terms: [(x, a), (y, b)], constant: None } = step
            && z.part.is_none()
            && let [one, negative] = [1, u128::MAX].map(|number| splat(*ring, number))
            && *a == one
            && (*b == one || *b == negative)
        {
            step.check()?;
            return self.on_host(|vectors, run| vectors.linear(*b != one, *ring, [x, y, z], run));
        }
        let keys = self.keys()?;
        self.vectors.step(&keys, step)
    }

    fn write_run(&mut self, to: &VectorRun<'_>, blocks: &[Block]) -> Result<(), Error> {
        if let Some(memory) = self.memory_of(to.vector) {
            return memory.write_run(to, blocks);
        }
        let some = self.vectors.some(to)?;
        if some.len() != blocks.len() {
            return Err(Error::misuse("what is written is not as long as the run"));
        }
        some.copy_from_slice(blocks);
        Ok(())
    }

    fn read_run(&mut self, from: &VectorRun<'_>, blocks: &mut [Block]) -> Result<(), Error> {
        if let Some(memory) = self.memory_of(from.vector) {
            return memory.read_run(from, blocks);
        }
        let some = self.vectors.some(from)?;
        if some.len() != blocks.len() {
            return Err(Error::misuse("what is read is not as long as the run"));
        }
        blocks.copy_from_slice(some);
        Ok(())
    }

    fn digest(&mut self, tag: usize, x: &VectorRun<'_>) -> Result<Block, Error> {
        if let Some(memory) = self.memory_of(x.vector) {
            return memory.digest(tag, x);
        }
        let keys = self.keys()?;
        self.vectors.digest(&keys, tag, x)
    }

    fn start(&mut self, slot: usize, product: &VectorProduct<'_>) -> Result<(), Error> {
        let keys = self.keys()?;
        if let Some(memory) = self.memory_of(product.z) {
            memory.start(slot, product)?;
            // After an error a chunk of the host's may still be noted here.
            self.hosted.remove(&slot);
            return Ok(());
        }
        self.on_host(|vectors, run| vectors.start(keys.seat(), slot, product, run))?;
        self.hosted.insert(slot);
        Ok(())
    }

    fn vouched(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        if self.memory_at(slot).is_some() {
            return self.memory_at(slot).expect("it was there").vouched(slot);
        }
        self.vectors.vouched(slot)
    }

    fn outbox(&mut self, slot: usize) -> Result<Box<dyn Outbox>, Error> {
        match self.memory_at(slot) {
            Some(memory) => memory.outbox(slot),
            None => self.vectors.outbox(slot),
        }
    }

    fn inbox(&mut self, slot: usize) -> Result<Box<dyn Inbox>, Error> {
        match self.memory_at(slot) {
            Some(memory) => memory.inbox(slot),
            None => self.vectors.inbox(slot),
        }
    }

    fn fold(&mut self, slot: usize) -> Result<(), Error> {
        match self.memory_at(slot) {
            Some(memory) => memory.fold(slot),
            None => self.on_host(|vectors, run| vectors.fold(slot, run)),
        }
    }

    fn arrived(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        if self.memory_at(slot).is_some() {
            return self.memory_at(slot).expect("it was there").arrived(slot);
        }
        self.vectors.arrived(slot)
    }

    fn arrived_digests(&mut self, slot: usize) -> Result<Zeroizing<Vec<Block>>, Error> {
        // What lies with the host is hashed where the transport has it.
        self.memory_at(slot).map_or_else(|| Ok(Zeroizing::default()), |memory| memory.arrived_digests(slot))
    }

    fn settle(&mut self, slot: usize) -> Result<(), Error> {
        match self.memory_at(slot) {
            Some(memory) => memory.settle(slot),
            None => {
                self.vectors.settle(slot)?;
                self.hosted.remove(&slot);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::keys;
    use crate::{LinearStage, VectorRing};

    fn add(queue: &mut DeviceQueue, n: usize) -> Result<(), Error> {
        let (x, mut z) =
            (vec![Block::ONE; n], [vec![Block::ZERO; n], vec![Block::ZERO; n], vec![Block::ZERO; n]]);
        let [z0, z1, z2] = &mut z;
        let x = [&*x; 3];
        queue.run(&mut DeviceCommand::Add(LinearStage { ring: VectorRing::Z128, x, y: x, z: [z0, z1, z2] }))
    }

    /// Fails when a part of a command comes to it.
    struct Broken;

    impl Device for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn configure(&mut self, _: Arc<SeatKeys>) -> Result<(), Error> {
            Ok(())
        }
        fn run(&mut self, _: &mut DeviceCommand<'_>) -> Result<(), Error> {
            Err(Error::misuse("the device is broken"))
        }
    }

    #[test]
    fn a_device_that_fails_fails_the_command() {
        let mut queue = DeviceQueue::new(vec![Box::new(Cpu::default()), Box::new(Broken)]).with_least(10);
        let [keys, ..] = keys();
        assert!(add(&mut queue, 1).unwrap_err().to_string().contains("no keys"));
        queue.configure(&keys).unwrap();
        add(&mut queue, 19).unwrap();
        assert!(add(&mut queue, 20).unwrap_err().to_string().contains("broken"));
    }
}
