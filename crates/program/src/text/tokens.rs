//! Words of a line.

use base::is_deceptive;

/// Where in a line a mistake is, in bytes, and what it is.
pub(super) type TextFault = (usize, String);

pub(super) struct Token {
    pub(super) text: String,
    pub(super) column: usize,
    pub(super) quoted: bool,
}

/// Splits a line into words and quoted strings; `#` starts a comment.
pub(super) fn tokens(line: &str) -> Result<Vec<Token>, TextFault> {
    let mut out = Vec::new();
    let mut rest = line.char_indices().peekable();
    while let Some((column, c)) = rest.next() {
        match c {
            '#' => break,
            c if c.is_whitespace() => {}
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next() {
                        Some((_, '"')) => break,
                        Some((at, '\\')) => match rest.next() {
                            Some((_, c @ ('"' | '\\'))) => text.push(c),
                            _ => return Err((at, "only \\\" and \\\\ are escapes".into())),
                        },
                        Some((at, c)) if is_deceptive(c) => {
                            return Err((at, "a label has no control or invisible characters".into()));
                        }
                        Some((_, c)) => text.push(c),
                        None => return Err((column, "the string is not closed".into())),
                    }
                }
                out.push(Token { text, column, quoted: true });
            }
            c => {
                let mut text = String::from(c);
                while let Some((_, c)) = rest.next_if(|(_, c)| !c.is_whitespace() && *c != '#' && *c != '"') {
                    text.push(c);
                }
                out.push(Token { text, column, quoted: false });
            }
        }
    }
    Ok(out)
}

pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) next: usize,
    pub(super) end: usize,
}

impl Tokens {
    pub(super) fn peek(&self) -> Option<&str> {
        self.tokens.get(self.next).map(|t| t.text.as_str())
    }

    /// Whether a string in quotes comes next.
    pub(super) fn is_string(&self) -> bool {
        self.tokens.get(self.next).is_some_and(|token| token.quoted)
    }

    /// The word that comes so many after the next one.
    pub(super) fn peek_after(&self, words: usize) -> Option<&str> {
        self.tokens.get(self.next + words).map(|t| t.text.as_str())
    }

    /// Where the next word begins, or the line ends.
    pub(super) fn place(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |token| token.column)
    }

    pub(super) fn take(&mut self, what: &str) -> Result<(String, usize), TextFault> {
        match self.tokens.get(self.next) {
            Some(token) if !token.quoted => {
                self.next += 1;
                Ok((token.text.clone(), token.column))
            }
            Some(token) => Err((token.column, format!("expected {what}, found a string"))),
            None => Err((self.end, format!("expected {what}"))),
        }
    }

    pub(super) fn parsed<T>(
        &mut self,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, TextFault> {
        let (text, column) = self.take(what)?;
        parse(&text).ok_or_else(|| (column, format!("expected {what}, found {text:?}")))
    }

    pub(super) fn string(&mut self, what: &str) -> Result<String, TextFault> {
        match self.tokens.get(self.next) {
            Some(token) if token.quoted => {
                self.next += 1;
                Ok(token.text.clone())
            }
            other => {
                let column = other.map_or(self.end, |t| t.column);
                Err((column, format!("expected {what} in double quotes")))
            }
        }
    }

    pub(super) fn end(&self) -> Result<(), TextFault> {
        match self.tokens.get(self.next) {
            None => Ok(()),
            Some(token) => {
                Err((token.column, format!("unexpected {:?} after the end of the line", token.text)))
            }
        }
    }
}
