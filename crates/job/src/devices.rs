//! What computes at this party where it is one of the four servers of a study ([`ServerDevice`]): opened, and
//! found out before anybody is met.

use crate::engines::StudyEngine;
use accel::DeviceQueue;
use accel_cuda::{Cuda, memory};
use accel_rtl::Rtl;
use base::{Error, Fault};
use study::Study;
use study::device::ServerDevice;

/// A device that was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundDevice {
    device: ServerDevice,
    /// What it is, in words.
    pub words: String,
    /// What is taken of its memory, in words, where it has some of its own.
    pub memory: Option<String>,
    /// Bytes of that for each range of rows, and how many of these are wanted for vectors.
    each: usize,
    vectors: usize,
}

impl FoundDevice {
    fn without_memory(device: ServerDevice, words: String) -> Self {
        Self { device, words, memory: None, each: 0, vectors: 0 }
    }

    /// The queue in front of the device, for one range of rows. Short commands are the CPU's where the device
    /// is a GPU, and what its memory does not hold.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub fn open(&self) -> Result<DeviceQueue, Error> {
        Ok(match self.device {
            ServerDevice::Cpu => DeviceQueue::default(),
            ServerDevice::Cuda(card) => {
                DeviceQueue::new(vec![Box::new(Cuda::within(card.into(), self.each, self.vectors)?)])
                    .with_cpu()
            }
            ServerDevice::Rtl => DeviceQueue::new(vec![Box::new(Rtl::start()?)]),
        })
    }

    /// What a plan says of it.
    pub fn assumptions(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let memory = self.memory.clone().map(|memory| ("device memory".to_owned(), memory));
        std::iter::once(("device".to_owned(), self.words.clone())).chain(memory)
    }
}

/// The device of this party, where it computes the study at all: nothing for owners without a seat.
///
/// # Errors
/// A device of a party that computes nothing, one that this machine does not have, and one without room.
pub(crate) fn found(
    device: Option<ServerDevice>,
    name: &str,
    study: &Study,
    engine: &StudyEngine,
) -> Result<Option<FoundDevice>, Error> {
    let Some(said) = device else {
        let cpu = || FoundDevice::without_memory(ServerDevice::Cpu, ServerDevice::default().to_string());
        return Ok(study.server(name).map(|_| cpu()));
    };
    if study.server(name).is_none() {
        return Err(Error::input(format!(
            "{name} is none of four servers that compute this study, so nothing of its rows is computed on \
             a device here: remove `device`"
        )));
    }
    find(said, engine).map(Some)
}

/// A device, once it is found and has room for what `engine` computes there.
///
/// # Errors
/// What is missing, and what to do.
pub(crate) fn find(device: ServerDevice, engine: &StudyEngine) -> Result<FoundDevice, Error> {
    let found = match device {
        ServerDevice::Cpu => Ok(FoundDevice::without_memory(device, device.to_string())),
        ServerDevice::Cuda(card) => accel_cuda::devices().and_then(|gpus| {
            let gpu = gpus.get(usize::from(card)).ok_or_else(|| {
                let there = gpus.len();
                Error::input(format!("there is no GPU {card}; this machine has {there}, numbered from 0"))
            })?;
            // Kernels are compiled once for a process: what is missing for that shows before anybody is met.
            let [free, _] = Cuda::new(usize::from(card))?.memory()?;
            let (each, memory_words) = divide(engine.on_card(), free)?;
            let words = format!("{device} ({})", gpu.name);
            let vectors = engine.on_card().1 - memory::buffer_bytes();
            Ok(FoundDevice { device, words, memory: Some(memory_words), each, vectors })
        }),
        ServerDevice::Rtl => {
            Rtl::start().map(|_| FoundDevice::without_memory(device, format!("{device} (simulated)")))
        }
    };
    found.map_err(|error| match error.kind() {
        Fault::Input(why) => Error::input(format!(
            "device = \"{device}\": {why}; or remove `device`, and the CPU computes: results and messages \
             are the same"
        )),
        _ => error,
    })
}

/// Bytes for each of so many ranges that want so many, of a card where so many are free, and that in words.
fn divide((ranges, wanted): (usize, usize), free: usize) -> Result<(usize, String), Error> {
    let [least, mib] = [memory::least_bytes(), 1 << 20];
    let each = wanted.min(free / ranges.max(1));
    let at_once = page::numbers::counted(ranges as u64, "range");
    if each < least {
        return Err(Error::input(format!(
            "{} MiB of the card's memory are free, and {at_once} of rows at once need {} MiB there at least: \
             end what else computes there, choose another card, or agree on fewer [compute] shards",
            free / mib,
            (ranges * least).div_ceil(mib)
        )));
    }
    let all = (ranges * each).div_ceil(mib);
    let of = if each < wanted {
        format!(
            "all of it, of {} MiB that would be used: in smaller pieces, the rest by the CPU",
            ranges * wanted / mib
        )
    } else {
        format!("{} MiB are free", free / mib)
    };
    Ok((each, format!("at most {all} MiB for {at_once} of rows at once; {of}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = include_str!("../../../examples/lift-ring4.toml");

    fn engine(study: &Study) -> StudyEngine {
        let built = crate::prepare::build(study, &program::VerifierPolicy::default()).unwrap();
        StudyEngine::of(study, &built.program).unwrap()
    }

    #[test]
    fn who_computes_has_a_device_and_nobody_else() {
        let study = Study::parse("study.toml", SERVED).unwrap();
        let engine = engine(&study);
        let found = |device, name: &str| {
            Ok::<_, Error>(found(device, name, &study, &engine)?.map(|found| found.words))
        };
        let server = study.servers.as_ref().unwrap().members[0].name.clone();
        assert_eq!(found(None, &server).unwrap().as_deref(), Some("cpu"));
        assert_eq!(found(Some(ServerDevice::Cpu), &server).unwrap().as_deref(), Some("cpu"));
        assert_eq!(found(None, "nobody").unwrap(), None);
        let error = found(Some(ServerDevice::Cpu), "nobody").unwrap_err().to_string();
        assert!(error.contains("none of four servers") && error.contains("remove `device`"), "{error}");
    }

    #[test]
    fn a_device_that_is_not_there_says_what_to_do() {
        let study = Study::parse("study.toml", SERVED).unwrap();
        let Err(error) = find(ServerDevice::Cuda(255), &engine(&study)) else { panic!("256 GPUs") };
        let error = error.to_string();
        assert!(error.contains("device = \"cuda:255\": ") && error.contains("remove `device`"), "{error}");
    }

    #[test]
    fn ranges_divide_a_card_or_are_refused() {
        let (least, mib) = (memory::least_bytes(), 1 << 20);
        let wanted = 400 * mib;
        let (each, words) = divide((4, wanted), 80_000 * mib).unwrap();
        assert_eq!(each, wanted);
        assert_eq!(words, "at most 1600 MiB for 4 ranges of rows at once; 80000 MiB are free");
        let (each, words) = divide((4, wanted), 400 * mib).unwrap();
        assert_eq!(each, 100 * mib);
        assert!(
            words.starts_with("at most 400 MiB for 4 ranges") && words.contains("smaller pieces"),
            "{words}"
        );
        let refused = divide((4, wanted), 4 * least - 1).unwrap_err().to_string();
        assert!(refused.contains("4 ranges of rows") && refused.contains("[compute] shards"), "{refused}");
    }
}
