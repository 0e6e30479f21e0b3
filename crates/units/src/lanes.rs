//! How lanes come up, and come up again: a lane has generations, and each side one key and one door for each.
//!
//! A connection is made of both sides' doors of one generation. A side whose lane fails goes to the next
//! generation and tells its door; a side that hears of a later generation than its own leaves what it has and
//! goes there. So both come to the same one, whatever was lost on the way.

/// Generations of a lane: more than fail before a stage is given up.
const GENERATIONS: u32 = 1 << 16;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneEvent {
    /// Own door is open, and the peer was told.
    DoorTold {
        /// The generation.
        generation: u32,
    },
    /// The peer told its door.
    PeerDoor {
        /// The generation.
        generation: u32,
    },
    /// The connection is there.
    Up {
        /// The generation.
        generation: u32,
    },
    /// It did not come about, is gone, or its worker is.
    Down {
        /// The generation.
        generation: u32,
    },
}

/// What is to be done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAction {
    /// Have own worker make a key, and tell the peer of its door.
    MakeDoor {
        /// Of which lane.
        lane: u16,
        /// The generation.
        generation: u32,
        /// How often on end the lane has failed: how long to wait before.
        failures: u32,
    },
    /// Connect: both doors of the generation are open.
    Connect {
        /// Which lane.
        lane: u16,
        /// The generation.
        generation: u32,
    },
    /// Leave the connection of an earlier generation, or what is becoming one.
    Leave {
        /// Which lane.
        lane: u16,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Progress {
    /// The door is being made.
    #[default]
    Making,
    /// The peer knows of it.
    Open,
    /// Both have connected, or try to.
    Joined,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct LaneDoors {
    own: u32,
    progress: Progress,
    peer: u32,
    failures: u32,
}

/// All lanes of one side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaneBook {
    lanes: Vec<LaneDoors>,
}

impl LaneBook {
    /// Lanes that begin, and what is to be done first.
    #[must_use]
    pub fn new(lanes: u16) -> (Self, Vec<LaneAction>) {
        let first = LaneDoors { own: 1, ..LaneDoors::default() };
        let make = |lane| LaneAction::MakeDoor { lane, generation: 1, failures: 0 };
        (Self { lanes: vec![first; lanes.into()] }, (0..lanes).map(make).collect())
    }

    /// Takes a step of one lane.
    ///
    /// # Errors
    /// When the peer opens a door that it has opened before, or one of no lane.
    pub fn step(&mut self, lane: u16, event: LaneEvent) -> Result<Vec<LaneAction>, crate::UnitDeviation> {
        let mut out = Vec::new();
        let unknown = crate::UnitDeviation("that a lane is one of those agreed on");
        let doors = self.lanes.get_mut(usize::from(lane)).ok_or(unknown)?;
        match event {
            LaneEvent::DoorTold { generation } if generation == doors.own => doors.progress = Progress::Open,
            LaneEvent::PeerDoor { generation } => {
                if generation <= doors.peer || generation > GENERATIONS {
                    return Err(crate::UnitDeviation("that every door of a lane is a later one"));
                }
                doors.peer = generation;
                if generation > doors.own {
                    if doors.progress == Progress::Joined {
                        out.push(LaneAction::Leave { lane });
                    }
                    doors.go_to(lane, generation, &mut out);
                }
            }
            LaneEvent::Up { generation } if generation == doors.own => doors.failures = 0,
            LaneEvent::Down { generation } if generation == doors.own => {
                doors.failures += 1;
                doors.go_to(lane, generation + 1, &mut out);
            }
            // Of an earlier generation.
            _ => {}
        }
        if doors.progress == Progress::Open && doors.peer == doors.own {
            doors.progress = Progress::Joined;
            out.push(LaneAction::Connect { lane, generation: doors.own });
        }
        Ok(out)
    }
}

impl LaneDoors {
    fn go_to(&mut self, lane: u16, generation: u32, out: &mut Vec<LaneAction>) {
        (self.own, self.progress) = (generation, Progress::Making);
        out.push(LaneAction::MakeDoor { lane, generation, failures: self.failures });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Two sides, what they are doing, and words on the way.
    struct Sides {
        books: [LaneBook; 2],
        /// Doors that are being made.
        making: [VecDeque<u32>; 2],
        words: [VecDeque<u32>; 2],
        /// What each side's worker has joined, and whether it is there.
        joined: [Option<(u32, bool)>; 2],
    }

    impl Sides {
        fn new() -> Self {
            let [(a, first), (b, second)] = [LaneBook::new(1), LaneBook::new(1)];
            let (making, words) = (Default::default(), Default::default());
            let mut sides = Self { books: [a, b], making, words, joined: [None; 2] };
            sides.act(0, first);
            sides.act(1, second);
            sides
        }

        fn act(&mut self, side: usize, actions: Vec<LaneAction>) {
            for action in actions {
                match action {
                    LaneAction::MakeDoor { generation, .. } => self.making[side].push_back(generation),
                    LaneAction::Connect { generation, .. } => self.joined[side] = Some((generation, false)),
                    LaneAction::Leave { .. } => self.joined[side] = None,
                }
            }
        }

        fn tell(&mut self, side: usize, event: LaneEvent) {
            let actions = self.books[side].step(0, event).unwrap();
            self.act(side, actions);
        }

        /// One thing that happens, of those that can: whether anything did.
        fn happen(&mut self, what: u8, fail: bool) -> bool {
            let side = usize::from(what % 2);
            match what / 2 % 4 {
                0 => {
                    let Some(generation) = self.making[side].pop_front() else { return false };
                    self.words[1 - side].push_back(generation);
                    self.tell(side, LaneEvent::DoorTold { generation });
                }
                1 => {
                    let Some(generation) = self.words[side].pop_front() else { return false };
                    self.tell(side, LaneEvent::PeerDoor { generation });
                }
                2 => match (self.joined[0], self.joined[1]) {
                    (Some((a, false)), Some((b, false))) if a == b => {
                        self.joined = [Some((a, true)), Some((b, true))];
                        (0..2).for_each(|side| self.tell(side, LaneEvent::Up { generation: a }));
                    }
                    _ => return false,
                },
                _ => {
                    // One side's worker fails by itself, or waits for a peer that will not come.
                    let Some((generation, up)) = self.joined[side] else { return false };
                    let other = self.joined[1 - side];
                    let alone = other != Some((generation, up));
                    let coming = !self.making[1 - side].is_empty() || !self.words[1 - side].is_empty();
                    if !fail && (!alone || coming) {
                        return false;
                    }
                    self.joined[side] = None;
                    self.tell(side, LaneEvent::Down { generation });
                }
            }
            true
        }
    }

    proptest! {
        /// Whatever fails, once failures end both sides come to be up in one generation.
        #[test]
        fn lanes_come_up_again(chaos in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut sides = Sides::new();
            chaos.iter().for_each(|what| _ = sides.happen(*what, true));
            for _ in 0..1000 {
                if !(0..8).any(|what| sides.happen(what, false)) {
                    break;
                }
            }
            let [Some((a, true)), Some((b, true))] = sides.joined else {
                return Err(TestCaseError::fail(format!("{:?} {:?}", sides.joined, sides.books)));
            };
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn a_door_opens_once() {
        let (mut book, _) = LaneBook::new(2);
        assert_eq!(book.step(1, LaneEvent::DoorTold { generation: 1 }), Ok(vec![]));
        let connect = LaneAction::Connect { lane: 1, generation: 1 };
        assert_eq!(book.step(1, LaneEvent::PeerDoor { generation: 1 }), Ok(vec![connect]));
        assert!(book.step(1, LaneEvent::PeerDoor { generation: 1 }).is_err());
        assert!(book.step(2, LaneEvent::PeerDoor { generation: 1 }).is_err());
        assert!(book.step(1, LaneEvent::PeerDoor { generation: GENERATIONS + 1 }).is_err());
        // A later one ends what there is.
        let actions = book.step(1, LaneEvent::PeerDoor { generation: 3 }).unwrap();
        let made = LaneAction::MakeDoor { lane: 1, generation: 3, failures: 0 };
        assert_eq!(actions, [LaneAction::Leave { lane: 1 }, made]);
        // What is said of the one before counts for nothing.
        assert_eq!(book.step(1, LaneEvent::Down { generation: 1 }), Ok(vec![]));
    }
}
