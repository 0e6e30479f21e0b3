//! What computes the arithmetic of a server of a study: what a party sets (`device`). It is its own affair:
//! every device sends the same bytes, and nobody else learns which one it was.

use std::fmt;

/// What a party sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerDevice {
    /// The cores of this machine.
    #[default]
    Cpu,
    /// The NVIDIA GPU of this number.
    Cuda(u8),
    /// The accelerator of `rtl/`, in a simulator: slow, to try it.
    Rtl,
}

const CARD: &str = "cuda:";

impl ServerDevice {
    /// `cpu`, `cuda` (the first GPU), `cuda:N`, `rtl`.
    ///
    /// # Errors
    /// The rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "rtl" => Ok(Self::Rtl),
            _ => match text.strip_prefix(CARD).map(|number| (number, number.parse::<u8>())) {
                Some((number, Ok(card))) if card.to_string() == number => Ok(Self::Cuda(card)),
                _ => Err("write \"cpu\", \"cuda\" (the first NVIDIA GPU of this machine), \"cuda:1\" (the \
                          second) or \"rtl\" (the accelerator of rtl/, simulated)"),
            },
        }
    }
}

impl fmt::Display for ServerDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(card) => write!(f, "{CARD}{card}"),
            Self::Rtl => f.write_str("rtl"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for device in [ServerDevice::Cpu, ServerDevice::Cuda(0), ServerDevice::Cuda(255), ServerDevice::Rtl] {
            assert_eq!(ServerDevice::parse(&device.to_string()), Ok(device));
        }
        assert_eq!(ServerDevice::parse("cuda"), Ok(ServerDevice::Cuda(0)));
        for wrong in ["", "gpu", "CPU", "cuda:", "cuda:01", "cuda:+1", "cuda:256", "cuda1", "cpu:0"] {
            assert!(ServerDevice::parse(wrong).unwrap_err().starts_with("write \"cpu\""), "{wrong}");
        }
    }
}
