//! Counts bytes sent and waits for an answer, like the ledger of a session: a protocol's price follows its
//! schedule.

/// One party's side of a conversation with one peer.
#[derive(Default)]
pub(crate) struct LinkMeter {
    pub sent: u64,
    pub turns: u64,
    /// Something was sent since the last wait.
    pub spoke: bool,
}

impl LinkMeter {
    /// A message of ours; an empty one is none.
    pub fn send(&mut self, bytes: u64) {
        self.sent += bytes;
        self.spoke |= bytes > 0;
    }

    /// A message of the peer; an empty one is none.
    pub fn recv(&mut self, bytes: u64) {
        if bytes > 0 {
            self.turns += u64::from(std::mem::take(&mut self.spoke));
        }
    }
}
