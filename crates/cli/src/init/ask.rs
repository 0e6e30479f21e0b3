//! What a file does not say is asked: on a terminal, or not at all.

use base::Error;
use std::io::{BufRead, IsTerminal, Write};
use terminal::output;

/// How questions are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// By whoever sits at the terminal, or by lines of standard input.
    Asked,
    /// By what is proposed.
    Proposed,
    /// Not at all: every answer is a flag.
    Flags,
}

impl Answering {
    /// By flags, and by whether there is a terminal.
    pub fn of(yes: bool, stdin: bool) -> Self {
        let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        match (yes, stdin || terminal) {
            (true, _) => Self::Proposed,
            (false, true) => Self::Asked,
            (false, false) => Self::Flags,
        }
    }

    /// One of several answers; `flag` is what gives it without a question.
    ///
    /// # Errors
    /// When nobody can be asked, or standard input ends.
    pub fn choose(
        self,
        flag: &str,
        question: &str,
        answers: &[String],
        proposal: Option<usize>,
    ) -> Result<usize, Error> {
        match (self, proposal) {
            (Self::Proposed, Some(at)) => return Ok(at),
            (Self::Asked, _) => {}
            _ => {
                let proposal = proposal.map(|at| answers[at].as_str());
                return Err(self.unanswered(flag, question, answers, proposal));
            }
        }
        let mut text = format!("\n{question}\n");
        for (at, answer) in answers.iter().enumerate() {
            text += &format!("  {}  {answer}\n", at + 1);
        }
        loop {
            let line = line(&text, proposal.map(|at| (at + 1).to_string()).as_deref(), flag)?;
            let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let named = answers.iter().position(|answer| *answer == line);
            match number.filter(|at| *at < answers.len()).or(named) {
                Some(at) => return Ok(at),
                None => text = format!("A number from 1 to {}, please.\n", answers.len()),
            }
        }
    }

    /// [`Answering::choose`] of what has a usual answer, which holds where nobody is asked.
    ///
    /// # Errors
    /// When standard input ends.
    pub fn offer(self, flag: &str, question: &str, answers: &[String], usual: usize) -> Result<usize, Error> {
        match self {
            Self::Asked => self.choose(flag, question, answers, Some(usual)),
            Self::Proposed | Self::Flags => Ok(usual),
        }
    }

    /// An answer in words that `read` understands.
    ///
    /// # Errors
    /// As [`Answering::choose`], or where a proposal is not understood.
    pub fn words<T>(
        self,
        flag: &str,
        question: &str,
        proposal: Option<&str>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        match (self, proposal) {
            (Self::Proposed, Some(text)) => return read(text).map_err(Error::misuse),
            (Self::Asked, _) => {}
            _ => return Err(self.unanswered(flag, question, &[], proposal)),
        }
        let mut text = format!("\n{question}\n");
        loop {
            match read(&line(&text, proposal, flag)?) {
                Ok(answer) => return Ok(answer),
                Err(rule) => text = format!("{rule}\n"),
            }
        }
    }

    fn unanswered(self, flag: &str, question: &str, answers: &[String], proposal: Option<&str>) -> Error {
        let list =
            if answers.is_empty() { String::new() } else { format!(" One of: {}.", answers.join("; ")) };
        let yes = proposal.map_or(String::new(), |text| format!(", or --yes for what is proposed ({text})"));
        let why = match self {
            Self::Proposed => "Nothing is proposed that --yes could take",
            _ => "There is no terminal to ask",
        };
        Error::input(format!("{question}{list} {why}: say it by {flag}{yes}"))
    }

    /// Why an answer is what it is, where no flag gave it.
    pub fn why(self) -> &'static str {
        match self {
            Self::Asked => "as it was answered",
            Self::Proposed | Self::Flags => "as it is proposed, and nobody said otherwise",
        }
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// When the answer is no, or standard input ends.
    pub fn confirm(self, question: &str) -> Result<(), Error> {
        if self != Self::Asked {
            return Ok(());
        }
        let answer = line(&format!("\n{question}\n"), Some("yes"), "--yes")?;
        match answer.to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Error::input("nothing was written; say what should be otherwise by flags (--help)")),
        }
    }
}

/// Reads a line from whoever is asked; an empty one is the proposal.
fn line(text: &str, proposal: Option<&str>, flag: &str) -> Result<String, Error> {
    let shown = proposal.map_or(String::new(), |proposal| format!("[{proposal}] "));
    let mut err = std::io::stderr().lock();
    let told = write!(err, "{}{shown}> ", output::lines(text)).and_then(|()| err.flush());
    told.map_err(|e| Error::io("writing to standard error", &e))?;
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map_err(|e| Error::io("reading an answer from standard input", &e))? {
        0 => Err(Error::input(format!("no answer: standard input ended; say it by {flag}"))),
        _ => match (answer.trim(), proposal) {
            ("", Some(proposal)) => Ok(proposal.to_owned()),
            (answer, _) => Ok(answer.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_answers_names_its_flag() {
        let answers = ["a".to_owned(), "b".to_owned()];
        let told = |how: Answering, proposal| {
            how.choose("--arm COLUMN", "Which?", &answers, proposal).map_err(|e| e.to_string())
        };
        assert_eq!(told(Answering::Proposed, Some(1)), Ok(1));
        let error = told(Answering::Proposed, None).unwrap_err();
        assert!(
            error.contains("Which? One of: a; b. Nothing is proposed that --yes could take: say it by --arm"),
            "{error}"
        );
        let error = told(Answering::Flags, Some(0)).unwrap_err();
        assert!(error.contains("--arm COLUMN, or --yes for what is proposed (a)"), "{error}");
    }
}
