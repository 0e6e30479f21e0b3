//! Operations and programs on devices: those that keep vectors, and those whose vectors lie with the host.

use accel::{Cpu, Device, DeviceCommand, DeviceQueue, SeatKeys, VectorMemory};
use base::{Error, PartyId};
use engine::conformance;
use net::cluster::Cluster;
use ring4::{Ring4, Security, Settings, TagHash};
use std::sync::Arc;

/// The CPU as a device with memory of its own: the host's, behind another queue.
#[derive(Default)]
struct Keeping {
    cpu: Cpu,
    memory: DeviceQueue,
}

impl Device for Keeping {
    fn name(&self) -> &'static str {
        "keeping"
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.memory.configure(&keys)?;
        self.cpu.configure(keys)
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        self.cpu.run(command)
    }

    fn memory(&mut self) -> Option<&mut dyn VectorMemory> {
        Some(&mut self.memory)
    }
}

fn keeping() -> DeviceQueue {
    DeviceQueue::new(vec![Box::new(Keeping::default())])
}

#[test]
fn vectors_of_the_host_conform() {
    ring4::conformance::check(&|| Ok(DeviceQueue::default()), &[260, 1, 127]).unwrap();
    let cpu = |_| Box::new(Cpu::default()) as Box<dyn Device>;
    ring4::conformance::check(&|| Ok(DeviceQueue::new((0..2).map(cpu).collect()).with_least(8)), &[129])
        .unwrap();
}

#[test]
fn vectors_that_stay_conform() {
    ring4::conformance::check(&|| Ok(keeping()), &[127, 2, 260]).unwrap();
}

fn ring4(security: Security, queue: fn() -> DeviceQueue) -> Ring4 {
    let settings = Settings { security, hash: TagHash::Keyed, masked: true };
    Ring4::new(settings, [2, 3, 4, 5].map(PartyId), move || Ok(queue())).with_chunk(512)
}

/// Programs give what they mean, at their price, with a device that takes over what it can.
#[test]
#[ignore = "ten seconds of programs that other devices run as well: make soak"]
fn programs_run_on_a_device_that_keeps_vectors() {
    conformance::check_served(4, &|_| Ok(Box::new(ring4(Security::Malicious, keeping)))).unwrap();
}

/// And say the same.
#[test]
fn programs_on_a_device_that_keeps_vectors_say_the_same() {
    let noised = conformance::case(2, "joint among 2");
    for security in [Security::SemiHonest, Security::Malicious] {
        let wire = |queue: fn() -> DeviceQueue| {
            let half = |s: &mut _| conformance::half(&|_| Ok(Box::new(ring4(security, queue))), &noised, s);
            Cluster::new(6, 9).wire(half)
        };
        assert_eq!(wire(keeping), wire(DeviceQueue::default), "{security:?}");
    }
}
