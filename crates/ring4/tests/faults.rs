//! One party sends something else, at every step, at each of its messages: whoever gets it stops before it
//! says anything that depends on it, and names the channel.

mod support;

use accel::{Seat, VectorRing};
use base::{ChannelError, Error, Fault, PartyId};
use kernels::Block;
use net::Session;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ring4::{Joint, Member, SeatParty, Security, Settings, TagHash, elements, pack};
use std::time::Duration;
use support::{SEATS, enter, party, random};

const STEPS: [&str; 9] =
    ["enter 0", "enter 1", "product", "dot", "joint", "again", "inner", "confirm", "open"];

/// Every operation once, each at its own step, all depending on each other.
fn work(p: &mut SeatParty, s: &mut Session) -> Result<Vec<Block>, Error> {
    let shape = (VectorRing::Z64, 6);
    let value = random(1, 3);
    let x = s.step("enter 0", |s| enter(p, s, 0, shape, &value))?;
    let y = s.step("enter 1", |s| enter(p, s, 1, shape, &value))?;
    let z = s.step("product", |s| p.multiply(s, &x, &y))?;
    let z = s.step("dot", |s| p.dot(s, &[&x, &z], &[&y, &y]))?;
    let mut z = s.step("joint", |s| {
        let [sender, voucher, receiver] = [3, 1, 2].map(Seat::new);
        let knows = p.seat() == sender || p.seat() == voucher;
        let value: &[Block] = if knows { &value } else { &[] };
        let joint = Joint { sender, voucher, receiver, ring: shape.0, len: shape.1, value };
        let other = Joint { sender: receiver, voucher: Seat::new(0), receiver: voucher, value: &[], ..joint };
        let knows = p.seat() == other.sender || p.seat() == other.voucher;
        let other_value = random(2, 3);
        let value: &[Block] = if knows { &other_value } else { &[] };
        let mut shares = p.joint(s, &[joint, Joint { value, ..other }])?;
        let mut sum = shares.pop().expect("two joint inputs");
        sum.add(&z)?;
        Ok(sum)
    })?;
    z.add(&x)?;
    let z = s.step("again", |s| p.multiply(s, &z, &x))?;
    let z = s.step("inner", |s| p.inner(s, &z, &y))?;
    s.step("confirm", |s| p.confirm(s))?;
    s.step("open", |s| p.open(s, &z))
}

/// What one party did: how it ended, and the bytes it sent by step and peer.
struct Ended {
    result: Result<Vec<Block>, Error>,
    sent: Vec<[u64; 4]>,
}

/// A fault of one party towards one other (everybody: `None`) at a step.
type Planned<'a> = (PartyId, Option<PartyId>, &'a str, InjectedFault);

fn play(settings: Settings, fault: Option<Planned<'_>>) -> Vec<Ended> {
    let cluster = Cluster::new(4, 3).deadline(Duration::from_secs(20));
    let cluster = match fault {
        Some((who, Some(peer), step, fault)) => cluster.fault_towards(who, peer, step, fault),
        Some((who, None, step, fault)) => cluster.fault(who, step, fault),
        None => cluster,
    };
    let ended = cluster.run(|s| {
        let result = party(s, settings).and_then(|mut p| work(&mut p, s));
        let sent = |step: &str| {
            let of = |peer| move |e: &&net::TrafficEntry| e.peer == peer && e.step.starts_with(step);
            SEATS.map(|peer| s.traffic().entries().iter().filter(of(peer)).map(|e| e.sent).sum())
        };
        let sent = STEPS.map(sent).to_vec();
        Ok(Ended { result, sent })
    });
    ended.into_iter().map(|e| e.unwrap_or_else(|error| Ended { result: Err(error), sent: vec![] })).collect()
}

fn malicious() -> [Settings; 3] {
    [(TagHash::Keyed, false), (TagHash::Keyed, true), (TagHash::Blake3, true)]
        .map(|(hash, masked)| Settings { security: Security::Malicious, hash, masked })
}

#[test]
fn a_changed_byte_stops_its_receivers() {
    for settings in malicious() {
        let honest = play(settings, None);
        let wanted = honest[0].result.as_ref().unwrap();
        for (at, step) in STEPS.into_iter().enumerate() {
            let pairs = SEATS.into_iter().flat_map(|who| SEATS.map(|peer| (who, peer)));
            for (who, peer) in pairs {
                if honest[who.index()].sent[at][peer.index()] == 0 {
                    continue;
                }
                let fault = InjectedFault::Corrupt { byte: 0, mask: 0x20 };
                let ended = play(settings, Some((who, Some(peer), step, fault)));
                let label = format!("{settings:?}, {who} to {peer} at {step}");
                let mut victims = 0;
                for (seat, end) in ended.iter().enumerate() {
                    let Err(error) = &end.result else {
                        assert!(
                            end.result.as_ref() == Ok(wanted),
                            "{label}: party {seat} got something else"
                        );
                        continue;
                    };
                    if !matches!(error.kind(), Fault::Deviated(_)) {
                        continue;
                    }
                    victims += 1;
                    assert_ne!(seat, who.index(), "{label}: nobody accuses others of what it did itself");
                    let accused = error.at().peer.clone().unwrap_or_default();
                    assert!(accused.contains(&format!("p{}", who.0)), "{label}: {error} accuses {accused}");
                    assert_eq!(error.at().step, step, "{label}");
                    let later: u64 = end.sent[at + 1..].iter().flatten().sum();
                    assert_eq!(later, 0, "{label}: party {seat} went on");
                }
                assert!(victims > 0, "{label}: nobody noticed");
            }
        }
    }
}

#[test]
fn a_cut_ends_everybody_and_opens_nothing() {
    let settings = malicious()[1];
    for step in ["enter 0", "dot", "inner", "confirm"] {
        for who in [PartyId(0), PartyId(2)] {
            let ended = play(settings, Some((who, None, step, InjectedFault::Cut)));
            for end in ended {
                let error = end.result.expect_err("nothing is opened");
                let cut = Fault::Channel(ChannelError::Cut);
                assert!(*error.kind() == cut || matches!(error.kind(), Fault::Channel(_)), "{error}");
                assert!(error.at().peer.is_some(), "{error}");
            }
        }
    }
}

/// Two owners without a seat, one with: what they enter, and what they get.
#[test]
fn owners_enter_and_get_outputs() {
    let seats = [2, 3, 4, 5].map(PartyId);
    for settings in support::settings() {
        for ring in VectorRing::ALL {
            let len = 300;
            let n = ring.blocks(len);
            let values = [random(1, n), random(2, n), random(3, n)];
            let done = Cluster::new(6, 4).run(|s| {
                let mut m = Member::new(s, seats, settings, accel::DeviceQueue::default())?;
                let me = s.me();
                let mut shares = Vec::new();
                let mut quote = ring4::RoundQuote::new(settings, seats, 6);
                quote.member_setup();
                for (value, owner) in values.iter().zip([0, 1, 4].map(PartyId)) {
                    let value: &[Block] = if me == owner { value } else { &[] };
                    shares.push(m.enter(s, owner, (ring, len), value)?);
                    quote.enter(owner, ring, len);
                }
                let product = match (m.server(), &shares[..]) {
                    (Some(p), [Some(a), Some(b), Some(c)]) => {
                        let mut product = p.multiply(s, a, b)?;
                        product.add(c)?;
                        Some(product)
                    }
                    _ => None,
                };
                quote.multiply(ring, len);
                m.confirm(s)?;
                quote.confirm();
                let mut seen = Vec::new();
                for viewer in [1, 2, 0].map(PartyId) {
                    seen.push(m.reveal(s, product.as_ref(), (ring, len), viewer)?);
                    quote.reveal(ring, len, viewer);
                }
                assert_eq!(
                    s.traffic().sent(""),
                    quote.total().sent[me.index()],
                    "{settings:?} {ring:?} {me}"
                );
                Ok(seen)
            });
            let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
            for (i, viewer) in [1, 2, 0].into_iter().enumerate() {
                for (party, seen) in done.iter().enumerate() {
                    assert_eq!(seen[i].is_some(), party == viewer);
                }
                let seen = done[viewer][i].as_ref().unwrap();
                let [a, b, c] = &values;
                let wanted: Vec<Block> = (0..n).map(|k| ring.add(ring.mul(a[k], b[k]), c[k])).collect();
                assert!(
                    *seen == pack(ring, &elements(ring, len, &wanted)),
                    "nothing but the elements is seen"
                );
            }
        }
    }
}

/// An owner that gives different summands or seeds to different seats, and a seat that gives a viewer
/// something else.
#[test]
fn owners_and_seats_that_deviate_are_noticed() {
    let seats = [1, 2, 3, 4].map(PartyId);
    for (who, step) in [(0, "owners"), (0, "enter"), (1, "reveal"), (4, "reveal")] {
        let settings = malicious()[0];
        let cluster = Cluster::new(5, 4).deadline(Duration::from_secs(20));
        let fault = InjectedFault::Corrupt { byte: 20, mask: 1 };
        let peer = if step == "reveal" { PartyId(0) } else { PartyId(3) };
        let ended = cluster.fault_towards(PartyId(who), peer, step, fault).run(|s| {
            let mut m = Member::new(s, seats, settings, accel::DeviceQueue::default())?;
            let value = random(1, 2);
            let value: &[Block] = if s.me() == PartyId(0) { &value } else { &[] };
            let x = s.step("enter", |s| m.enter(s, PartyId(0), (VectorRing::Z128, 2), value))?;
            s.step("reveal", |s| m.reveal(s, x.as_ref(), (VectorRing::Z128, 2), PartyId(0)))
        });
        let wrong = ended.iter().filter_map(|e| e.as_ref().err());
        let wrong: Vec<_> = wrong.filter(|e| matches!(e.kind(), Fault::Deviated(_))).collect();
        let name = format!("p{who}");
        let accused = |e: &&Error| e.at().peer.as_ref().is_some_and(|p| p.contains(&name));
        assert!(wrong.iter().any(accused), "p{who} at {step}: {wrong:?}");
    }
}

/// A channel that says of itself that others can read it.
struct Open(Box<dyn net::Channel>);

impl net::Channel for Open {
    fn authenticated(&self) -> bool {
        true
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.0.send(bytes)
    }
    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.0.recv(into)
    }
    fn finish(&mut self) -> Result<(), ChannelError> {
        self.0.finish()
    }
    fn private(&self) -> bool {
        false
    }
}

/// Keys are never agreed on where others could listen, and unmasked products never computed.
#[test]
fn channels_that_others_read_are_refused() {
    let settings = malicious();
    let refused =
        |error: &Error| matches!(error.kind(), Fault::Input(text) if text.contains("nobody else reads"));
    for exchanged_before in [true, false] {
        for settings in [settings[0], settings[1]] {
            let done = Cluster::new(4, 2).run(|s| {
                let me = s.me();
                let open = |s: &mut Session| {
                    for peer in SEATS.into_iter().filter(|&peer| peer != me) {
                        s.replace_channel(peer, |old| Box::new(Open(old)));
                    }
                };
                if exchanged_before {
                    open(s);
                }
                let mut p = party(s, settings)?;
                if !exchanged_before {
                    open(s);
                }
                let x = p.random(VectorRing::Z128, 3);
                p.multiply(s, &x, &x).map(|_| ())
            });
            for end in done {
                match end {
                    Err(error) => {
                        assert!(refused(&error) && (exchanged_before || !settings.masked), "{error}")
                    }
                    Ok(()) => assert!(!exchanged_before && settings.masked, "nothing was refused"),
                }
            }
        }
    }
}

/// A party that contributes another part of a key to one holder than to the others.
#[test]
fn keys_that_differ_are_noticed_and_nobody_is_accused_alone() {
    let settings = malicious()[0];
    // After the settings and two commitments come two openings: commitment and opening alike are changed for
    // one peer.
    for byte in [96, 128] {
        let cluster = Cluster::new(4, 5).deadline(Duration::from_secs(20));
        let fault = InjectedFault::Corrupt { byte, mask: 1 };
        let ended =
            cluster.fault_towards(SEATS[1], SEATS[3], "setup", fault).run(|s| party(s, settings).map(|_| ()));
        let error = ended[3].as_ref().expect_err("an opening that does not fit its commitment");
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert_eq!(error.at().peer.as_deref(), Some("p1"));
    }
    // The comparison of one key: either of two may be at fault.
    let cluster = Cluster::new(4, 5).deadline(Duration::from_secs(20));
    let fault = InjectedFault::Corrupt { byte: 160, mask: 1 };
    let ended =
        cluster.fault_towards(SEATS[1], SEATS[3], "setup", fault).run(|s| party(s, settings).map(|_| ()));
    let error = ended[3].as_ref().expect_err("holders differ");
    assert_eq!(error.at().peer.as_deref(), Some("p1 or p2"), "{error}");
}

/// Owners' values and outputs never go where others could listen, masked or not.
#[test]
fn owners_talk_over_private_channels_only() {
    let seats = [1, 2, 3, 4].map(PartyId);
    let settings = malicious()[1];
    for (at_reveal, step) in [(false, "enter"), (true, "reveal")] {
        let done = Cluster::new(5, 4).deadline(Duration::from_secs(20)).run(|s| {
            let mut m = Member::new(s, seats, settings, accel::DeviceQueue::default())?;
            let owner = PartyId(0);
            let peers: Vec<PartyId> = if s.me() == owner { seats.to_vec() } else { vec![owner] };
            let open = |s: &mut Session| {
                peers.iter().for_each(|&peer| s.replace_channel(peer, |old| Box::new(Open(old))));
            };
            if !at_reveal {
                open(s);
            }
            let value = random(1, 2);
            let value: &[Block] = if s.me() == owner { &value } else { &[] };
            let x = s.step("enter", |s| m.enter(s, owner, (VectorRing::Z128, 2), value))?;
            if at_reveal {
                open(s);
            }
            s.step("reveal", |s| m.reveal(s, x.as_ref(), (VectorRing::Z128, 2), owner)).map(|_| ())
        });
        for end in done {
            let error = end.expect_err("refused");
            let refused = matches!(error.kind(), Fault::Input(text) if text.contains("nobody else reads"));
            assert!(
                refused && error.at().step == step || matches!(error.kind(), Fault::Channel(_)),
                "{error}"
            );
        }
    }
}
