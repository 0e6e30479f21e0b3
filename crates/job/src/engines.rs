//! Which engine runs a study, and how it is set up.

use crate::study::{Compute, Engine as Choice, Study};
use base::{Error, Kind};
use engine::Engine;
use gmw::Gmw;
use program::{Program, Sharing};
use yao::Yao;

/// The engine of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engines {
    name: Name,
    compute: Compute,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Yao,
    Gmw,
}

impl Engines {
    /// The engine that a study asks for. Where it leaves the choice, `gmw`, which keeps the release section between two
    /// parties in garbled circuits; or `yao` for a program that `gmw` does not run.
    ///
    /// # Errors
    /// When no engine, or not the one asked for, can run the program: in the engine's words and with what to change.
    pub fn of(study: &Study, program: &Program) -> Result<Self, Error> {
        let Compute { engine, shards, .. } = study.compute;
        let with = |name| {
            let engines = Self { name, compute: study.compute };
            engines.make().check(program).map(|()| engines)
        };
        let engines = match engine {
            // The clear engine meets no network: see `Study::refuse_clear`. A plan prices what would run instead.
            Choice::Auto | Choice::Clear => with(Name::Gmw).or_else(|why| with(Name::Yao).map_err(|_| why)),
            Choice::Yao => with(Name::Yao),
            Choice::Gmw => with(Name::Gmw),
        };
        let engines = engines.map_err(|error| match error.kind() {
            Kind::Input(text) => Error::input(format!("study {}, compute.engine: {text}", study.name)),
            _ => error,
        })?;
        if program.sharing() == Sharing::Boolean && shards > 1 {
            return Err(Error::input(format!(
                "study {}: compute.shards is {shards}, and only sums between two parties are dealt to several; use \
                 shards = 1",
                study.name
            )));
        }
        Ok(engines)
    }

    /// A fresh engine.
    #[must_use]
    pub fn make(&self) -> Box<dyn Engine> {
        match self.name {
            Name::Yao => Box::new(Yao::default()),
            Name::Gmw => {
                let gmw = Gmw::new(self.compute.ot.unwrap_or_default());
                Box::new(gmw.with_shape(self.compute.circuit.unwrap_or_default()))
            }
        }
    }
}
