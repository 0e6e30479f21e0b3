//! What people read, of any command: numbers as text, lines that fit, markup that cannot be malformed,
//! figures.

pub mod lines;
pub mod markup;
pub mod numbers;
pub mod picture;
pub mod plot;
pub mod svg;
