//! Studies as programs: what a study file means, as a [`program::Program`] with a layout that says what goes
//! in and what comes out.

pub mod lift;
pub mod market;
