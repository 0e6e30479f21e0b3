//! A value that does not print, compare or stay in memory.

use std::fmt;
use zeroize::Zeroize;

/// Wraps a secret: `Debug` shows only the type, there is no equality, and the memory is wiped on drop.
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    /// Takes a value into custody.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, for arithmetic only. Call sites are what a reviewer reads.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret<{}>", std::any::type_name::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = Secret::new([42u8; 16]);
        assert!(!format!("{secret:?}").contains("42"));
        assert_eq!(secret.expose()[0], 42);
    }
}
