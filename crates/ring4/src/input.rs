//! Inputs of one of the four: v = x_{p+1} + x_{p+2} + x_{p+3} and x_p = 0, the first two from streams, the last one sent.

use crate::check::Comparison;
use crate::{Party, Ring, Seat, Shares};
use accel::Use;
use base::Error;
use kernels::{Block, ring_sub};
use net::Session;

impl Party {
    /// Shares values that the party at seat `owner` enters; `value` is looked at there only. One round, two elements; under
    /// malicious security its two receivers compare what they got before they use it.
    ///
    /// # Errors
    /// Those of the channels, and receivers that got different values.
    pub fn input(
        &mut self,
        session: &mut Session,
        owner: Seat,
        (ring, len): (Ring, usize),
        value: &[Block],
    ) -> Result<Shares, Error> {
        let (me, round) = (self.seat, self.next_round());
        let mut shares = Shares::zero(ring, len);
        if me == owner && value.len() != shares.blocks() {
            return Err(Error::misuse("an input has as many blocks as its elements take"));
        }
        for summand in [owner.after(1), owner.after(2)] {
            if let Some(part) = me.part_of(summand) {
                self.fill(part, (round, Use::Share, [owner; 2]), 0, shares.parts_mut()[part]);
            }
        }
        // Held by the owner, who sends it, and by the two others that are not its number.
        let sent = owner.after(3);
        let receivers = [owner.after(1), owner.after(2)];
        if me == owner {
            let [x1, x2, x3] = shares.parts_mut();
            x3.copy_from_slice(value);
            ring_sub(ring, x3, x1);
            ring_sub(ring, x3, x2);
            for to in receivers.map(|seat| self.at(seat)) {
                session.link(to).send(Block::bytes_of(x3))?;
                session.link(to).flush()?;
            }
        } else if me != sent {
            let part = me.part_of(sent).expect("another seat's number");
            session.link(self.at(owner)).recv(Block::bytes_of_mut(shares.parts_mut()[part]))?;
            if self.settings.checked() {
                let comparison =
                    Comparison { round, unknown_to: owner, among: receivers.to_vec(), owner: self.at(owner) };
                self.compare(session, comparison, shares.parts()[part])?;
            }
        }
        Ok(shares)
    }
}
