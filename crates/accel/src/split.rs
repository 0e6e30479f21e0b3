//! A command cut by blocks into commands for several devices, and digests of the parts put together.

use crate::{DeviceCommand, FoldStage, LinearStage, MultiplyStage, SeatKeys, Vouch};
use kernels::Block;
use std::ops::Range;
use zeroize::Zeroizing;

/// A command on some blocks of a longer one.
pub struct CommandPart<'a> {
    /// Its factors are still those of the whole command, when these have several terms.
    command: DeviceCommand<'a>,
    here: Range<usize>,
    /// Blocks of the whole.
    of: usize,
}

/// Blocks of a command's result.
pub fn blocks(command: &DeviceCommand<'_>) -> usize {
    match command {
        DeviceCommand::Add(l) | DeviceCommand::Sub(l) => l.z[0].len(),
        DeviceCommand::Multiply(m) => m.z[0].len(),
        DeviceCommand::Fold(f) => f.a.len(),
    }
}

/// Terms of a command: what a block of it costs.
pub fn terms(command: &DeviceCommand<'_>) -> usize {
    if let DeviceCommand::Multiply(m) = command { m.terms } else { 1 }
}

/// Cuts a checked command into as many parts as there are digests, which begin at zero. The parts of a
/// command that computes none leave theirs alone.
pub fn cut<'s>(command: &'s mut DeviceCommand<'_>, digests: &'s mut [[Block; 2]]) -> Vec<CommandPart<'s>> {
    let (of, parts) = (blocks(command), digests.len());
    let ranges = (0..parts).map(move |k| of * k / parts..of * (k + 1) / parts);
    let commands: Vec<DeviceCommand<'s>> = match command {
        DeviceCommand::Add(l) => cut_linear(l, ranges.clone()).map(DeviceCommand::Add).collect(),
        DeviceCommand::Sub(l) => cut_linear(l, ranges.clone()).map(DeviceCommand::Sub).collect(),
        DeviceCommand::Multiply(m) => {
            cut_multiply(m, ranges.clone(), digests).map(DeviceCommand::Multiply).collect()
        }
        DeviceCommand::Fold(f) => cut_fold(f, ranges.clone(), digests).map(DeviceCommand::Fold).collect(),
    };
    commands.into_iter().zip(ranges).map(|(command, here)| CommandPart { command, here, of }).collect()
}

/// The first `blocks` of what is left of a vector; nothing of one that is not there.
fn next<'s>(rest: &mut &'s mut [Block], blocks: usize) -> &'s mut [Block] {
    rest.split_off_mut(..blocks.min(rest.len())).unwrap_or_default()
}

fn cut_linear<'s>(
    l: &'s mut LinearStage<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
) -> impl Iterator<Item = LinearStage<'s>> {
    let (ring, x, y, mut z) = (l.ring, l.x, l.y, l.z.each_mut().map(|part| &mut **part));
    ranges.map(move |here| LinearStage {
        ring,
        x: x.map(|part| &part[here.clone()]),
        y: y.map(|part| &part[here.clone()]),
        z: z.each_mut().map(|part| next(part, here.len())),
    })
}

fn cut_multiply<'s>(
    m: &'s mut MultiplyStage<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
    digests: &'s mut [[Block; 2]],
) -> impl Iterator<Item = MultiplyStage<'s>> {
    let (ring, round, first, half, terms, masked) = (m.ring, m.round, m.first, m.half, m.terms, m.masked);
    let (x, y, mut z) = (m.x, m.y, m.z.each_mut().map(|part| &mut **part));
    let (mut a, mut c) = (&mut *m.a, &mut *m.c);
    let vouch = &mut m.vouch;
    let digested = matches!(vouch, Vouch::Digest(_));
    let mut exposed = if let Vouch::Expose { a, c } = vouch { Some((&mut **a, &mut **c)) } else { None };
    ranges.zip(digests).map(move |(here, digest)| {
        let n = here.len();
        let factors = |part: &'s [Block]| if terms == 1 { &part[here.clone()] } else { part };
        MultiplyStage {
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
    f: &'s mut FoldStage<'_>,
    ranges: impl Iterator<Item = Range<usize>>,
    digests: &'s mut [[Block; 2]],
) -> impl Iterator<Item = FoldStage<'s>> {
    let (ring, round, first, half, masked) = (f.ring, f.round, f.first, f.half, f.masked);
    let (a, c, digested, mut z) = (f.a, f.c, f.digests.is_some(), f.z.each_mut().map(|part| &mut **part));
    ranges.zip(digests).map(move |(here, digest)| FoldStage {
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

impl CommandPart<'_> {
    /// Hands the command to a device. The terms of factors lie apart by the length of the whole; for the time
    /// of the call those of this part are copied together.
    pub fn run<T>(self, device: impl FnOnce(&mut DeviceCommand<'_>) -> T) -> T {
        let Self { command, here, of } = self;
        let gathered;
        let mut command = command;
        if let DeviceCommand::Multiply(m) = &mut command
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
pub fn put_together(keys: &SeatKeys, command: &mut DeviceCommand<'_>, parts: &[[Block; 2]]) {
    let of = blocks(command);
    let length = |k: usize| (of * (k + 1) / parts.len() - of * k / parts.len()) as u64;
    let (digests, tags, there) = match command {
        DeviceCommand::Multiply(MultiplyStage { vouch: Vouch::Digest(digests), half, .. }) => {
            (&mut **digests, [2, 1], !half.sends(keys.seat()))
        }
        DeviceCommand::Fold(FoldStage { digests: Some(digests), half, .. }) => {
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
