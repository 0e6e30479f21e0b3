//! How many connections, or streams of events, there are: of all, and of each who holds them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Who holds how many.
pub struct HeldPlaces {
    all: usize,
    each: usize,
    held: Mutex<HashMap<String, usize>>,
}

/// One of them, until it is dropped.
pub struct PlaceTaken {
    places: Arc<HeldPlaces>,
    of: String,
}

impl HeldPlaces {
    /// At most so many of all, and of each.
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { all, each, held: Mutex::default() })
    }

    /// Takes one for somebody; none where there is none left.
    pub fn take(self: &Arc<Self>, of: String) -> Option<PlaceTaken> {
        let mut held = self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if held.values().sum::<usize>() >= self.all || held.get(&of).is_some_and(|&own| own >= self.each) {
            return None;
        }
        *held.entry(of.clone()).or_default() += 1;
        Some(PlaceTaken { places: self.clone(), of })
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).values().sum()
    }
}

impl Drop for PlaceTaken {
    fn drop(&mut self) {
        let mut held = self.places.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(own) = held.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_and_all_together_so_many() {
        let places = HeldPlaces::new(3, 2);
        let take = |of: &str| places.take(of.to_owned());
        let (first, second) = (take("a").expect("one"), take("a").expect("two"));
        assert!(take("a").is_none(), "a has two");
        let third = take("b").expect("three");
        assert!(take("c").is_none(), "there are three");
        drop(first);
        assert!(take("a").is_some());
        drop((second, third));
        assert!(places.held.lock().expect("whole").is_empty());
    }
}
