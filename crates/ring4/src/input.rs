//! Inputs of one of the four: v = x_{p+1} + x_{p+2} + x_{p+3} and x_p = 0, the first two from streams, the last one sent.

use crate::{Party, Ring, Seat, Shares, TAG_BYTES};
use accel::Use;
use base::Error;
use kernels::{Block, gf_digest, ring_sub};
use net::Session;
use subtle::ConstantTimeEq;

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
                self.compare(session, round, owner, shares.parts()[part])?;
            }
        }
        Ok(shares)
    }

    /// The two receivers of an input tell each other a tag of it, under the key of the owner's number, which they share with
    /// the third and not with the owner.
    fn compare(&self, session: &mut Session, round: u64, owner: Seat, got: &[Block]) -> Result<(), Error> {
        let other = self.at(if self.seat == owner.after(1) { owner.after(2) } else { owner.after(1) });
        let part = self.seat.part_of(owner).expect("another seat's number");
        let key = self.keys.tag(part);
        let mut pad = [Block::ZERO];
        self.fill(part, (round, Use::Pad, [owner; 2]), 0, &mut pad);
        let length = gf_digest(key, Block::ZERO, &[Block(got.len() as u128)]);
        let tag: [u8; TAG_BYTES] = (gf_digest(key, length, got) ^ pad[0]).to_bytes();
        session.link(other).send(&tag)?;
        session.link(other).flush()?;
        let theirs: [u8; TAG_BYTES] = session.link(other).recv_array()?;
        if bool::from(theirs.ct_eq(&tag)) {
            return Ok(());
        }
        Err(session.link(self.at(owner)).blame("it gave different summands of its input, or their comparison is forged"))
    }
}
