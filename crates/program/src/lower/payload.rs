//! What an owner attaches to its rows before they are matched: its entries, packed into fields.
//!
//! Bits are packed into words of up to 128, numbers stand alone. Where a joined row has several slots of one
//! party, each slot has the same fields: the party makes one payload for each of its rows, and the match
//! copies it into whatever slot.

use super::joined::{EntryKind, JoinedPlan};
use crate::graph::OpNode;
use crate::{Holder, NodeId, Op};
use base::{Error, PartyId};
use std::collections::HashMap;

/// The fields of one party's rows, and which entries they carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPayload {
    /// The fields, in order.
    pub fields: Vec<PayloadField>,
    /// By slot: the entries of the plan in the order in which [`PayloadField::parts`] counts them.
    pub entries: Vec<Vec<usize>>,
}

/// One field of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadField {
    /// How it is shared, and its width.
    pub kind: EntryKind,
    /// Position in a slot's entries, and the lowest bit, of everything that it holds.
    pub parts: Vec<(usize, u8)>,
}

impl RowPayload {
    /// Where an entry lies: slot, field, lowest bit. `None` when it is not in this payload.
    #[must_use]
    pub fn place(&self, entry: usize) -> Option<(u32, usize, u8)> {
        let of = |slot: &Vec<usize>| slot.iter().position(|e| *e == entry);
        let (slot, at) = (0..).zip(&self.entries).find_map(|(slot, e)| Some((slot, of(e)?)))?;
        let mut fields = self.fields.iter().enumerate();
        fields
            .find_map(|(f, field)| field.parts.iter().find(|part| part.0 == at).map(|part| (slot, f, part.1)))
    }
}

impl JoinedPlan {
    /// The payload of a party's rows, over `slots` slots. `place` gives the slot of a column and a number
    /// that the same column of every other slot has too; for one slot `|column| (0, column)`.
    ///
    /// # Errors
    /// [`base::Fault::Misuse`] when an entry is of more than one slot, or the slots differ: a bug of the
    /// study.
    pub fn payload(
        &self,
        party: PartyId,
        slots: u32,
        place: &dyn Fn(u32) -> (u32, u32),
    ) -> Result<RowPayload, Error> {
        let shapes = Shapes::new(self, place);
        let mut entries: Vec<Vec<usize>> = vec![Vec::new(); slots as usize];
        for entry in self.own(party) {
            let (slot, _) = shapes.of(self.entries[entry].node)?;
            let slot = entries.get_mut(slot.unwrap_or(0) as usize);
            slot.ok_or_else(|| Error::misuse(format!("entry {entry} is of a slot that there is not")))?
                .push(entry);
        }
        let key = |entry: &usize| -> Result<(u32, EntryKind), Error> {
            let of = &self.entries[*entry];
            Ok((shapes.of(of.node)?.1, of.kind))
        };
        let (first, others) = entries.split_first_mut().ok_or_else(|| Error::misuse("a row has a slot"))?;
        let wanted = first.iter().map(key).collect::<Result<Vec<_>, _>>()?;
        for slot in others {
            let mut known = HashMap::new();
            for entry in slot.iter() {
                known.insert(key(entry)?, *entry);
            }
            let alike: Option<Vec<usize>> = wanted.iter().map(|key| known.get(key).copied()).collect();
            let alike = alike.filter(|alike| alike.len() == slot.len());
            *slot = alike.ok_or_else(|| Error::misuse("the slots of a row enter different things"))?;
        }
        let kinds = first.iter().map(|entry| self.entries[*entry].kind);
        Ok(RowPayload { fields: fields(kinds), entries })
    }
}

/// Packs entries of these kinds.
fn fields(kinds: impl Iterator<Item = EntryKind>) -> Vec<PayloadField> {
    let mut fields: Vec<PayloadField> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, kind) in kinds.enumerate() {
        if let (Some(f), EntryKind::Bits(more)) = (open, kind)
            && let PayloadField { kind: EntryKind::Bits(bits), parts } = &mut fields[f]
            && *bits + more <= 128
        {
            parts.push((at, *bits));
            *bits += more;
            continue;
        }
        if matches!(kind, EntryKind::Bits(_)) {
            open = Some(fields.len());
        }
        fields.push(PayloadField { kind, parts: vec![(at, 0)] });
    }
    fields
}

/// What nodes are, whatever slot their columns are of.
struct Shapes {
    /// By node: the slots of its columns, and a number that nodes of the same shape share.
    nodes: Vec<(Vec<u32>, u32)>,
}

impl Shapes {
    fn new(plan: &JoinedPlan, place: &dyn Fn(u32) -> (u32, u32)) -> Self {
        let mut known: HashMap<OpNode, u32> = HashMap::new();
        let mut nodes: Vec<(Vec<u32>, u32)> = Vec::new();
        for node in &plan.program.row.nodes {
            let (mut node, mut slots) = (node.clone(), Vec::new());
            node.op.operands(|a| slots.extend_from_slice(&nodes[a.index()].0));
            node.op.operands_mut(|a| *a = NodeId(nodes[a.index()].1));
            if let Op::Column(column) = &mut node.op
                && let Holder::Party(_) = plan.program.columns[*column as usize].holder
            {
                let (slot, key) = place(*column);
                slots.push(slot);
                *column = key;
            }
            slots.sort_unstable();
            slots.dedup();
            // Two slots say already that it is of more than one.
            slots.truncate(2);
            let next = known.len() as u32;
            nodes.push((slots, *known.entry(node).or_insert(next)));
        }
        Self { nodes }
    }

    /// The slot of a node's columns, and its shape.
    fn of(&self, node: NodeId) -> Result<(Option<u32>, u32), Error> {
        match &self.nodes[node.index()] {
            (slots, shape) if slots.len() < 2 => Ok((slots.first().copied(), *shape)),
            _ => Err(Error::misuse(format!("row v{} is of several slots", node.0))),
        }
    }
}
