//! A service mostly rests, and then it gives back what it holds and does not use: what the start took, and
//! what pages that somebody read took.

use super::House;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether anything was asked.
const EVERY: Duration = Duration::from_secs(20);

/// Gives back what the start took, and from then on what answers took, each time when none was given for a
/// while.
pub fn begin(house: &Arc<House>) {
    kernels::return_while_resting();
    let house = house.clone();
    tokio::spawn(async move {
        let (mut before, mut rested_at) = (house.answers.all(), house.answers.all());
        loop {
            tokio::time::sleep(EVERY).await;
            let answers = house.answers.all();
            if rests(answers, before, rested_at) {
                // A walk over all heaps may wait for their locks.
                let _ = tokio::task::spawn_blocking(kernels::return_while_resting).await;
                rested_at = answers;
            }
            before = answers;
        }
    });
}

/// Whether nothing was asked since the last look, and something since it was last given back.
fn rests(answers: u64, before: u64, rested_at: u64) -> bool {
    answers == before && answers != rested_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_once_after_each_time_that_somebody_asked() {
        let (mut before, mut rested_at, mut rested) = (0, 0, Vec::new());
        for answers in [0, 0, 3, 9, 9, 9, 9, 10, 10] {
            rested.push(rests(answers, before, rested_at));
            if rested.last() == Some(&true) {
                rested_at = answers;
            }
            before = answers;
        }
        assert_eq!(rested, [false, false, false, false, true, false, false, false, true]);
    }
}
