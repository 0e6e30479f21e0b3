//! What a coordinator says to its gate, after the hello, and the byte that answers each word.
//!
//! | bytes | |
//! |---|---|
//! | 0 | 1: connections that ask for the name go to the address; 2: nobody does any more |
//! | 1, 2 | bytes of the name, and of the address (0 in the second word) |
//! | 3.. | both |

/// Bytes of a word before its name.
pub(crate) const HEAD_BYTES: usize = 3;

/// What every name ends with.
const DOMAIN: &str = ".tacit.invalid";
/// Bytes of the longest name.
const NAME_BYTES: usize = 64;

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GateWord {
    Route { name: String, to: String },
    Close { name: String },
}

/// The answer to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum GateAnswer {
    Done = 1,
    /// Another key has registered the name.
    Taken = 2,
    Full = 3,
    Malformed = 4,
}

impl GateAnswer {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::Done, Self::Taken, Self::Full, Self::Malformed].into_iter().find(|one| *one as u8 == byte)
    }
}

impl GateWord {
    /// Bytes after the head.
    pub(crate) fn body_bytes(head: &[u8; HEAD_BYTES]) -> usize {
        usize::from(head[1]) + usize::from(head[2])
    }

    /// The bytes of the wire. Names and addresses have at most 255 bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, name, to) = match self {
            Self::Route { name, to } => (1, name.as_str(), to.as_str()),
            Self::Close { name } => (2, name.as_str(), ""),
        };
        let mut bytes = vec![kind, name.len() as u8, to.len() as u8];
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(to.as_bytes());
        bytes
    }

    /// What a head and its body say; nothing where a name is none of ours or an address none.
    pub(crate) fn decode(head: &[u8; HEAD_BYTES], body: &[u8]) -> Option<Self> {
        let [kind, name_bytes, _] = *head;
        if body.len() != Self::body_bytes(head) {
            return None;
        }
        let (name, to) = body.split_at(usize::from(name_bytes));
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name))?.to_owned();
        let to = std::str::from_utf8(to).ok()?;
        match kind {
            1 if is_address(to) => Some(Self::Route { name, to: to.to_owned() }),
            2 if to.is_empty() => Some(Self::Close { name }),
            _ => None,
        }
    }
}

fn is_name(name: &str) -> bool {
    let known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    name.len() <= NAME_BYTES && name.len() > DOMAIN.len() && name.ends_with(DOMAIN) && name.bytes().all(known)
}

/// Whether a text is a host and a port other than 0.
pub(crate) fn is_address(text: &str) -> bool {
    let parts = text.rsplit_once(':');
    text.len() <= 255
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && parts.is_some_and(|(host, port)| {
            !host.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) && {
                port.parse::<u16>().is_ok_and(|port| port != 0)
            }
        })
}

/// A word of each sort, for the fuzzer to begin with.
pub(crate) fn example() -> [Vec<u8>; 2] {
    let name = "l17-2.0123456789abcdef.tacit.invalid".to_owned();
    [
        GateWord::Route { name: name.clone(), to: "10.0.0.7:40123".to_owned() }.encode(),
        GateWord::Close { name }.encode(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Option<GateWord> {
        GateWord::decode(&bytes[..HEAD_BYTES].try_into().unwrap(), &bytes[HEAD_BYTES..])
    }

    #[test]
    fn words_survive_the_wire() {
        for bytes in example() {
            assert_eq!(decode(&bytes).unwrap().encode(), bytes);
        }
        let route = |name: &str, to: &str| {
            decode(&GateWord::Route { name: name.to_owned(), to: to.to_owned() }.encode()).is_some()
        };
        assert!(route("m.00ff.tacit.invalid", "[2001:db8::1]:7000"));
        for (name, to) in [
            ("m.00ff.example.org", "10.0.0.7:1"),
            (".tacit.invalid", "10.0.0.7:1"),
            ("m.A.tacit.invalid", "10.0.0.7:1"),
            ("m.00ff.tacit.invalid", "10.0.0.7"),
            ("m.00ff.tacit.invalid", "10.0.0.7:0"),
            ("m.00ff.tacit.invalid", ":80"),
            ("m.00ff.tacit.invalid", "a b:80"),
            ("m.00ff.tacit.invalid", "10.0.0.7:+80"),
        ] {
            assert!(!route(name, to), "{name} {to}");
        }
        assert!(!route(&format!("{}.tacit.invalid", "a".repeat(60)), "10.0.0.7:1"));
    }

    #[test]
    fn the_wire_is_pinned() {
        let digest = blake3::hash(&example().concat()).to_hex()[..16].to_owned();
        crate::cluster::pinned(&[("wire, words to a gate", digest, "8c5bd871edc1bf9e")]);
    }
}
