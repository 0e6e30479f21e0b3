//! One object of the log as bytes, little-endian.
//!
//! ```text
//!  0  kind      1   1 lead, 2 records, 3 snapshot
//!  1  number    8   from 1 on, that of its name
//!  9  epoch     8   how often somebody has begun to lead, from 1 on
//! 17  snapshot  8   number of the last snapshot up to here, itself included; 0: none
//! 25  previous 32   BLAKE3 of the sealed bytes of the object before; zeros in the first one
//! 57  lead:      started 8 (seconds of 1970), pid 4, host: length 1, then as many bytes
//! 57  otherwise: count 4, then each record: tag 1, length 4, payload
//! ```

use super::{LogLead, LogRecord};

/// Bytes before what depends on the kind.
const HEAD: usize = 57;

/// What an object of the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogObject {
    pub(crate) number: u64,
    pub(crate) epoch: u64,
    pub(crate) snapshot: u64,
    pub(crate) previous: [u8; 32],
    pub(crate) body: LogBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogBody {
    Lead(LogLead),
    Records(Vec<LogRecord>),
    Snapshot(Vec<LogRecord>),
}

impl LogObject {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (kind, records) = match &self.body {
            LogBody::Lead(_) => (1, &[][..]),
            LogBody::Records(records) => (2, &records[..]),
            LogBody::Snapshot(records) => (3, &records[..]),
        };
        let mut bytes = vec![kind];
        for number in [self.number, self.epoch, self.snapshot] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.previous);
        if let LogBody::Lead(lead) = &self.body {
            bytes.extend_from_slice(&lead.started.to_le_bytes());
            bytes.extend_from_slice(&lead.pid.to_le_bytes());
            // Names of hosts are of at most 64 bytes.
            let host = &lead.host.as_bytes()[..lead.host.len().min(usize::from(u8::MAX))];
            bytes.push(host.len() as u8);
            bytes.extend_from_slice(host);
            return bytes;
        }
        bytes.extend_from_slice(&(records.len() as u32).to_le_bytes());
        for record in records {
            bytes.push(record.tag);
            bytes.extend_from_slice(&(record.payload.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&record.payload);
        }
        bytes
    }

    /// None where these are no bytes of [`Self::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, mut rest) = bytes.split_at_checked(HEAD)?;
        let number = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().expect("a head has 57 bytes"));
        let previous = *head[25..].first_chunk().expect("a head has 57 bytes");
        let body = match head[0] {
            1 => {
                let started = u64::from_le_bytes(*take(&mut rest, 8)?.first_chunk()?);
                let pid = u32::from_le_bytes(*take(&mut rest, 4)?.first_chunk()?);
                let len = usize::from(*take(&mut rest, 1)?.first()?);
                let host = std::str::from_utf8(take(&mut rest, len)?).ok()?.to_owned();
                LogBody::Lead(LogLead { epoch: number(9), host, pid, started })
            }
            2 => LogBody::Records(records(&mut rest)?),
            3 => LogBody::Snapshot(records(&mut rest)?),
            _ => return None,
        };
        let whole = Self { number: number(1), epoch: number(9), snapshot: number(17), previous, body };
        rest.is_empty().then_some(whole)
    }
}

fn records(rest: &mut &[u8]) -> Option<Vec<LogRecord>> {
    let count = u32::from_le_bytes(*take(rest, 4)?.first_chunk()?);
    let mut records = Vec::new();
    for _ in 0..count {
        let tag = *take(rest, 1)?.first()?;
        let len = u32::from_le_bytes(*take(rest, 4)?.first_chunk()?);
        records.push(LogRecord { tag, payload: take(rest, len as usize)?.to_vec() });
    }
    Some(records)
}

fn take<'b>(rest: &mut &'b [u8], len: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(body: LogBody) -> LogObject {
        LogObject { number: 7, epoch: 3, snapshot: 2, previous: [9; 32], body }
    }

    #[test]
    fn bytes_of_objects_are_read_back_and_no_others() {
        let record = |tag, len| LogRecord { tag, payload: vec![tag; len] };
        let lead = LogLead { epoch: 3, host: "a".into(), pid: 5, started: 6 };
        for (body, len) in [
            (LogBody::Lead(lead), 57 + 8 + 4 + 1 + 1),
            (LogBody::Records(vec![]), 57 + 4),
            (LogBody::Snapshot(vec![record(1, 0), record(2, 300)]), 57 + 4 + 5 + 5 + 300),
        ] {
            let object = whole(body);
            let bytes = object.to_bytes();
            assert_eq!(bytes.len(), len);
            assert_eq!(LogObject::from_bytes(&bytes).as_ref(), Some(&object));
            for short in 0..bytes.len() {
                assert_eq!(LogObject::from_bytes(&bytes[..short]), None, "{short}");
            }
            assert_eq!(LogObject::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }
        let mut many = whole(LogBody::Records(vec![])).to_bytes();
        many[57..61].fill(0xff);
        assert_eq!(LogObject::from_bytes(&many), None, "a count is no reason to take memory");
    }
}
