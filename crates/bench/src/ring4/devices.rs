//! Devices by name, and the clock cycles of those that are simulated.

use super::args::DeviceName;
use crate::four::SEATS;
use accel::{Cpu, Device, DeviceCommand, DeviceQueue, SeatKeys};
use accel_cuda::Cuda;
use accel_rtl::Rtl;
use base::Error;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The clock that the paper reports and that no simulation proves.
const ASSUMED_MHZ: f64 = 275.0;

/// Cycles of every simulated device behind a queue, by stage.
#[derive(Clone, Default)]
pub struct Cycles(Vec<Arc<[AtomicU64; 2]>>);

impl Cycles {
    /// Of both stages so far, the slowest device's: they work at the same time. Nothing where nothing is
    /// simulated.
    pub fn slowest(&self) -> Option<[u64; 2]> {
        let of = |stage: usize| self.0.iter().map(|cycles| cycles[stage].load(Relaxed)).max();
        Some([of(0)?, of(1)?])
    }
}

/// Bytes of a card's memory for each of the computations that four seats have there at once, in so many
/// ranges, with so many devices each: what one wants, or less where that is all there is; no limit where all
/// of it fits. Refused, before four processes are, where it is less than one needs.
pub fn card_bytes(
    name: DeviceName,
    (devices, ranges): (usize, usize),
    [least, wanted]: [usize; 2],
) -> Result<usize, Error> {
    if name != DeviceName::Cuda {
        return Ok(usize::MAX);
    }
    let (gpus, seats) = (accel_cuda::devices()?.len(), SEATS.len() * devices);
    let (at_once, mut each) = (seats.div_ceil(gpus) * ranges, usize::MAX);
    for gpu in 0..gpus.min(seats) {
        let [free, _] = Cuda::new(gpu)?.memory()?;
        let here = free / at_once;
        if here < least {
            let mib = |bytes: usize| bytes.div_ceil(1 << 20);
            return Err(Error::input(format!(
                "{} MiB of the memory of cuda:{gpu} are free, and this needs {} MiB there: {at_once} \
                 computations at once of {} MiB each; take a shorter --vector or fewer --shards, end what \
                 else computes there, or use --device cpu",
                free >> 20,
                mib(at_once * least),
                mib(least)
            )));
        }
        if here < wanted {
            each = each.min(here);
        }
    }
    Ok(each)
}

/// A queue in front of so many devices of a seat, which may take so many bytes of a card's memory, and their
/// cycles.
pub fn open(
    name: DeviceName,
    n: usize,
    seat: usize,
    card_bytes: usize,
) -> Result<(DeviceQueue, Cycles), Error> {
    let mut cycles = Cycles::default();
    let mut devices: Vec<Box<dyn Device>> = Vec::new();
    for index in 0..n {
        devices.push(match name {
            DeviceName::Cpu => Box::new(Cpu::default()),
            // Each seat has GPUs of its own; where there are too few, they share.
            DeviceName::Cuda => {
                let gpu = (seat * n + index) % accel_cuda::devices()?.len();
                Box::new(Cuda::within(gpu, card_bytes, usize::MAX)?)
            }
            DeviceName::Rtl => {
                let counted = Arc::new([const { AtomicU64::new(0) }; 2]);
                cycles.0.push(counted.clone());
                Box::new(Counted { device: Rtl::start()?, cycles: counted })
            }
        });
    }
    let queue = DeviceQueue::new(devices);
    Ok((if name == DeviceName::Cuda { queue.with_cpu() } else { queue }, cycles))
}

/// A simulated device that others see the cycles of.
struct Counted {
    device: Rtl,
    cycles: Arc<[AtomicU64; 2]>,
}

impl Device for Counted {
    fn name(&self) -> &'static str {
        self.device.name()
    }

    fn configure(&mut self, keys: Arc<SeatKeys>) -> Result<(), Error> {
        self.device.configure(keys)
    }

    fn run(&mut self, command: &mut DeviceCommand<'_>) -> Result<(), Error> {
        let before = self.device.cycles();
        self.device.run(command)?;
        let stage = usize::from(matches!(command, DeviceCommand::Fold(_)));
        self.cycles[stage].fetch_add(self.device.cycles().wrapping_sub(before), Relaxed);
        Ok(())
    }
}

/// What a simulation says of the hardware: cycles, and rates at a clock that is assumed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Hardware {
    /// Of one party: stage 1, what must be sent, and stage 2, what arrived, one after the other.
    pub cycles_per_product: f64,
    pub stage_1_cycles_per_product: f64,
    pub stage_2_cycles_per_product: f64,
    pub assumed_mhz: f64,
    /// Elements that one party sends, where its devices do both stages one after the other.
    pub gbit_per_s: f64,
    pub products_per_s: f64,
    /// While they do stage 1.
    pub stage_1_gbit_per_s: f64,
}

impl Hardware {
    /// From the cycles of both stages of so many products, for each of which one party sends so many bits.
    pub fn new(cycles: [u64; 2], products: f64, bits: f64) -> Self {
        let [one, two] = cycles.map(|cycles| cycles as f64 / products);
        let per_second = |cycles: f64| ASSUMED_MHZ * 1e6 / cycles;
        Self {
            cycles_per_product: one + two,
            stage_1_cycles_per_product: one,
            stage_2_cycles_per_product: two,
            assumed_mhz: ASSUMED_MHZ,
            gbit_per_s: per_second(one + two) * bits * 1e-9,
            products_per_s: per_second(one + two),
            stage_1_gbit_per_s: per_second(one) * bits * 1e-9,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_become_rates_at_the_assumed_clock() {
        // One product of 128 bits per cycle and stage; a party sends an element and a half of it.
        let hardware = Hardware::new([1000, 1000], 1000.0, 192.0);
        assert_eq!((hardware.cycles_per_product, hardware.products_per_s), (2.0, 137.5e6));
        assert!(
            (hardware.gbit_per_s - 26.4).abs() < 1e-9 && (hardware.stage_1_gbit_per_s - 52.8).abs() < 1e-9
        );
        assert!(Cycles::default().slowest().is_none());
    }
}
