//! Nothing: this package exists so that cargo fetches another.
