//! No branch, no address and no time of oblivious transfer depends on choices, messages, keys or Delta.

use crate::base_ot::{self, BaseChosen, BasePairs, PairContext};
use crate::ferret::tree;
use crate::{BASE_OTS, flavours, softspoken};
use base::{PartyId, Roster, Seed};
use kernels::{Block, InstructionSet, TweakedHash};
use timing::{TimedKernel, done};

const START: Block = Block(99);
/// OTs of an extension; not a multiple of what is worked on at once.
const OTS: usize = 300;
const CHOICE_BLOCKS: usize = OTS.div_ceil(128);
const K: u32 = 4;
/// Levels of a tree of silent OT.
const DEPTH: usize = 8;
/// Blocks of a message of chosen OT.
const WORDS: usize = 2;

fn context() -> PairContext {
    PairContext::new(&Roster::new(["a", "b"]), PartyId(0), PartyId(1))
}

fn blocks(secret: &[u8]) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut blocks);
    blocks
}

fn words(blocks: &[Block]) -> Vec<u64> {
    blocks.iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]).collect()
}

/// Public bytes, as a peer may send them.
fn received(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 151 % 251) as u8).collect()
}

fn seed(secret: &[u8]) -> Seed {
    Seed::from_bytes(secret.try_into().expect("32 bytes"))
}

fn base_ots() -> Vec<TimedKernel<'static>> {
    let mut rng = Seed::from_bytes([3; 32]).into_rng();
    let (_, message) = base_ot::BaseReceiver::choose(context(), Block(5), &mut rng);
    let (_, reply) = base_ot::send(&context(), &message, &mut rng).expect("an honest message");
    let receiver = move |secret: &mut [u8]| {
        let (choices, seed_bytes) = secret.split_at(Block::BYTES);
        let mut rng = seed(seed_bytes).into_rng();
        let (receiver, message) = base_ot::BaseReceiver::choose(context(), blocks(choices)[0], &mut rng);
        done(&message[..]);
        done(&receiver.finish(&reply).expect("an honest reply").keys[..]);
    };
    let sender = move |secret: &mut [u8]| {
        let mut rng = seed(secret).into_rng();
        let (pairs, reply) = base_ot::send(&context(), &message, &mut rng).expect("an honest message");
        done(&reply[..]);
        done(&pairs.pairs[..]);
    };
    vec![
        TimedKernel::new("base OT, receiver: choices, scalars", Block::BYTES + 32, receiver),
        TimedKernel::new("base OT, sender: scalar", 32, sender),
    ]
}

fn extensions() -> Vec<TimedKernel<'static>> {
    let receiver = |secret: &mut [u8]| {
        let x = blocks(secret);
        let (pairs, choices) = x.split_at(2 * BASE_OTS);
        let pairs = pairs.as_chunks::<2>().0.to_vec();
        let base = BasePairs { pairs, start: START };
        let (mut receiver, mut message) =
            softspoken::SoftSpokenReceiver::new(base, K).expect("k is in range");
        let mut t = Vec::new();
        receiver.prepare(&words(choices), OTS, &mut t, &mut message).expect("choices for all");
        done(&message[..]);
        let [mut pads] = receiver.pads().expand([&t], WORDS);
        let masked = [0, 1].map(|_| blocks(&received(OTS * WORDS * Block::BYTES)));
        flavours::open(&mut pads, &masked, &words(choices), WORDS);
        done(&pads[..]);
    };
    let sender = |secret: &mut [u8]| {
        let x = blocks(secret);
        let base = BaseChosen { choices: x[0], keys: x[1..].to_vec(), start: START };
        let message = received(softspoken::setup_bytes(K));
        let mut sender =
            softspoken::SoftSpokenSender::new(&base, K, &message).expect("a message of its length");
        let mut q = Vec::new();
        sender.absorb(OTS, &received(softspoken::extension_bytes(K, OTS)), &mut q).expect("its length, too");
        sender.pads().both(&q, x[0], WORDS).iter().for_each(|pads| done(&pads[..]));
    };
    let choices = 2 * BASE_OTS + CHOICE_BLOCKS;
    vec![
        TimedKernel::new("SoftSpoken and chosen OT, receiver: choices", choices * Block::BYTES, receiver),
        TimedKernel::new("SoftSpoken and random OT, sender: Delta", (1 + BASE_OTS) * Block::BYTES, sender),
    ]
}

fn silent() -> Vec<TimedKernel<'static>> {
    let sender = |secret: &mut [u8]| {
        let x = blocks(secret);
        let (mut leaves, mut message) = (vec![Block::ZERO; 1 << DEPTH], Vec::new());
        tree::grow(&TweakedHash::new(START), 1, x[0], x[1], &x[2..], &mut leaves, &mut message);
        done(&leaves[..]);
        done(&message[..]);
    };
    let receiver = |secret: &mut [u8]| {
        let mut leaves = vec![Block::ZERO; 1 << DEPTH];
        let message = received(DEPTH * Block::BYTES);
        let (point, missing) =
            tree::graft(&TweakedHash::new(START), 1, &blocks(secret), &message, &mut leaves);
        tree::add_at(&mut leaves, point, missing);
        done(&leaves[..]);
    };
    vec![
        TimedKernel::new("silent OT, sender: Delta, seeds", (2 + DEPTH) * Block::BYTES, sender),
        TimedKernel::new("silent OT, receiver: the point", DEPTH * Block::BYTES, receiver),
    ]
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    base_ots().into_iter().chain(extensions()).chain(silent()).collect()
}

timing::tests!(cases);
