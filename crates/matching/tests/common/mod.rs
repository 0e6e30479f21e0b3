//! Columns of identifiers and two-party runs for the tests of this crate.
#![allow(dead_code, reason = "each test file uses its part")]

use base::Error;
use matching::{FlatIdentifiers, MatchOptions, MatchSpine, Matcher, PayloadLayout, PrivateId};
use net::Traffic;
use net::cluster::Cluster;
use std::collections::BTreeSet;
use std::ops::Range;

/// Identifiers `person N`.
pub fn ids(range: Range<u32>) -> Vec<String> {
    range.map(|i| format!("person {i}")).collect()
}

/// An owned column.
pub struct Column {
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Column {
    pub fn new(ids: &[String]) -> Self {
        let bytes = ids.concat().into_bytes();
        let mut end = 0;
        let add = |id: &String| {
            end += id.len() as u64;
            end
        };
        Self { bytes, ends: ids.iter().map(add).collect() }
    }

    pub fn flat(&self) -> FlatIdentifiers<'_> {
        FlatIdentifiers::new(&self.bytes, &self.ends).unwrap()
    }
}

/// The size of the union, from the definition.
pub fn expected_union(x: &[String], y: &[String]) -> u64 {
    x.iter().chain(y).collect::<BTreeSet<_>>().len() as u64
}

/// Both parties' spines and ledgers.
pub fn both(
    cluster: &Cluster,
    x: &[String],
    y: &[String],
    threads: usize,
) -> [Result<(MatchSpine, Traffic), Error>; 2] {
    let columns = [Column::new(x), Column::new(y)];
    let done = cluster.run(|session| {
        let own = columns[session.me().index()].flat();
        let options = MatchOptions { threads, ..MatchOptions::default() };
        let spine = PrivateId.run(session, &own, None, &options)?.spine()?;
        Ok((spine, session.traffic().clone()))
    });
    done.try_into().expect("two parties")
}

/// Options for payloads of these layouts.
pub fn with_layouts(options: &MatchOptions, layouts: [PayloadLayout; 2]) -> MatchOptions {
    MatchOptions { layouts, ..options.clone() }
}
