//! Arithmetic over vectors of shares: conversion between numbers and bits, comparison, truncation, quotients,
//! roots. An operation of a party stands beside its price.

pub(crate) mod adder;
pub(crate) mod arithmetic;
pub(crate) mod array;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod divide;
pub(crate) mod on_device;
pub(crate) mod planes;
pub(crate) mod root;
pub(crate) mod sides;
pub(crate) mod spare;
pub(crate) mod truncate;
