//! A program for memory programming, by the Rust interface: it adds a cipher's stream to a table in place,
//! round by round, in pieces whose order depends on nothing but the size, and writes the result to standard
//! output.
//!
//! Alone: `cargo run --release -p osprey --example oblivious -- 64 > /dev/null`. In a quarter of its memory:
//! `osprey run --memory 16M -- target/release/examples/oblivious 64 > /dev/null`.

use kernels::{Aes128, Block};
use osprey::{Memory, Oblivious, touch_read, touch_write, transfer};
use std::io;

/// Blocks that are worked on at once.
const PIECE: usize = 4096;
const ROUNDS: u64 = 3;

fn main() -> Result<(), String> {
    let usage = "usage: oblivious MIB";
    let mib: usize = std::env::args().nth(1).ok_or(usage)?.parse().map_err(|_| usage)?;
    // Says early why this machine cannot do what the launcher asked for.
    osprey::init()?;
    // What never decides an address or a branch lives in the region.
    let mut table = Oblivious.zeroed::<Block>(mib << 16);
    osprey::mark("start");
    for round in 0..ROUNDS {
        for (number, piece) in table.chunks_mut(PIECE).enumerate() {
            mask(piece, round << 40 | (number * PIECE) as u64);
            // A piece further: the pager learns where the program is without waiting for it to touch
            // something.
            osprey::tick();
        }
    }
    osprey::mark("stop");
    transfer::write(&mut io::stdout().lock(), &table).map_err(|e| format!("standard output: {e}"))
}

/// The work, and its stub: the speculative pass leaves the cryptography out and states what it would touch.
fn mask(piece: &mut [Block], counter: u64) {
    if osprey::speculating() {
        touch_read(piece);
        touch_write(piece);
    } else {
        Aes128::new(Block::ZERO).ctr_xor(counter, piece);
    }
}
