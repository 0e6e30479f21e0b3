//! Signals to the launcher: for the program while it runs, for ourselves before.
//!
//! A terminal signals everybody in its foreground, the program included, so only what another process sent is
//! forwarded.

use crate::link::{self, GuardOrder};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `SIGSEGV`, or `signal 40` for one without a name.
pub fn name(number: u8) -> String {
    signal_hook::low_level::signal_name(number.into())
        .map_or_else(|| format!("signal {number}"), str::to_owned)
}

/// Who gets signals.
#[derive(Clone, Debug, Default)]
pub struct Signals(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    program: Option<UnixStream>,
    interrupted: Option<u8>,
}

impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn catch() -> std::io::Result<Self> {
        let signals = Self::default();
        let mut incoming =
            SignalsInfo::<WithOrigin>::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2])?;
        let state = signals.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for origin in &mut incoming {
                state.lock().got(origin.signal, matches!(origin.cause, Cause::Sent(_)));
            }
        })?;
        Ok(signals)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the program behind this guard gets them, first the one that came while it was started;
    /// `None`: the launcher itself.
    pub fn forward(&self, guard: Option<UnixStream>) {
        self.lock().turn_to(guard);
    }

    /// The signal that ends the launcher: it came while no program ran that could answer it.
    pub fn interrupted(&self) -> Option<u8> {
        self.lock().interrupted
    }
}

impl State {
    fn turn_to(&mut self, guard: Option<UnixStream>) {
        self.program = guard;
        if self.program.is_some()
            && let Some(signal) = self.interrupted.take()
        {
            self.got(signal.into(), true);
        }
    }

    fn got(&mut self, signal: i32, sent: bool) {
        match &self.program {
            // A guard whose program has ended forwards nothing.
            Some(guard) if sent => drop(link::send(guard, &GuardOrder::Signal(signal))),
            Some(_) => {}
            None if signal != SIGUSR1 && signal != SIGUSR2 => self.interrupted = u8::try_from(signal).ok(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        let names = rustix::process::Signal::SYS.as_raw();
        assert_eq!((name(31), name(11), name(40)), ("SIGSYS".into(), "SIGSEGV".into(), "signal 40".into()));
        assert_eq!(
            (names, rustix::process::Signal::SEGV.as_raw()),
            (31, 11),
            "numbers are those of this system"
        );
    }
    use crate::link::GuardEvents;

    #[test]
    fn a_terminals_signal_is_not_given_twice() {
        let (guard, end) = UnixStream::pair().expect("socket pair");
        let mut state = State { program: Some(guard), interrupted: None };
        state.got(SIGINT, false);
        state.got(SIGTERM, true);
        assert!(matches!(GuardEvents::new(end).next(), Some(GuardOrder::Signal(SIGTERM))));
        assert_eq!(state.interrupted, None);
        state.turn_to(None);
        state.got(SIGINT, false);
        assert_eq!(state.interrupted, Some(2));
    }

    #[test]
    fn a_signal_that_comes_while_the_program_starts_is_the_programs() {
        let (guard, end) = UnixStream::pair().expect("socket pair");
        let mut state = State::default();
        state.got(SIGTERM, true);
        state.turn_to(Some(guard));
        assert!(matches!(GuardEvents::new(end).next(), Some(GuardOrder::Signal(SIGTERM))));
        assert_eq!(state.interrupted, None);
    }
}
