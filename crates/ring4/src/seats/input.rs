//! Inputs of one of the four: v = x_{p+1} + x_{p+2} + x_{p+3} and x_p = 0, the first two from streams, the
//! last one sent: under a mask from the stream of K_{p+3} where seat p + 3 could read the channel, for it
//! knows the others.

use crate::seats::check::Comparison;
use crate::{Seat, SeatParty, SharedVector, VectorRing};
use accel::Use;
use base::Error;
use kernels::{Block, ring_add, ring_sub};
use net::Session;
use zeroize::Zeroizing;

impl SeatParty {
    /// Shares values that the party at seat `owner` enters; `value` is looked at there only. One round, two
    /// elements; under malicious security its two receivers compare what they got before they use it. Whoever
    /// does not enter the values ([`SeatParty::enters`]) may give none.
    ///
    /// # Errors
    /// Those of the channels, and receivers that got different values.
    pub fn input(
        &mut self,
        session: &mut Session,
        owner: Seat,
        (ring, len): (VectorRing, usize),
        value: &[Block],
    ) -> Result<SharedVector, Error> {
        if let Some(stub) = &mut self.stub {
            stub.quote.input(owner, ring, len);
            stub.scratch(2, ring.blocks(len));
            return Ok(SharedVector::zero(ring, len));
        }
        self.hidden(session)?;
        let (me, round) = (self.seat, self.next_round());
        let mut shares = SharedVector::zero(ring, len);
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
            let mut message = Zeroizing::new(x3.to_vec());
            if self.settings.masked {
                let wire = self.wire_of_input(round, owner, message.len());
                ring_add(ring, &mut message, &wire);
            }
            for to in receivers.map(|seat| self.at(seat)) {
                session.link(to).send(Block::bytes_of(&message))?;
                session.link(to).flush()?;
            }
        } else if me != sent {
            let part = me.part_of(sent).expect("another seat's number");
            session.link(self.at(owner)).recv(Block::bytes_of_mut(shares.parts_mut()[part]))?;
            if self.settings.masked {
                let wire = self.wire_of_input(round, owner, shares.blocks());
                ring_sub(ring, shares.parts_mut()[part], &wire);
            }
            if self.settings.checked() {
                let comparison =
                    Comparison { round, unknown_to: sent, among: receivers.to_vec(), owner: self.at(owner) };
                self.compare(session, comparison, shares.parts()[part])?;
            }
        }
        Ok(shares)
    }

    /// What hides an input's summand from the seat whose number it has.
    fn wire_of_input(&self, round: u64, owner: Seat, blocks: usize) -> Zeroizing<Vec<Block>> {
        let part = self.seat.part_of(owner.after(3)).expect("the seat that it is hidden from does not ask");
        let mut wire = Zeroizing::new(vec![Block::ZERO; blocks]);
        self.fill(part, (round, Use::Wire, [owner; 2]), 0, &mut wire);
        wire
    }
}
