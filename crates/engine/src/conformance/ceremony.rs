//! A scripted ceremony: noise given beforehand, every call recorded and checked.

use crate::Ceremony;
use base::Error;
use net::Session;
use program::lower::{ReleasePlan, WordKind};

/// The noise of a case, the same for both viewers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noise {
    /// Bits of every noise word.
    pub width: u8,
    /// `[candidate][mechanism][output]`; at least one candidate.
    pub candidates: Vec<Vec<Vec<i128>>>,
    /// The candidate that is used.
    pub chosen: usize,
    /// Whether the ceremony talks over the session, as real ones do. Turns are then not compared with the price.
    pub talks: bool,
}

impl Noise {
    /// For programs without mechanisms.
    #[must_use]
    pub fn none() -> Self {
        Self { width: 1, candidates: vec![Vec::new()], chosen: 0, talks: false }
    }
}

/// One party's side of the scripted ceremony of one release.
pub struct Script {
    drawn: Vec<Vec<i128>>,
    chosen: usize,
    talks: bool,
    calls: Vec<&'static str>,
    /// Bytes that the ceremony itself sent.
    pub(super) sent: u64,
}

impl Script {
    /// The script of a case for one viewer's plan.
    #[must_use]
    pub fn new(noise: &Noise, plan: &ReleasePlan) -> Self {
        let word = |all: &Vec<Vec<i128>>| {
            let pick = |kind| match kind {
                WordKind::Noise(m, o) => Some(all[m as usize][o as usize]),
                _ => None,
            };
            plan.words.iter().filter_map(|w| pick(w.kind)).collect()
        };
        let drawn = noise.candidates.iter().map(word).collect();
        Self { drawn, chosen: noise.chosen, talks: noise.talks, calls: Vec::new(), sent: 0 }
    }

    /// Whether the engine called what it must, once and in order: at a server that is no party nothing, at the others what
    /// their part in the release asks for.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn finish(&self, party: bool, drawer: bool, viewer: bool) -> Result<(), String> {
        let noisy = self.drawn.iter().any(|d| !d.is_empty());
        let mut calls = self.calls.clone();
        if !noisy {
            // Without noise words there is nothing to draw or to check; the debit in `choose` happens all the same.
            calls.retain(|c| *c == "choose");
        }
        if self.drawn.len() == 1 {
            calls.retain(|c| *c != "check");
        }
        let mut wanted = Vec::new();
        wanted.extend(((drawer || viewer) && noisy).then_some("draw"));
        wanted.extend(party.then_some("choose"));
        wanted.extend((viewer && noisy && self.drawn.len() > 1).then_some("check"));
        if calls == wanted {
            Ok(())
        } else {
            Err(format!("the ceremony was called as {calls:?}, not {wanted:?}"))
        }
    }
}

impl Ceremony for Script {
    fn candidates(&self) -> usize {
        self.drawn.len()
    }

    fn draw(&mut self, _: &mut Session) -> Result<Vec<Vec<i128>>, Error> {
        self.calls.push("draw");
        Ok(self.drawn.clone())
    }

    fn choose(&mut self, session: &mut Session) -> Result<usize, Error> {
        self.calls.push("choose");
        if self.talks && session.roster().len() > 1 {
            let (peer, mut theirs) = (session.me().other(), [0]);
            session.step("choose", |s| s.link(peer).exchange(&[7], &mut theirs))?;
            self.sent += 1;
            if theirs != [7] {
                return Err(Error::misuse("the engine's bytes and the ceremony's got mixed up"));
            }
        }
        Ok(self.chosen)
    }

    fn check(&mut self, opened: &[Vec<i128>], _: &mut Session) -> Result<(), Error> {
        self.calls.push("check");
        let others = self.drawn.iter().enumerate().filter(|(j, _)| *j != self.chosen);
        if others.map(|(_, d)| d).eq(opened) {
            return Ok(());
        }
        Err(Error::misuse("the opened candidates are not what was drawn"))
    }
}
