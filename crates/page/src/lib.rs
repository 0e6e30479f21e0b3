//! What people read, of any command: numbers as text, markup that cannot be malformed, figures.

pub mod markup;
pub mod numbers;
pub mod picture;
pub mod plot;
pub mod svg;
