//! What computes at this party where it is one of the four servers of a study ([`ServerDevice`]): opened, and
//! found out before anybody is met.

use accel::DeviceQueue;
use accel_cuda::Cuda;
use accel_rtl::Rtl;
use base::{Error, Fault};
use study::Study;
use study::device::ServerDevice;

/// The queue in front of a device. Short commands are the CPU's where the device is a GPU.
///
/// # Errors
/// What is missing, and what to do.
pub(crate) fn open(device: ServerDevice) -> Result<DeviceQueue, Error> {
    Ok(match device {
        ServerDevice::Cpu => DeviceQueue::default(),
        ServerDevice::Cuda(card) => DeviceQueue::new(vec![Box::new(Cuda::new(card.into())?)]).with_cpu(),
        ServerDevice::Rtl => DeviceQueue::new(vec![Box::new(Rtl::start()?)]),
    })
}

/// What this device is, in words, where this party computes the study at all: nothing for owners without a
/// seat.
///
/// # Errors
/// A device of a party that computes nothing, and one that this machine does not have.
pub(crate) fn found(
    device: Option<ServerDevice>,
    name: &str,
    study: &Study,
) -> Result<Option<String>, Error> {
    let Some(said) = device else {
        return Ok(study.server(name).map(|_| ServerDevice::default().to_string()));
    };
    if study.server(name).is_none() {
        return Err(Error::input(format!(
            "{name} is none of four servers that compute this study, so nothing of its rows is computed on \
             a device here: remove `device`"
        )));
    }
    words(said).map(Some)
}

/// A device in words, once it is found.
///
/// # Errors
/// What is missing, and what to do.
pub(crate) fn words(device: ServerDevice) -> Result<String, Error> {
    let found = match device {
        ServerDevice::Cpu => Ok(device.to_string()),
        ServerDevice::Cuda(card) => accel_cuda::devices().and_then(|gpus| {
            let gpu = gpus.get(usize::from(card)).ok_or_else(|| {
                let there = gpus.len();
                Error::input(format!("there is no GPU {card}; this machine has {there}, numbered from 0"))
            })?;
            // Kernels are compiled once for a process: what is missing for that shows before anybody is met.
            Cuda::new(usize::from(card))?;
            Ok(format!("{device} ({})", gpu.name))
        }),
        ServerDevice::Rtl => Rtl::start().map(|_| format!("{device} (simulated)")),
    };
    found.map_err(|error| match error.kind() {
        Fault::Input(why) => Error::input(format!(
            "device = \"{device}\": {why}; or remove `device`, and the CPU computes: results and messages \
             are the same"
        )),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = include_str!("../../../examples/lift-ring4.toml");

    #[test]
    fn who_computes_has_a_device_and_nobody_else() {
        let study = Study::parse("study.toml", SERVED).unwrap();
        let server = study.servers.as_ref().unwrap().members[0].name.clone();
        assert_eq!(found(None, &server, &study).unwrap().as_deref(), Some("cpu"));
        assert_eq!(found(Some(ServerDevice::Cpu), &server, &study).unwrap().as_deref(), Some("cpu"));
        assert_eq!(found(None, "nobody", &study).unwrap(), None);
        let error = found(Some(ServerDevice::Cpu), "nobody", &study).unwrap_err().to_string();
        assert!(error.contains("none of four servers") && error.contains("remove `device`"), "{error}");
    }

    #[test]
    fn a_device_that_is_not_there_says_what_to_do() {
        let Err(error) = words(ServerDevice::Cuda(255)) else { panic!("256 GPUs") };
        let error = error.to_string();
        assert!(error.contains("device = \"cuda:255\": ") && error.contains("remove `device`"), "{error}");
    }
}
