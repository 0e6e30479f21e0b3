//! The lift study as a program. See the header of [`super`].
//!
//! Everything that one party can compute alone is written as nodes of its columns only, so that it is done in
//! the clear: running maxima, window totals, clamps, squares and cohorts by the advertiser; the end of the
//! window and the cell bits by the publisher. What remains secret is the position of the opportunity among
//! the events.

use super::layout::{
    CellFamily, CellTotal, Content, LiftCell, LiftLayout, OutputMeaning, Quantity, TrialArm,
};
use super::{ADVERTISER, LiftParameters, PUBLISHER, ReleaseMode};
use base::{Error, limits};
use program::{
    Class, ColumnSource, DifferenceStatistic, Holder, Lookup, MechanismKind, NodeId, Program, ProgramBuilder,
    ValueType, Viewer,
};
use release::joint::Change;
use release::rational::{Rational, ratio};

/// Builds the program of a study.
///
/// # Errors
/// Those of [`LiftParameters::check`].
pub fn build(lift: &LiftParameters) -> Result<(Program, LiftLayout), Error> {
    lift.check()?;
    let mut study = Study {
        lift,
        b: ProgramBuilder::new("lift", Class::Dp, lift.parties()),
        layout: LiftLayout {
            columns: Vec::new(),
            slots: Vec::new(),
            totals: Vec::new(),
            outputs: Vec::new(),
            published: None,
        },
        slot: 0,
    };
    for (party, degree) in [PUBLISHER, ADVERTISER].into_iter().zip(lift.matching.degree) {
        study.b.degree(party, degree);
    }
    for (party, alone) in [PUBLISHER, ADVERTISER].into_iter().zip(lift.matching.alone) {
        study.b.alone(party, alone);
    }
    study.rows();
    study.b.release();
    for (viewer, rho) in lift.releases() {
        study.release(viewer, rho);
    }
    let (program, mut layout) = (study.b.finish(), study.layout);
    if lift.several() {
        // Built in: the program has them last.
        layout.move_last(Content::Present);
    }
    debug_assert_eq!(program.columns.len(), layout.columns.len());
    debug_assert_eq!(program.outputs.len(), layout.outputs.len());
    Ok((program, layout))
}

struct Study<'a> {
    lift: &'a LiftParameters,
    b: ProgramBuilder,
    layout: LiftLayout,
    /// The slot whose columns are read.
    slot: u8,
}

/// Bits of a number, at least 1.
fn bits(x: u128) -> u8 {
    (128 - x.leading_zeros()).max(1) as u8
}

/// The row section and the folds.
impl Study<'_> {
    fn rows(&mut self) {
        let quantities: Vec<Quantity> =
            Quantity::CORE.into_iter().chain(self.lift.also.iter().map(|a| Quantity::from(*a))).collect();
        let cells: Vec<LiftCell> =
            self.lift.families().into_iter().flat_map(|f| self.lift.cells(f)).collect();
        for quantity in quantities {
            for cell in &cells {
                for arm in TrialArm::BOTH {
                    let value = self.per_row(*cell, arm, quantity);
                    let fold = self.b.sum(value, self.fold_type(quantity));
                    self.layout.totals.push(CellTotal { cell: *cell, arm, quantity, fold });
                }
            }
        }
    }

    fn column(&mut self, content: Content) -> NodeId {
        let lift = self.lift;
        let (name, ty) = match content {
            Content::Time => ("time".to_owned(), ValueType::u(lift.time_bits)),
            Content::Arm => ("arm".to_owned(), ValueType::u(2)),
            Content::Reached => ("reached".to_owned(), ValueType::BIT),
            Content::Breakdown => ("breakdown".to_owned(), ValueType::u(8)),
            Content::EventTime(j) => (format!("time_{}", j + 1), ValueType::u(lift.time_bits)),
            Content::EventValue(j) => (format!("value_{}", j + 1), ValueType::u(lift.value_bits)),
            Content::Present => ("present".to_owned(), ValueType::BIT),
            Content::Cohort => ("cohort".to_owned(), ValueType::u(8)),
            Content::Valid => ("valid".to_owned(), ValueType::BIT),
        };
        let slotted = lift.slots() > 1 && content.owner() != Some(PUBLISHER);
        let (slot, name) = match slotted {
            true => (self.slot, format!("s{}-{name}", self.slot + 1)),
            false => (0, name),
        };
        if self.layout.column_of(content, slot).is_none() {
            self.layout.columns.push(content);
            self.layout.slots.push(slot);
        }
        let owner = content.owner_in(lift, slot);
        if let (Content::Present, true, Some(owner)) = (content, lift.several(), owner) {
            return self.b.present(owner);
        }
        let source = match content {
            Content::Valid => ColumnSource::Present,
            _ => ColumnSource::Data { absent: content.absent(lift) },
        };
        self.b.column_from(&name, ty, owner.map_or(Holder::Shared, Holder::Party), source)
    }

    /// `column == code`, written so that the verifier sees which column separates cells.
    fn is(&mut self, content: Content, code: u128) -> NodeId {
        let column = self.column(content);
        let code = self.b.constant(code, self.b.ty(column));
        self.b.eq(column, code)
    }

    /// Most that one row adds to a total; sensitivities are derived from the same bound.
    fn bound(&self, quantity: Quantity) -> u128 {
        let r = self.lift.bound();
        match quantity {
            Quantity::Value | Quantity::ReachedValue => r,
            Quantity::Squares => r * r,
            Quantity::Conversions | Quantity::ReachedConversions => self.conversions(),
            _ => 1,
        }
    }

    /// Most events of one person that count.
    fn conversions(&self) -> u128 {
        u128::from(self.lift.max_events) * u128::from(self.lift.slots())
    }

    /// Whole bytes, wide enough for [`limits::ROWS`] rows at the bound.
    fn fold_type(&self, quantity: Quantity) -> ValueType {
        let width = bits(self.bound(quantity) * u128::from(limits::ROWS));
        ValueType::u(width.next_multiple_of(8))
    }

    /// What one row adds to one total.
    fn per_row(&mut self, cell: LiftCell, arm: TrialArm, quantity: Quantity) -> NodeId {
        let mut in_cell = self.publisher_bit(cell, arm, quantity);
        if quantity == Quantity::Rows && cell.family() != CellFamily::Cohort {
            return in_cell;
        }
        if self.lift.slots() > 1 {
            let amount = self.over_slots(quantity);
            return self.b.mask(in_cell, amount);
        }
        if self.lift.matching.masked {
            let valid = self.column(Content::Valid);
            in_cell = self.b.and(in_cell, valid);
        }
        let in_cohort = match cell {
            LiftCell::Cohort(h) => Some(self.is(Content::Cohort, h.into())),
            _ => None,
        };
        let amount = match (quantity, in_cohort) {
            (Quantity::Rows, cohort) => cohort.expect("other cells count rows by the publisher's columns"),
            (Quantity::Matches, None) => self.column(Content::Present),
            (Quantity::Matches, Some(cohort)) => {
                let present = self.column(Content::Present);
                self.b.and(present, cohort)
            }
            (quantity, cohort) => self.after_opportunity(quantity, cohort),
        };
        self.b.mask(in_cell, amount)
    }

    /// The publisher's part of a cell: arm, breakdown, and whether reached for the reached counts.
    fn publisher_bit(&mut self, cell: LiftCell, arm: TrialArm, quantity: Quantity) -> NodeId {
        let mut bit = self.is(Content::Arm, arm.code());
        if let LiftCell::Breakdown(i) = cell {
            let value = self.is(Content::Breakdown, i.into());
            bit = self.b.and(bit, value);
        }
        if matches!(quantity, Quantity::ReachedConversions | Quantity::ReachedValue) {
            let reached = self.column(Content::Reached);
            bit = self.b.and(bit, reached);
        }
        bit
    }

    /// A quantity of a person whose rows lie in several slots: what slots that count add up to, bounded here.
    fn over_slots(&mut self, quantity: Quantity) -> NodeId {
        match quantity {
            Quantity::Matches => {
                let bits = self.slots(Self::filled);
                self.any(bits)
            }
            Quantity::Converters => {
                let bits = self.slots(|study| {
                    let (filled, some) =
                        (study.filled(), study.after_opportunity(Quantity::Converters, None));
                    study.b.and(filled, some)
                });
                self.any(bits)
            }
            Quantity::Conversions | Quantity::ReachedConversions => {
                let most = self.conversions();
                let count = self.sum_of_slots(quantity, ValueType::u(bits(most)));
                self.b.clamp(count, most)
            }
            Quantity::ClampedUsers => {
                let total = self.total();
                let cap = self.b.constant(self.lift.clamp, self.b.ty(total));
                self.b.lt(cap, total)
            }
            Quantity::Squares => {
                let value = self.clamped_total();
                self.square(value)
            }
            _ => self.clamped_total(),
        }
    }

    fn slots(&mut self, mut of: impl FnMut(&mut Self) -> NodeId) -> Vec<NodeId> {
        let all = (0..self.lift.slots()).map(|slot| {
            self.slot = slot;
            of(self)
        });
        all.collect()
    }

    /// Whether a slot counts: it holds a match, or its advertiser has the person.
    fn filled(&mut self) -> NodeId {
        self.column(if self.lift.several() { Content::Present } else { Content::Valid })
    }

    /// Whether any of some bits is set.
    fn any(&mut self, mut bits: Vec<NodeId>) -> NodeId {
        while bits.len() > 1 {
            bits = bits.chunks(2).map(|c| if let [a, b] = c { self.b.or(*a, *b) } else { c[0] }).collect();
        }
        bits[0]
    }

    /// The sum over slots of what each that counts has of a quantity.
    fn sum_of_slots(&mut self, quantity: Quantity, ty: ValueType) -> NodeId {
        let parts = self.slots(|study| {
            let (filled, part) = (study.filled(), study.after_opportunity(quantity, None));
            let part = study.b.mask(filled, part);
            study.b.cast(part, ty)
        });
        parts.into_iter().reduce(|a, b| self.b.add(a, b)).expect("a row has a slot")
    }

    /// The sum of values over slots, each at most one above the clamp: as much as it takes to know that R is
    /// exceeded.
    fn total(&mut self) -> NodeId {
        let most = u128::from(self.lift.slots()) * self.slot_bound();
        self.sum_of_slots(Quantity::Value, ValueType::u(bits(most.max(self.lift.clamp))))
    }

    fn clamped_total(&mut self) -> NodeId {
        let total = self.total();
        let value = self.b.clamp(total, self.lift.bound());
        self.b.cast(value, ValueType::u(bits(self.lift.bound())))
    }

    /// Most that one slot adds to a sum of values: R, or one more where several slots are added up.
    fn slot_bound(&self) -> u128 {
        let more = u128::from(self.lift.slots() > 1);
        self.lift.most().min(self.lift.clamp + more)
    }

    fn square(&mut self, value: NodeId) -> NodeId {
        let wide = self.b.cast(value, ValueType::u(2 * self.b.ty(value).width));
        self.b.mul(wide, wide)
    }

    /// The quantity of the events that count: one-hot selection among the advertiser's clear windows.
    fn after_opportunity(&mut self, quantity: Quantity, cohort: Option<NodeId>) -> NodeId {
        let after = self.column(Content::Time);
        let until = self.lift.within.map(|within| self.window_end(after, within));
        let keys = self.running_maxima();
        let k = self.lift.max_events;
        let windows: Vec<(u8, u8)> = match until {
            Some(_) => (0..k).flat_map(|first| (first..k).map(move |last| (first, last))).collect(),
            None => (0..k).map(|first| (first, k - 1)).collect(),
        };
        let values = windows.into_iter().map(|window| self.window(quantity, window, cohort)).collect();
        self.b.lookup(Lookup { after, until, keys, values })
    }

    /// `time + within`, at most the last proper time. One bit wider while adding, so it cannot wrap.
    fn window_end(&mut self, time: NodeId, within: u32) -> NodeId {
        let (ty, last) = (self.b.ty(time), u128::from(self.lift.no_time()) - 1);
        let wide = ValueType::u(ty.width + 1);
        let wide_time = self.b.cast(time, wide);
        // A longer window than the clock has no other meaning than the clock's length.
        let within = self.b.constant(u128::from(within).min(ty.mask()), wide);
        let end = self.b.add(wide_time, within);
        let end = self.b.clamp(end, last);
        self.b.cast(end, ty)
    }

    /// Explicit maxima, so that their owner computes them and no gate does.
    fn running_maxima(&mut self) -> Vec<NodeId> {
        let mut keys: Vec<NodeId> = Vec::new();
        for j in 0..self.lift.max_events {
            let time = self.column(Content::EventTime(j));
            let key = match keys.last() {
                Some(before) => self.b.max(*before, time),
                None => time,
            };
            keys.push(key);
        }
        keys
    }

    /// The quantity of the events `first..=last`, 0 outside the cohort. The advertiser's alone.
    fn window(&mut self, quantity: Quantity, (first, last): (u8, u8), cohort: Option<NodeId>) -> NodeId {
        let value = match quantity {
            Quantity::Converters => self.b.constant(1, ValueType::BIT),
            Quantity::Conversions | Quantity::ReachedConversions => {
                let ty = ValueType::u(bits(self.lift.max_events.into()));
                self.b.constant(u128::from(last - first + 1), ty)
            }
            Quantity::Squares => {
                let value = self.clamped(first, last);
                self.square(value)
            }
            Quantity::ClampedUsers => {
                let sum = self.window_sum(first, last);
                let cap = self.b.constant(self.lift.clamp, self.b.ty(sum));
                self.b.lt(cap, sum)
            }
            _ => self.clamped(first, last),
        };
        match cohort {
            Some(cohort) => self.b.mask(cohort, value),
            None => value,
        }
    }

    fn clamped(&mut self, first: u8, last: u8) -> NodeId {
        let sum = self.window_sum(first, last);
        let bound = self.slot_bound();
        let value = self.b.clamp(sum, bound);
        self.b.cast(value, ValueType::u(bits(bound)))
    }

    /// Sum of values, in a type that holds K of them and R.
    fn window_sum(&mut self, first: u8, last: u8) -> NodeId {
        let ty = ValueType::u(bits(self.lift.most().max(self.lift.clamp)));
        let mut values = (first..=last).rev().map(Content::EventValue);
        let mut sum = self.value(values.next().expect("a window has an event"), ty);
        for content in values {
            let value = self.value(content, ty);
            sum = self.b.add(value, sum);
        }
        sum
    }

    fn value(&mut self, content: Content, ty: ValueType) -> NodeId {
        let value = self.column(content);
        self.b.cast(value, ty)
    }
}

/// Mechanisms and outputs.
impl Study<'_> {
    fn release(&mut self, viewer: Viewer, rho: &Rational) {
        let families = self.lift.families();
        let rho = rho * ratio(1, families.len());
        let (core, each) = match self.lift.also.len() {
            0 => (rho, ratio(0, 1)),
            counts => (&rho * ratio(4, 5), &rho * ratio(1, 5 * counts)),
        };
        for family in families {
            match self.lift.mode {
                ReleaseMode::Sums => self.sums(viewer, family, &core),
                ReleaseMode::Variance => self.difference(viewer, &core, DifferenceStatistic::Variance),
                ReleaseMode::Algorithm1 => self.difference(viewer, &core, DifferenceStatistic::Algorithm1),
                ReleaseMode::Algorithm1AsPublished => {
                    self.difference(viewer, &core, DifferenceStatistic::Algorithm1AsPublished)
                }
            }
            for count in &self.lift.also {
                self.noised(viewer, family, (*count).into(), &each);
            }
        }
    }

    /// n, S and Q of a family by one mechanism; exact n where it is of the publisher's own columns and for
    /// it.
    fn sums(&mut self, viewer: Viewer, family: CellFamily, rho: &Rational) {
        let knows_rows = viewer == PUBLISHER.into() && family != CellFamily::Cohort;
        if knows_rows {
            self.exact_rows(family);
        }
        let change = if knows_rows { Change::Outcome } else { Change::Person };
        let rows = self.totals(family, Quantity::Rows);
        let fold =
            |total: &CellTotal, q| self.layout.fold(total.cell, total.arm, q).expect("the core is summed");
        let cells: Vec<[u32; 3]> = rows.iter().map(|total| Quantity::CORE.map(|q| fold(total, q))).collect();
        let clamp = self.lift.bound();
        let mechanism = self.b.mechanism(viewer, rho, MechanismKind::Joint { change, clamp, cells });
        let outputs =
            rows.iter().flat_map(|total| change.combinations(clamp).iter().map(move |c| (total, *c)));
        for (output, (total, combination)) in (0..).zip(outputs) {
            let value = self.b.noised(mechanism, output);
            let noised = Some((mechanism, output));
            self.reveal(viewer, total.cell, Some(total.arm), combination.into(), (value, noised));
        }
    }

    /// The publisher's own counts of a family: from its columns alone.
    fn exact_rows(&mut self, family: CellFamily) {
        for total in self.totals(family, Quantity::Rows) {
            let value = self.b.total(total.fold);
            self.reveal(PUBLISHER.into(), total.cell, Some(total.arm), Quantity::Rows, (value, None));
        }
    }

    /// One Gaussian mechanism over all cells and both arms of a family.
    fn noised(&mut self, viewer: Viewer, family: CellFamily, quantity: Quantity, rho: &Rational) {
        let totals = self.totals(family, quantity);
        let folds = totals.iter().map(|t| t.fold).collect();
        let mechanism = self.b.mechanism(viewer, rho, MechanismKind::Gaussian(folds));
        for (output, total) in totals.iter().enumerate() {
            let value = self.b.noised(mechanism, output as u32);
            let noised = Some((mechanism, output as u32));
            self.reveal(viewer, total.cell, Some(total.arm), quantity, (value, noised));
        }
    }

    /// The overall difference of means with its uncertainty; the arm sizes are published.
    fn difference(&mut self, viewer: Viewer, rho: &Rational, statistic: DifferenceStatistic) {
        let [test, control] = TrialArm::BOTH.map(|arm| {
            let fold = |q| self.layout.fold(LiftCell::Overall, arm, q);
            Quantity::CORE.map(|q| fold(q).expect("the core is summed in every cell"))
        });
        self.layout.published = Some([test[0], control[0]]);
        if viewer == PUBLISHER.into() {
            self.exact_rows(CellFamily::Overall);
        }
        let kind = MechanismKind::Difference { statistic, test, control };
        let mechanism = self.b.mechanism(viewer, rho, kind);
        for (output, quantity) in [(0, Quantity::Difference), (1, Quantity::Spread)] {
            let value = self.b.noised(mechanism, output);
            self.reveal(viewer, LiftCell::Overall, None, quantity, (value, Some((mechanism, output))));
        }
    }

    fn totals(&self, family: CellFamily, quantity: Quantity) -> Vec<CellTotal> {
        let belongs = |t: &&CellTotal| t.cell.family() == family && t.quantity == quantity;
        self.layout.totals.iter().filter(belongs).copied().collect()
    }

    fn reveal(
        &mut self,
        viewer: Viewer,
        cell: LiftCell,
        arm: Option<TrialArm>,
        quantity: Quantity,
        (value, noised): (NodeId, Option<(u32, u32)>),
    ) {
        let label = self.label(cell, arm, quantity);
        self.b.reveal(&label, viewer, value);
        self.layout.outputs.push(OutputMeaning { viewer, cell, arm, quantity, noised });
    }

    /// `value, vaccine` or `value, breakdown north, vaccine`.
    fn label(&self, cell: LiftCell, arm: Option<TrialArm>, quantity: Quantity) -> String {
        let lift = self.lift;
        let Some(arm) = arm else {
            let what = match (quantity, lift.mode) {
                (Quantity::Difference, _) => "difference of means",
                (_, ReleaseMode::Variance) => "variance of the difference",
                _ => "standard error of the difference",
            };
            return format!("{what}, {} minus {}", lift.arms[0], lift.arms[1]);
        };
        let cell = match cell {
            LiftCell::Overall => String::new(),
            LiftCell::Breakdown(i) => format!(", breakdown {}", lift.breakdown[usize::from(i)]),
            LiftCell::Cohort(h) => format!(", cohort {}", lift.cohorts[usize::from(h)]),
        };
        format!("{}{cell}, {}", quantity.name(), arm.name(lift))
    }
}
