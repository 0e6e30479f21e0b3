//! Marketplaces: a customer finds the best of many resources that providers offer, and nobody learns anything
//! else.
//!
//! The problems of Choi, Hwang, Katz, Malkin and Rubenstein (2012), section 3, as programs: every resource is
//! a row, the row section scores it, the fold picks the best one or marks all that match, and the customer
//! alone learns the result. Values are 16 bits wide, as there. The first party is the customer, the others
//! are providers. What providers enter are shared columns: each enters the rows that are its own and zero
//! elsewhere, so that no gate depends on who offers what. What the customer asks is a column of its own;
//! where it is one question (cloud, mobile) every row holds it.
//!
//! *No match* is said apart, by the found bit; then row and score are 0. Ties: the resource with the smallest
//! row wins. In the paper's circuit ([`SelectionCircuit::Paper`]) there is no such bit: the worst score, 0 or
//! all ones, says that nothing matched, and resources must not have it.
//!
//! In the mobile problems a user is a resource and a provider at once: every user is a party of its own with
//! one row. Their distance is Euclidean on a grid of 16-bit coordinates. It is compared as a square, which
//! keeps the order.

mod sample;
mod truth;

pub use sample::{MarketPart, MarketSample};
pub use truth::{MarketAnswer, truth};

use base::{Error, PartyId};
use circuits::Wired;
use program::lower::combine::SelectionCircuit;
use program::lower::unroll;
use program::{Class, Holder, NodeId, Program, ProgramBuilder, RowOrder, RowSet, ValueType};
use std::fmt;
use std::str::FromStr;

/// The party that asks and learns.
pub const CUSTOMER: PartyId = PartyId(0);
/// Values of resources and questions.
pub const VALUE: ValueType = ValueType::u(16);
/// A squared distance: two squares of 16 bits.
const SQUARE: ValueType = ValueType::u(33);
/// The number of shared interests.
const COUNT: ValueType = ValueType::u(5);

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

/// The program of a problem among parties of these names, the customer first. `shape` says whether "no match"
/// is said apart: in [`SelectionCircuit::Paper`] it is not.
///
/// # Panics
/// Without parties, or with names that a program cannot have.
#[must_use]
pub fn program<S: Into<String>>(
    problem: Problem,
    parties: impl IntoIterator<Item = S>,
    shape: SelectionCircuit,
) -> Program {
    let parties: Vec<String> = parties.into_iter().map(Into::into).collect();
    build(problem, &parties, Form { explicit: shape != SelectionCircuit::Paper, apart: false })
}

/// The same for a study file, which feeds every column from one party's file: what party p offers as
/// `bandwidth` is the column `bandwidth_p`, 0 in rows that are not its own, and the value of a row is the
/// exclusive or of all of them. No gate is more.
///
/// # Panics
/// As [`program`].
#[must_use]
pub fn study_program<S: Into<String>>(problem: Problem, parties: impl IntoIterator<Item = S>) -> Program {
    let parties: Vec<String> = parties.into_iter().map(Into::into).collect();
    build(problem, &parties, Form { explicit: true, apart: true })
}

/// How a program is written.
#[derive(Clone, Copy)]
struct Form {
    /// Whether there is a found bit.
    explicit: bool,
    /// Whether every provider has columns of its own.
    apart: bool,
}

/// A program under construction.
struct Draft {
    b: ProgramBuilder,
    providers: usize,
    form: Form,
}

fn build(problem: Problem, parties: &[String], form: Form) -> Program {
    let mut b = ProgramBuilder::new(&format!("market-{problem}"), Class::Exact, parties.iter().cloned());
    // The list of resources is public: everybody has every row.
    b.rows(RowSet::Aligned);
    let mut d = Draft { b, providers: parties.len() - 1, form };
    match problem {
        Problem::P2p => {
            let bandwidth = d.offered("bandwidth", VALUE);
            let wanted = d.asked("wanted", ValueType::BIT);
            d.best(problem, RowOrder::Greatest, bandwidth, wanted);
        }
        Problem::Car => {
            let (price, on_offer) = (d.offered("price", VALUE), d.offered("on_offer", ValueType::BIT));
            let wanted = d.asked("wanted", ValueType::BIT);
            let valid = d.b.and(on_offer, wanted);
            d.best(problem, RowOrder::Least, price, valid);
        }
        Problem::CloudPrice | Problem::CloudQuality => {
            let (quality, price) = (d.offered("quality", VALUE), d.offered("price", VALUE));
            let (least, budget) = (d.asked("min_quality", VALUE), d.asked("max_price", VALUE));
            let good = d.not_less(quality, least);
            let cheap = d.not_less(budget, price);
            let valid = d.b.and(good, cheap);
            match problem {
                Problem::CloudPrice => d.best(problem, RowOrder::Least, price, valid),
                _ => d.best(problem, RowOrder::Greatest, quality, valid),
            }
        }
        Problem::MobileAll | Problem::MobileClosest | Problem::MobileResource => d.mobile(problem),
    }
    d.b.finish()
}

impl Draft {
    /// What providers enter.
    fn offered(&mut self, name: &str, ty: ValueType) -> NodeId {
        if !self.form.apart {
            return self.b.column(name, ty, Holder::Shared);
        }
        let own = |d: &mut Self, p: usize| d.b.column(&format!("{name}_{p}"), ty, PartyId(p as u8));
        let first = own(self, 1);
        (2..=self.providers).fold(first, |sum, p| {
            let next = own(self, p);
            self.b.xor(sum, next)
        })
    }

    /// What the customer enters.
    fn asked(&mut self, name: &str, ty: ValueType) -> NodeId {
        self.b.column(name, ty, CUSTOMER)
    }

    /// `a >= b`.
    fn not_less(&mut self, x: NodeId, y: NodeId) -> NodeId {
        let less = self.b.lt(x, y);
        self.b.not(less)
    }

    /// The best row, revealed to the customer.
    fn best(&mut self, problem: Problem, order: RowOrder, key: NodeId, valid: NodeId) {
        let b = &mut self.b;
        let fold = b.best(order, key, valid);
        b.release();
        let (row, score) = (b.index(fold), b.total(fold));
        b.reveal(&format!("row of the {}", problem.resource()), CUSTOMER, row);
        b.reveal(problem.score(), CUSTOMER, score);
        if self.form.explicit {
            let found = b.found(fold);
            b.reveal("match", CUSTOMER, found);
        }
    }

    fn mobile(&mut self, problem: Problem) {
        let (x, y) = (self.offered("x", VALUE), self.offered("y", VALUE));
        let interests = self.offered("interests", VALUE);
        let (at_x, at_y) = (self.asked("at_x", VALUE), self.asked("at_y", VALUE));
        let (wanted, radius) = (self.asked("wanted", VALUE), self.asked("radius", VALUE));
        let squares = [(x, at_x), (y, at_y)].map(|(a, c)| {
            let (high, low) = (self.b.max(a, c), self.b.min(a, c));
            let apart = self.b.sub(high, low);
            let apart = self.b.cast(apart, SQUARE);
            self.b.mul(apart, apart)
        });
        let distance = self.b.add(squares[0], squares[1]);
        // The customer alone knows its radius: the square is no gate.
        let radius = self.b.cast(radius, SQUARE);
        let bound = self.b.mul(radius, radius);
        let near = self.not_less(bound, distance);
        let common = self.b.and(interests, wanted);
        if problem == Problem::MobileResource {
            let count = self.b.popcount(common, COUNT);
            return self.best(problem, RowOrder::Greatest, count, near);
        }
        let all = self.b.eq(common, wanted);
        let valid = self.b.and(near, all);
        if problem == Problem::MobileClosest {
            return self.best(problem, RowOrder::Least, distance, valid);
        }
        let list = self.b.collect(valid);
        self.b.release();
        self.b.reveal_rows("users", CUSTOMER, list);
    }
}

/// A problem with `rows` resources of two providers as one stand-alone circuit. The customer's words come
/// first, then each provider's; rows go to the providers in turn.
///
/// # Errors
/// An unknown problem, no rows or more than [`program::lower::UNROLLED_ROWS`].
pub fn wired(problem: &str, rows: u64, shape: SelectionCircuit) -> Result<Wired, Error> {
    let program = program(problem.parse()?, ["customer", "provider-1", "provider-2"], shape);
    unroll(&program, rows, shape, &|row| provider(row, 3))
}

/// The party that offers a row: the providers in turn. Of a customer alone, itself.
#[must_use]
pub fn provider(row: u64, parties: usize) -> PartyId {
    let providers = parties as u64 - 1;
    PartyId(if providers == 0 { 0 } else { 1 + (row % providers) as u8 })
}
