//! Values from the command line and from input files to the words of a circuit, and parties to words.

use base::{Error, PartyId};
use circuits::Wired;
use circuits::files::{NetlistFormat, values};
use std::io::BufReader;
use std::path::Path;

/// Gives the inputs to the parties that the flags say.
///
/// # Errors
/// When the flags do not fit the circuit.
pub fn deal(wired: Wired, format: NetlistFormat, parties: Option<u8>, given: &[u8]) -> Result<Wired, Error> {
    let words = wired.inputs.len();
    if !given.is_empty() {
        if given.len() != words {
            let text =
                format!("--party-of-input names {} parties; the circuit has {words} inputs", given.len());
            return Err(Error::input(text));
        }
        let highest = given.iter().copied().max().unwrap_or(1);
        let parties = parties.unwrap_or(highest.max(wired.parties as u8));
        if highest > parties {
            return Err(Error::input(format!("--party-of-input names party {highest}; there are {parties}")));
        }
        return wired.deal(parties.into(), &|i| PartyId(given[i] - 1));
    }
    match (parties.map(usize::from), format) {
        (Some(parties), NetlistFormat::Bristol) => wired.deal(parties, &|i| PartyId((i % parties) as u8)),
        (Some(parties), NetlistFormat::Gmw) if parties != wired.parties => Err(Error::input(format!(
            "this file is for {} parties, not {parties}; --party-of-input gives its inputs to others",
            wired.parties
        ))),
        _ => Ok(wired),
    }
}

/// The value of every input word, least significant bit first.
///
/// # Errors
/// When a value is missing, one too many, or does not fit its word.
pub fn values(wired: &Wired, given: &[String]) -> Result<Vec<Vec<bool>>, Error> {
    let mut all: Vec<Option<Vec<bool>>> = vec![None; wired.inputs.len()];
    for text in given {
        let (party, text) = split(text, wired.parties)?;
        let wanted: Vec<usize> =
            (0..all.len()).filter(|i| party.is_none_or(|p| wired.inputs[*i].owner == p)).collect();
        let widths: Vec<u32> = wanted.iter().map(|i| wired.inputs[*i].width).collect();
        let whose = party.map_or_else(String::new, |p| format!(" of party {}", p.0 + 1));
        for (i, value) in wanted.into_iter().zip(read(text, &widths, &whose)?) {
            if all[i].replace(value).is_some() {
                return Err(Error::input(format!("--inputs gives input {i} twice")));
            }
        }
    }
    let value = |(i, value): (usize, Option<Vec<bool>>)| {
        value.ok_or_else(|| {
            let word = wired.inputs[i];
            let (width, party) = (word.width, word.owner.0 + 1);
            Error::input(format!(
                "input {i} ({width} bits, party {party}) has no value; give it with --inputs"
            ))
        })
    };
    all.into_iter().enumerate().map(value).collect()
}

/// The values of the words of one party, in order, from its input file. A party that enters nothing needs
/// none.
///
/// # Errors
/// When there is no file for words that the party enters, or it does not hold exactly their values.
pub fn own(wired: &Wired, me: PartyId, file: Option<&Path>) -> Result<Vec<Vec<bool>>, Error> {
    let widths: Vec<u32> = wired.inputs.iter().filter(|w| w.owner == me).map(|w| w.width).collect();
    match file {
        Some(path) => from_file(path, &widths),
        None if widths.is_empty() => Ok(Vec::new()),
        None => Err(Error::input(format!(
            "party {} enters {} items; name its input file with --input, or as `i FILE` in the configuration",
            me.0 + 1,
            widths.len()
        ))),
    }
}

fn from_file(path: &Path, widths: &[u32]) -> Result<Vec<Vec<bool>>, Error> {
    let shown = path.display().to_string();
    let failed = |e: std::io::Error| Error::reading(format!("cannot read {shown}"), &e);
    values::read(BufReader::new(std::fs::File::open(path).map_err(failed)?), &shown, widths)
}

/// Takes `P:` off.
fn split(text: &str, parties: usize) -> Result<(Option<PartyId>, &str), Error> {
    let Some((party, rest)) = text.split_once(':').filter(|(party, _)| !party.starts_with('@')) else {
        return Ok((None, text));
    };
    match party.parse::<usize>() {
        Ok(p) if (1..=parties).contains(&p) => Ok((Some(PartyId(p as u8 - 1)), rest)),
        _ => Err(Error::input(format!("--inputs {party}: is not one of the parties 1 to {parties}"))),
    }
}

fn read(text: &str, widths: &[u32], whose: &str) -> Result<Vec<Vec<bool>>, Error> {
    if let Some(path) = text.strip_prefix('@') {
        return from_file(Path::new(path), widths);
    }
    let fields: Vec<&str> = text.split(',').filter(|f| !f.is_empty()).collect();
    if fields.len() != widths.len() {
        let (given, wanted) = (fields.len(), widths.len());
        return Err(Error::input(format!("--inputs has {given} values; the inputs{whose} are {wanted}")));
    }
    let value = |(i, (field, width)): (usize, (&&str, &u32))| {
        values::parse(field, *width).map_err(|why| Error::input(format!("--inputs, value {i}{whose}: {why}")))
    };
    fields.iter().zip(widths).enumerate().map(value).collect()
}
