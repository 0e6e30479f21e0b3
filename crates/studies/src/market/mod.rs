//! Marketplaces: a customer finds the best of many resources that providers offer, and nobody learns anything else.
//!
//! The problems of Choi, Hwang, Katz, Malkin and Rubenstein (2012), section 3, as programs: every resource is a row, the
//! row section scores it, the fold picks the best one or marks all that match, and the customer alone learns the result.
//! Values are 16 bits wide, as there. The first party is the customer, the others are providers. What providers enter are
//! shared columns: each enters the rows that are its own and zero elsewhere, so that no gate depends on who offers what.
//! What the customer asks is a column of its own; where it is one question (cloud, mobile) every row holds it.
//!
//! *No match* is said apart, by the found bit; then row and score are 0. Ties: the resource with the smallest row wins.
//! In the paper's circuit ([`Shape::Paper`]) there is no such bit: the worst score, 0 or all ones, says that nothing
//! matched, and resources must not have it.
//!
//! In the mobile problems a user is a resource and a provider at once: every user is a party of its own with one row.
//! Their distance is Euclidean on a grid of 16-bit coordinates. It is compared as a square, which keeps the order.

mod sample;
mod truth;

pub use sample::{Part, Sample};
pub use truth::{Answer, truth};

use base::{Error, PartyId};
use program::lower::combine::Shape;
use program::lower::unroll;
use program::wired::Wired;
use program::{Builder, Class, Holder, NodeId, Order, Program, Type};
use std::fmt;
use std::str::FromStr;

/// The party that asks and learns.
pub const CUSTOMER: PartyId = PartyId(0);
/// Values of resources and questions.
pub const VALUE: Type = Type::u(16);
/// A squared distance: two squares of 16 bits.
const SQUARE: Type = Type::u(33);
/// The number of shared interests.
const COUNT: Type = Type::u(5);

/// A marketplace problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Problem {
    /// The fastest peer among those that have the content.
    P2p,
    /// The cheapest service of at least some quality, within a budget.
    CloudPrice,
    /// The best service within a budget, of at least some quality.
    CloudQuality,
    /// All users within a radius that share the given interests.
    MobileAll,
    /// The closest one of them.
    MobileClosest,
    /// The user within a radius that shares most of the given interests.
    MobileResource,
    /// The cheapest offer for any of the wanted models: the tutorial.
    Car,
}

impl Problem {
    /// All problems.
    pub const ALL: [Self; 7] = [
        Self::P2p,
        Self::CloudPrice,
        Self::CloudQuality,
        Self::MobileAll,
        Self::MobileClosest,
        Self::MobileResource,
        Self::Car,
    ];

    /// What a row is called.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::P2p => "peer",
            Self::CloudPrice | Self::CloudQuality => "service",
            Self::MobileAll | Self::MobileClosest | Self::MobileResource => "user",
            Self::Car => "offer",
        }
    }

    /// What the revealed score is called.
    #[must_use]
    pub fn score(self) -> &'static str {
        match self {
            Self::P2p => "bandwidth",
            Self::CloudPrice | Self::Car => "price",
            Self::CloudQuality => "quality",
            Self::MobileAll | Self::MobileClosest => "squared distance",
            Self::MobileResource => "shared interests",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P2p => "p2p",
            Self::CloudPrice => "cloud-price",
            Self::CloudQuality => "cloud-quality",
            Self::MobileAll => "mobile-all",
            Self::MobileClosest => "mobile-closest",
            Self::MobileResource => "mobile-resource",
            Self::Car => "car",
        })
    }
}

impl FromStr for Problem {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|p| p.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            Error::input(format!("unknown marketplace '{text}'; there are {}", names.join(", ")))
        })
    }
}

/// The program of a problem among parties of these names, the customer first. `shape` says whether "no match" is said
/// apart: in [`Shape::Paper`] it is not.
///
/// # Panics
/// Without parties, or with names that a program cannot have.
#[must_use]
pub fn program<S: Into<String>>(
    problem: Problem,
    parties: impl IntoIterator<Item = S>,
    shape: Shape,
) -> Program {
    let mut b = Builder::new(&format!("market-{problem}"), Class::Exact, parties);
    let explicit = shape != Shape::Paper;
    match problem {
        Problem::P2p => {
            let bandwidth = offered(&mut b, "bandwidth", VALUE);
            let wanted = asked(&mut b, "wanted", Type::BIT);
            best(&mut b, problem, (Order::Greatest, bandwidth, wanted), explicit);
        }
        Problem::Car => {
            let (price, on_offer) = (offered(&mut b, "price", VALUE), offered(&mut b, "on_offer", Type::BIT));
            let wanted = asked(&mut b, "wanted", Type::BIT);
            let valid = b.and(on_offer, wanted);
            best(&mut b, problem, (Order::Least, price, valid), explicit);
        }
        Problem::CloudPrice | Problem::CloudQuality => {
            let (quality, price) = (offered(&mut b, "quality", VALUE), offered(&mut b, "price", VALUE));
            let (least, budget) = (asked(&mut b, "min_quality", VALUE), asked(&mut b, "max_price", VALUE));
            let good = not_less(&mut b, quality, least);
            let cheap = not_less(&mut b, budget, price);
            let valid = b.and(good, cheap);
            let rank = match problem {
                Problem::CloudPrice => (Order::Least, price, valid),
                _ => (Order::Greatest, quality, valid),
            };
            best(&mut b, problem, rank, explicit);
        }
        Problem::MobileAll | Problem::MobileClosest | Problem::MobileResource => {
            mobile(&mut b, problem, explicit);
        }
    }
    b.finish()
}

fn offered(b: &mut Builder, name: &str, ty: Type) -> NodeId {
    b.column(name, ty, Holder::Shared)
}

fn asked(b: &mut Builder, name: &str, ty: Type) -> NodeId {
    b.column(name, ty, CUSTOMER)
}

/// `a >= b`.
fn not_less(b: &mut Builder, x: NodeId, y: NodeId) -> NodeId {
    let less = b.lt(x, y);
    b.not(less)
}

/// The best row, revealed to the customer.
fn best(b: &mut Builder, problem: Problem, (order, key, valid): (Order, NodeId, NodeId), explicit: bool) {
    let fold = b.best(order, key, valid);
    b.release();
    let (row, score) = (b.index(fold), b.total(fold));
    b.reveal(&format!("row of the {}", problem.resource()), CUSTOMER, row);
    b.reveal(problem.score(), CUSTOMER, score);
    if explicit {
        let found = b.found(fold);
        b.reveal("match", CUSTOMER, found);
    }
}

fn mobile(b: &mut Builder, problem: Problem, explicit: bool) {
    let (x, y) = (offered(b, "x", VALUE), offered(b, "y", VALUE));
    let interests = offered(b, "interests", VALUE);
    let (at_x, at_y) = (asked(b, "at_x", VALUE), asked(b, "at_y", VALUE));
    let (wanted, radius) = (asked(b, "wanted", VALUE), asked(b, "radius", VALUE));
    let squares = [(x, at_x), (y, at_y)].map(|(a, c)| {
        let (high, low) = (b.max(a, c), b.min(a, c));
        let apart = b.sub(high, low);
        let apart = b.cast(apart, SQUARE);
        b.mul(apart, apart)
    });
    let distance = b.add(squares[0], squares[1]);
    // The customer alone knows its radius: the square is no gate.
    let radius = b.cast(radius, SQUARE);
    let bound = b.mul(radius, radius);
    let near = not_less(b, bound, distance);
    let common = b.and(interests, wanted);
    if problem == Problem::MobileResource {
        let count = b.popcount(common, COUNT);
        return best(b, problem, (Order::Greatest, count, near), explicit);
    }
    let all = b.eq(common, wanted);
    let valid = b.and(near, all);
    if problem == Problem::MobileClosest {
        return best(b, problem, (Order::Least, distance, valid), explicit);
    }
    let list = b.collect(valid);
    b.release();
    b.reveal_rows("users", CUSTOMER, list);
}

/// A problem with `rows` resources of two providers as one stand-alone circuit. The customer's words come first, then
/// each provider's; rows go to the providers in turn.
///
/// # Errors
/// An unknown problem, no rows or more than [`program::lower::UNROLLED_ROWS`].
pub fn wired(problem: &str, rows: u64, shape: Shape) -> Result<Wired, Error> {
    let program = program(problem.parse()?, ["customer", "provider-1", "provider-2"], shape);
    unroll(&program, rows, shape, &|row| provider(row, 3))
}

/// The party that offers a row: the providers in turn. Of a customer alone, itself.
#[must_use]
pub fn provider(row: u64, parties: usize) -> PartyId {
    let providers = parties as u64 - 1;
    PartyId(if providers == 0 { 0 } else { 1 + (row % providers) as u8 })
}
