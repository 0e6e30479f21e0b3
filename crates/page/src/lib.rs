//! What people read, of any command: numbers as text, markup that cannot be malformed, figures.

pub mod form;
pub mod markup;
pub mod numbers;
pub mod picture;
pub mod plot;
pub mod svg;

/// The look of all pages: reports, which hold it, and those of the service, which link to it.
pub const SHEET: &str = include_str!("sheet.css");
