//! Permutation networks for any number of rows: public wiring, and the switches that make it a given
//! permutation.
//!
//! The network is Waksman's, in the form of Beauquier and Darrot for any size ("On arbitrary size Waksman
//! networks and their vulnerability", 2002). On n > 1 wires, with h = floor(n / 2): wires i and h + i meet in
//! a switch, for i < h; the first h wires go through the network on h wires, the others through the one on
//! n - h; wires i and h + i meet again. When n is even the last switch of pair 0 is not needed, when n is odd
//! the last wire meets nobody. `sum over i <= n of ceil(log2 i)` switches, the fewest known.
//!
//! Parts of a network lie next to each other in memory, and a part is finished before the next begins, so all
//! that fits a cache stays in it. Switches are numbered in this order.

use base::Error;
use zeroize::Zeroize;

/// Switches of the network on `n` wires.
#[must_use]
pub fn switches(n: u64) -> u64 {
    if n < 2 {
        return 0;
    }
    let levels = u64::from((n - 1).ilog2()) + 1;
    n * levels + 1 - (1 << levels)
}

/// Switches in order, whose wires are next to each other: switch k of a run has wires `first + k` and
/// `second + k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateRun {
    /// Upper wire of the first switch.
    pub first: usize,
    /// Lower wire of the first switch.
    pub second: usize,
    /// Switches of the run.
    pub len: usize,
}

/// The runs of a network in order: a function of its size alone.
#[derive(Clone, Debug)]
pub struct GateRuns {
    todo: Vec<JoinedPart>,
}

#[derive(Clone, Copy, Debug)]
struct JoinedPart {
    start: usize,
    wires: usize,
    /// What is left of it are its last switches.
    last: bool,
}

impl GateRuns {
    /// Those of the network on `n` wires.
    #[must_use]
    pub fn new(n: usize) -> Self {
        Self { todo: vec![JoinedPart { start: 0, wires: n, last: false }] }
    }
}

impl Iterator for GateRuns {
    type Item = GateRun;

    fn next(&mut self) -> Option<GateRun> {
        loop {
            let JoinedPart { start, wires, last } = self.todo.pop()?;
            let half = wires / 2;
            let (first, second) = (start, start + half);
            if last {
                // An even network has no last switch on its first pair.
                let skip = 1 - wires % 2;
                if half > skip {
                    return Some(GateRun { first: first + skip, second: second + skip, len: half - skip });
                }
            } else if wires > 1 {
                self.todo.push(JoinedPart { start, wires, last: true });
                self.todo.push(JoinedPart { start: second, wires: wires - half, last: false });
                self.todo.push(JoinedPart { start: first, wires: half, last: false });
                return Some(GateRun { first, second, len: half });
            }
        }
    }
}

/// Switch settings of a network, in the order of its switches, one bit each: 1 crosses. They are the
/// permutation, so they do not print, and are wiped when dropped.
pub struct SwitchSettings {
    bits: Vec<u64>,
    len: usize,
}

impl SwitchSettings {
    /// So many settings, all straight.
    pub(super) fn straight(len: usize) -> Self {
        Self { bits: vec![0; len.div_ceil(64)], len }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Settings `64 * word ..`, packed.
    pub(super) fn word(&self, word: usize) -> u64 {
        self.bits[word]
    }

    /// The setting of one switch, 0 or 1.
    #[must_use]
    pub fn get(&self, switch: usize) -> u64 {
        kernels::bit(&self.bits, switch)
    }

    pub(super) fn set(&mut self, switch: usize, crosses: bool) {
        self.bits[switch / 64] |= u64::from(crosses) << (switch % 64);
    }
}

impl Drop for SwitchSettings {
    fn drop(&mut self) {
        self.bits.zeroize();
    }
}

/// A permutation under way: for every output its input and for every input its output.
#[derive(Default)]
struct Maps {
    input_of: Vec<u32>,
    output_of: Vec<u32>,
}

impl Drop for Maps {
    fn drop(&mut self) {
        self.input_of.zeroize();
        self.output_of.zeroize();
    }
}

/// An output whose pair is done.
const DONE: u32 = u32::MAX;

/// The settings under which output o of the network is input `permutation[o]`.
///
/// Time `O(n log n)`; 16 bytes per row besides the result, those of `permutation` among them. Its memory
/// accesses follow the permutation, which is this party's own, and nothing is sent meanwhile.
///
/// # Errors
/// `Misuse` when `permutation` is none.
pub fn route(permutation: Vec<u32>) -> Result<SwitchSettings, Error> {
    let mut maps = Maps { input_of: permutation, output_of: Vec::new() };
    let n = maps.input_of.len();
    let none = || Error::misuse("what should permute rows is not a permutation");
    let count = usize::try_from(switches(n as u64)).map_err(|_| none())?;
    let mut settings = SwitchSettings::straight(count);
    maps.output_of.resize(n, DONE);
    let Maps { input_of, output_of } = &mut maps;
    for (output, &input) in input_of.iter().enumerate() {
        let place = output_of.get_mut(input as usize).filter(|place| **place == DONE);
        *place.ok_or_else(none)? = output as u32;
    }
    let mut parts = Maps { input_of: vec![0; n], output_of: vec![0; n] };
    let (from, to) = (&mut maps, &mut parts);
    route_part(
        &mut settings,
        0,
        [&mut from.input_of, &mut from.output_of],
        [&mut to.input_of, &mut to.output_of],
    );
    Ok(settings)
}

/// Sets the switches of one part, which are numbered from `at` on. `map` is overwritten; `next` is room for
/// the maps of its own two parts.
fn route_part(settings: &mut SwitchSettings, at: usize, map: [&mut [u32]; 2], next: [&mut [u32]; 2]) {
    let [input_of, output_of] = map;
    let wires = input_of.len();
    match wires {
        0 | 1 => return,
        2 => return settings.set(at, input_of[0] == 1),
        _ => {}
    }
    let [next_input, next_output] = next;
    let half = wires / 2;
    let inner = [half, wires - half].map(|w| switches(w as u64) as usize);
    let mut colouring = Colouring {
        settings,
        half,
        single: 2 * half,
        first: at,
        last: at + half + inner[0] + inner[1] - (1 - wires % 2),
        input_of: &mut *input_of,
        output_of: &mut *output_of,
        next_input: &mut *next_input,
        next_output: &mut *next_output,
    };
    // The pair without a choice comes first: the last wire of an odd network, pair 0 of an even one.
    colouring.follow(if wires % 2 == 1 { 2 * half } else { half });
    for pair in 0..half {
        if colouring.input_of[pair] != DONE && colouring.input_of[half + pair] != DONE {
            colouring.follow(half + pair);
        }
    }
    let (upper_input, lower_input) = next_input.split_at_mut(half);
    let (upper_output, lower_output) = next_output.split_at_mut(half);
    let (a, b) = input_of.split_at_mut(half);
    let (c, d) = output_of.split_at_mut(half);
    route_part(settings, at + half, [upper_input, upper_output], [a, c]);
    route_part(settings, at + half + inner[0], [lower_input, lower_output], [b, d]);
}

/// Which wires of a part go through its lower half: the two of a pair never go the same way.
struct Colouring<'a> {
    settings: &'a mut SwitchSettings,
    half: usize,
    /// The wire without a partner, if there is one.
    single: usize,
    /// Number of the first switch of pair 0, and of its last one (or where it would be).
    first: usize,
    last: usize,
    input_of: &'a mut [u32],
    output_of: &'a mut [u32],
    next_input: &'a mut [u32],
    next_output: &'a mut [u32],
}

impl Colouring<'_> {
    /// Pair of a wire, which is its place in either half.
    fn pair(&self, wire: usize) -> usize {
        if wire < self.half { wire } else { wire - self.half }
    }

    fn partner(&self, wire: usize) -> usize {
        if wire < self.half { wire + self.half } else { wire - self.half }
    }

    /// Sends `output` through the lower half, and whatever follows from that.
    fn follow(&mut self, mut output: usize) {
        let half = self.half;
        while self.input_of[output] != DONE {
            let (input, out_pair) = (self.input_of[output] as usize, self.pair(output));
            let in_pair = self.pair(input);
            self.input_of[output] = DONE;
            self.next_input[half + out_pair] = in_pair as u32;
            self.next_output[half + in_pair] = out_pair as u32;
            if output < half {
                self.settings.set(self.last + out_pair, true);
            }
            if input == self.single {
                return;
            }
            self.settings.set(self.first + in_pair, input < half);
            let above = self.output_of[self.partner(input)] as usize;
            let out_pair = self.pair(above);
            self.next_input[out_pair] = in_pair as u32;
            self.next_output[in_pair] = out_pair as u32;
            output = self.partner(above);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;

    /// What the network makes of `0..n`: output o holds the returned entry o.
    fn apply(n: usize, settings: &SwitchSettings) -> Vec<u32> {
        let mut wires: Vec<u32> = (0..n as u32).collect();
        let mut at = 0;
        for run in GateRuns::new(n) {
            for k in 0..run.len {
                if settings.get(at) == 1 {
                    wires.swap(run.first + k, run.second + k);
                }
                at += 1;
            }
        }
        assert_eq!(at, settings.len());
        wires
    }

    fn check(permutation: &[u32]) {
        let settings = route(permutation.to_vec()).unwrap();
        assert_eq!(apply(permutation.len(), &settings), permutation);
    }

    /// All orders of the entries from `from` on.
    fn all_orders(items: &mut [u32], from: usize, check: &mut dyn FnMut(&[u32])) {
        if from == items.len() {
            return check(items);
        }
        for i in from..items.len() {
            items.swap(from, i);
            all_orders(items, from + 1, check);
            items.swap(from, i);
        }
    }

    #[test]
    fn every_permutation_of_up_to_seven_rows_and_a_share_of_eight() {
        for n in 0..8u32 {
            let mut count = 0;
            all_orders(&mut (0..n).collect::<Vec<_>>(), 0, &mut |order| {
                check(order);
                count += 1;
            });
            assert_eq!(count, (1..=n).product::<u32>());
        }
        let mut eight = [0, 7, 2, 5, 4, 3, 6, 1];
        all_orders(&mut eight, 3, &mut check);
    }

    #[test]
    fn random_permutations_around_powers_of_two() {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        let sizes = (4..15).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1]).chain([100, 1000, 54_321]);
        for n in sizes {
            let mut order: Vec<u32> = (0..n).collect();
            check(&order);
            order.reverse();
            check(&order);
            rng.shuffle(&mut order);
            check(&order);
        }
    }

    #[test]
    fn switches_are_counted_and_no_wire_of_a_run_meets_itself() {
        for n in (0..300).chain([1023, 1024, 1025, 99_999]) {
            let logs: u64 = (1..=n as u64).map(|i| u64::from(i.next_power_of_two().ilog2())).sum();
            let wired: usize = GateRuns::new(n).map(|run| run.len).sum();
            assert_eq!((switches(n as u64), wired as u64), (logs, logs), "{n} wires");
            for run in GateRuns::new(n) {
                assert!(run.len > 0 && run.first + run.len <= run.second && run.second + run.len <= n);
            }
        }
        assert_eq!(switches(1 << 20), 19 * (1 << 20) + 1);
    }

    #[test]
    fn every_wire_meets_a_switch() {
        for n in 2..200 {
            let mut met = vec![false; n];
            for run in GateRuns::new(n) {
                met[run.first..][..run.len].fill(true);
                met[run.second..][..run.len].fill(true);
            }
            assert!(met.into_iter().all(|m| m), "{n} wires");
        }
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        for bad in [&[1, 1][..], &[2, 0], &[0, u32::MAX, 1]] {
            assert!(route(bad.to_vec()).err().unwrap().to_string().contains("not a permutation"));
        }
    }
}
