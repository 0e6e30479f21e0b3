//! Boolean circuits: gates and words ([`Circuit`], [`Wired`]), layers for engines ([`Layers`]), arithmetic as
//! gates ([`gadgets`]), files ([`files`]), what a circuit can do without ([`optimise`]), and circuits that
//! everybody needs ([`standard`]).

mod circuit;
pub mod files;
pub mod gadgets;
pub mod layers;
pub mod optimise;
pub mod standard;
mod wired;

pub use circuit::{Circuit, CircuitBuilder, InputBit, Lit, WireDriver};
pub use layers::Layers;
pub use wired::{InputWord, OutputWord, Viewers, WORD_BITS, Wired};
