//! A party C that follows Private-ID up to the arrival of `e_c`, with identifiers that it chose by where they
//! lie among `u_c`.
#![allow(dead_code, reason = "each test file uses its part")]

use base::{Error, Seed};
use matching::group::{Exponent, GroupElement, hash, mul_batch};
use matching::pid::CHUNK;
use net::Session;

/// The first key of C, known before the run.
fn first_key() -> Exponent {
    Exponent::random(&mut Seed::from_bytes([8; 32]).into_rng())
}

/// `u_c` of these identifiers.
pub fn u_c(x: &[String]) -> Vec<GroupElement> {
    let mut u: Vec<GroupElement> = x.iter().map(|id| hash(&[id.as_bytes(), &[0]].concat())).collect();
    mul_batch(&mut u, &first_key(), 1).unwrap();
    u
}

/// What C says of the streams before it asks for `e_c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// All that was said.
    All,
    /// The first partition alone.
    First,
    /// What it heard.
    Echo,
}

/// Elements of each partition.
fn dealt(elements: &[GroupElement], bits: u32) -> Vec<u64> {
    let part = |e: &GroupElement| u32::from(e[0]).checked_shr(8 - bits).unwrap_or(0);
    (0..1u32 << bits).map(|at| elements.iter().filter(|e| part(e) == at).count() as u64).collect()
}

/// Plays C with `2^bits` partitions: `e_c` as it arrived, and `e_p`.
pub fn curious(
    session: &mut Session,
    x: &[String],
    rows_p: u64,
    bits: u32,
    claim: Claim,
) -> Result<(Vec<GroupElement>, Vec<GroupElement>), Error> {
    let mut u_c = u_c(x);
    u_c.sort_unstable();
    let (own, peer) = (dealt(&u_c, bits), session.me().other());
    let mut link = session.link(peer);
    let mut hello = [0; 72];
    hello[..8].copy_from_slice(&(x.len() as u64).to_le_bytes());
    hello[64..].copy_from_slice(&(1u64 << bits).to_le_bytes());
    link.send(&hello)?;
    link.recv(&mut hello)?;
    assert_eq!(hello[..8], rows_p.to_le_bytes());
    link.send(&[0])?;
    link.recv(&mut [0])?;
    let told: Vec<u8> = own[1..].iter().zip(&own).flat_map(|(_, size)| size.to_le_bytes()).collect();
    let mut heard = vec![[0; 8]; own.len() - 1];
    if bits > 0 {
        link.send(&told)?;
        link.recv(heard.as_flattened_mut())?;
    }
    let mut theirs: Vec<u64> = heard.into_iter().map(u64::from_le_bytes).collect();
    theirs.push(rows_p - theirs.iter().sum::<u64>());
    let (mut e_p, mut streams, mut at) = (Vec::new(), Vec::new(), 0);
    for (own, theirs) in own.iter().zip(theirs) {
        streams.push(stream(session, &u_c[at..][..*own as usize], theirs, &mut e_p)?);
        at += *own as usize;
    }
    let mut link = session.link(peer);
    let mut root = blake3::Hasher::new_derive_key("tacit pid streams 1");
    root.update(&(x.len() as u64).to_le_bytes()).update(&rows_p.to_le_bytes());
    root.update(&(1u32 << bits).to_le_bytes());
    let said = if claim == Claim::First { &streams[..1] } else { &streams[..] };
    said.as_flattened().iter().for_each(|digest| assert!(root.update(digest).count() > 0));
    let seal = blake3::derive_key("tacit pid seal of streams as told by C 1", root.finalize().as_bytes());
    let mut heard = [0; 32];
    match claim {
        Claim::Echo => {
            link.recv(&mut heard)?;
            link.send(&heard)?;
        }
        Claim::All | Claim::First => {
            link.send(&seal)?;
            link.recv(&mut heard)?;
        }
    }
    let mut e_c = vec![[0; 32]; x.len()];
    let mut rest = e_c.as_mut_slice();
    while !rest.is_empty() {
        let count = link.recv_count("elements of a slice", rest.len() as u64)? as usize;
        let (slice, later) = rest.split_at_mut(count);
        if count > 0 {
            link.recv(slice.as_flattened_mut())?;
        }
        link.send(&0u64.to_le_bytes())?;
        rest = later;
    }
    Ok((e_c, e_p))
}

/// One partition of both, as the protocol has it: digests of what was said of C's rows and of P's.
fn stream(
    session: &mut Session,
    u_c: &[GroupElement],
    rows_p: u64,
    e_p: &mut Vec<GroupElement>,
) -> Result<[[u8; 32]; 2], Error> {
    let (c1, c2) = (first_key(), Exponent::random(&mut Seed::from_bytes([9; 32]).into_rng()));
    let (chunk, peer) = (CHUNK as usize, session.me().other());
    let (rows_c, rows_p) = (u_c.len(), rows_p as usize);
    let rounds = rows_c.max(rows_p).div_ceil(chunk);
    let mut link = session.link(peer);
    let mut said = [blake3::Hasher::new(), blake3::Hasher::new()];
    let mut say = |side: usize, u: &[GroupElement], v: &[GroupElement]| {
        said[side].update(blake3::hash(&[u.as_flattened(), v.as_flattened()].concat()).as_bytes());
    };
    for i in 0..if rounds == 0 { 0 } else { rounds + 2 } {
        if let Some(u) = u_c.chunks(chunk).nth(i) {
            link.send(u.as_flattened())?;
        }
        if (1..=rows_p.div_ceil(chunk)).contains(&i) {
            let mut u = vec![[0; 32]; chunk.min(rows_p - (i - 1) * chunk)];
            link.recv(u.as_flattened_mut())?;
            let mut e = u.clone();
            mul_batch(&mut e, &c1, 1).unwrap();
            let mut v = e.clone();
            e_p.extend(e);
            mul_batch(&mut v, &c2, 1).unwrap();
            link.send(v.as_flattened())?;
            say(1, &u, &v);
        }
        if let Some(u) = i.checked_sub(2).and_then(|i| u_c.chunks(chunk).nth(i)) {
            let mut v = vec![[0; 32]; u.len()];
            link.recv(v.as_flattened_mut())?;
            say(0, u, &v);
        }
    }
    Ok(said.map(|hasher| *hasher.finalize().as_bytes()))
}
