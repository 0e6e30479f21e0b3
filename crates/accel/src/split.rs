//! A command cut by blocks into commands for several devices, and digests of the parts put together.

use crate::{Command, Fold, Keys, Linear, Multiply, Vouch};
use kernels::Block;
use std::ops::Range;
use zeroize::Zeroizing;

/// A command on some blocks of a longer one.
pub struct Part<'a> {
    /// Its factors are still those of the whole command, when these have several terms.
    command: Command<'a>,
    here: Range<usize>,
    /// Blocks of the whole.
    of: usize,
}

/// Blocks of a command's result.
pub fn blocks(command: &Command<'_>) -> usize {
    match command {
        Command::Add(l) | Command::Sub(l) => l.z[0].len(),
        Command::Multiply(m) => m.z[0].len(),
        Command::Fold(f) => f.a.len(),
    }
}

/// Terms of a command: what a block of it costs.
pub fn terms(command: &Command<'_>) -> usize {
    if let Command::Multiply(m) = command { m.terms } else { 1 }
}

/// Cuts a checked command into as many parts as there are digests, which begin at zero. The parts of a
/// command that computes none leave theirs alone.
pub fn cut<'s>(command: &'s mut Command<'_>, digests: &'s mut [[Block; 2]]) -> Vec<Part<'s>> {
    let (of, parts) = (blocks(command), digests.len());
    let ranges = (0..parts).map(move |k| of * k / parts..of * (k + 1) / parts);
    let commands: Vec<Command<'s>> = match command {
        Command::Add(l) => cut_linear(l, ranges.clone()).map(Command::Add).collect(),
        Command::Sub(l) => cut_linear(l, ranges.clone()).map(Command::Sub).collect(),
        Command::Multiply(m) => cut_multiply(m, ranges.clone(), digests).map(Command::Multiply).collect(),
        Command::Fold(f) => cut_fold(f, ranges.clone(), digests).map(Command::Fold).collect(),
    };
    commands.into_iter().zip(ranges).map(|(command, here)| Part { command, here, of }).collect()
}

/// The first `blocks` of what is left of a vector; nothing of one that is not there.
fn next<'s>(rest: &mut &'s mut [Block], blocks: usize) -> &'s mut [Block] {
    rest.split_off_mut(..blocks.min(rest.len())).unwrap_or_default()
}

fn cut_linear<'s>(
    l: &'s mut Linear<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
) -> impl Iterator<Item = Linear<'s>> {
    let (ring, x, y, mut z) = (l.ring, l.x, l.y, l.z.each_mut().map(|part| &mut **part));
    ranges.map(move |here| Linear {
        ring,
        x: x.map(|part| &part[here.clone()]),
        y: y.map(|part| &part[here.clone()]),
        z: z.each_mut().map(|part| next(part, here.len())),
    })
}

fn cut_multiply<'s>(
    m: &'s mut Multiply<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
    digests: &'s mut [[Block; 2]],
) -> impl Iterator<Item = Multiply<'s>> {
    let (ring, round, first, half, terms, masked) = (m.ring, m.round, m.first, m.half, m.terms, m.masked);
    let (x, y, mut z) = (m.x, m.y, m.z.each_mut().map(|part| &mut **part));
    let (mut a, mut c) = (&mut *m.a, &mut *m.c);
    let vouch = &mut m.vouch;
    let digested = matches!(vouch, Vouch::Digest(_));
    let mut exposed = if let Vouch::Expose { a, c } = vouch { Some((&mut **a, &mut **c)) } else { None };
    ranges.zip(digests).map(move |(here, digest)| {
        let n = here.len();
        let factors = |part: &'s [Block]| if terms == 1 { &part[here.clone()] } else { part };
        Multiply {
            ring,
            round,
            first: first + here.start as u64,
            half,
            terms,
            x: x.map(factors),
            y: y.map(factors),
            z: z.each_mut().map(|part| next(part, n)),
            a: next(&mut a, n),
            c: next(&mut c, n),
            masked,
            vouch: match &mut exposed {
                Some((a, c)) => Vouch::Expose { a: next(a, n), c: next(c, n) },
                None if digested => Vouch::Digest(digest),
                None => Vouch::Nothing,
            },
        }
    })
}

fn cut_fold<'s>(
    f: &'s mut Fold<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
    digests: &'s mut [[Block; 2]],
) -> impl Iterator<Item = Fold<'s>> {
    let (ring, round, first, half, masked) = (f.ring, f.round, f.first, f.half, f.masked);
    let (a, c, digested, mut z) = (f.a, f.c, f.digests.is_some(), f.z.each_mut().map(|part| &mut **part));
    ranges.zip(digests).map(move |(here, digest)| Fold {
        ring,
        round,
        first: first + here.start as u64,
        half,
        z: z.each_mut().map(|part| next(part, here.len())),
        a: &a[here.clone()],
        c: c.get(here).unwrap_or_default(),
        masked,
        digests: digested.then_some(digest),
    })
}

impl Part<'_> {
    /// Hands the command to a device. The terms of factors lie apart by the length of the whole; for the time
    /// of the call those of this part are copied together.
    pub fn run<T>(self, device: impl FnOnce(&mut Command<'_>) -> T) -> T {
        let Self { command, here, of } = self;
        let gathered;
        let mut command = command;
        if let Command::Multiply(m) = &mut command
            && m.terms != 1
        {
            let runs = |part: &[Block]| {
                let run = (0..m.terms).flat_map(|term| &part[term * of..][here.clone()]).copied();
                Zeroizing::new(run.collect::<Vec<_>>())
            };
            gathered = [m.x.map(runs), m.y.map(runs)];
            [m.x, m.y] = gathered.each_ref().map(|parts| parts.each_ref().map(|part| part.as_slice()));
        }
        device(&mut command)
    }
}

/// Adds the digests of the parts to those of the whole command, in order: what came before is advanced by the
/// length of every part.
pub fn put_together(keys: &Keys, command: &mut Command<'_>, parts: &[[Block; 2]]) {
    let of = blocks(command);
    let length = |k: usize| (of * (k + 1) / parts.len() - of * k / parts.len()) as u64;
    let (digests, tags, there) = match command {
        Command::Multiply(Multiply { vouch: Vouch::Digest(digests), half, .. }) => {
            (&mut **digests, [2, 1], !half.sends(keys.seat()))
        }
        Command::Fold(Fold { digests: Some(digests), half, .. }) => {
            (&mut **digests, [0, 0], half.receives(keys.seat()))
        }
        _ => return,
    };
    for (which, (digest, tag)) in digests.iter_mut().zip(tags).enumerate() {
        // Digest 1 is that of messages C, which there are in one half only.
        for (k, part) in parts.iter().enumerate().filter(|_| which == 0 || there) {
            *digest = keys.tag(tag).advance(*digest, length(k)) ^ part[which];
        }
    }
}
