//! Events by their type and the value of the one field that a query compares with its registers, `[attr]` for most: where
//! these are few, an event's class says which it has, and where it leads from a set can be remembered.

use std::collections::HashMap;
use std::ops::Range;

use arrow_buffer::NullBuffer;
use foldhash::fast::FixedState;

use crate::arcs::forgetting::put;
use crate::arrow::check::are_valid;
use crate::arrow::rows::Column;
use crate::arrow::text::Texts;
use crate::lists::configuration::UNKNOWN;
use crate::predicates::kernel::{rows_mask, vectorized};
use crate::predicates::others::OTHERS;
use crate::program::body::CompiledBody;
use crate::program::compiled::{Class, Program};
use crate::program::expression::{EventView, FieldPath, Node};
use crate::program::value::Value;
use crate::rows::chunk::{Chunk, Payload};
use crate::rows::store::Rows;
use crate::segment::NO_KEY;

/// So many values are told apart; events with others are looked at one by one.
const MOST_VALUES: usize = 32;

/// The field, its values, and the classes that events have with them.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) path: FieldPath,
    /// Values and types that came together.
    values: Vec<(Value, Value)>,
    /// By class without value, and value.
    pub(crate) classes: HashMap<(u32, usize), u32, FixedState>,
}

/// Rows of a chunk whose types are looked at together.
const BLOCK: usize = 64;
/// With more values than this, they are not looked for together with the truths of predicates.
pub(crate) const FEW_VALUES: usize = 8;

/// Of rows whose type is known, and the same, the classes by the value of an int column.
struct PinnedInts {
    kind: Value,
    /// The ints that are told apart.
    known: Vec<i64>,
    /// By class without value and place in `known` from 1 on, the class and one; 0: not known yet.
    table: Vec<u32>,
}

impl PinnedInts {
    fn new(pinned: &Pinned, kind: Option<&str>) -> Self {
        let (known, numbers): (Vec<i64>, Vec<usize>) = Self::of_kind(pinned, kind).unzip();
        let kind = kind.map_or(Value::Unknown, |kind| Value::Str(kind.into()));
        let classes = pinned.classes.keys().map(|(class, _)| *class as usize + 1).max();
        let width = known.len() + 1;
        let mut table = vec![0; classes.unwrap_or(0) * width];
        for ((class, number), pinned) in &pinned.classes {
            if let Some(place) = numbers.iter().position(|known| known == number) {
                table[*class as usize * width + place + 1] = pinned + 1;
            }
        }
        Self { kind, known, table }
    }

    /// The ints that came with a type, and their numbers among the values.
    fn of_kind(pinned: &Pinned, kind: Option<&str>) -> impl Iterator<Item = (i64, usize)> {
        let values = pinned.values.iter().enumerate();
        values.filter_map(move |(number, value)| match value {
            (Value::Int(int), known) if is_kind(known, kind) => Some((*int, number)),
            _ => None,
        })
    }

    fn is_of(&self, kind: Option<&str>) -> bool {
        is_kind(&self.kind, kind)
    }

    /// Gives rows with these ints the classes that say which they have; a bit for each that has to be looked at alone.
    fn pin(&self, ints: &[i64], classes: &mut [u32]) -> u64 {
        let mut places = [0_u32; BLOCK];
        if let Ok(ints) = <&[i64; BLOCK]>::try_from(ints) {
            vectorized(
                #[inline(always)]
                || find_places(&self.known, ints, &mut places),
            );
        } else {
            for (row, int) in places.iter_mut().zip(ints) {
                *row = (1..)
                    .zip(&self.known)
                    .find(|(_, known)| *known == int)
                    .map_or(0, |(place, _)| place);
            }
        }
        let (width, mut left) = (self.known.len() + 1, 0);
        for (row, (class, place)) in classes.iter_mut().zip(places).enumerate() {
            let known = self
                .table
                .get(*class as usize * width + place as usize)
                .copied()
                .unwrap_or(0);
            left |= u64::from(known == 0) << row;
            *class = if known == 0 { *class } else { known - 1 };
        }
        left
    }
}

fn is_kind(known: &Value, kind: Option<&str>) -> bool {
    match (known, kind) {
        (Value::Str(known), Some(kind)) => **known == *kind,
        (Value::Unknown, None) => true,
        _ => false,
    }
}

/// Of each int the place among those that are known, from 1 on.
#[inline(always)]
#[allow(clippy::inline_always)] // into the code for the machine's vectors
fn find_places(known: &[i64], ints: &[i64; BLOCK], places: &mut [u32; BLOCK]) {
    for (place, known) in (1..).zip(known) {
        for (row, int) in places.iter_mut().zip(ints) {
            *row |= if int == known { place } else { 0 };
        }
    }
}

/// Rows all of one type, none of which lacks an int in the column of the field.
pub(crate) struct PinnedRows<'a> {
    pub(crate) ints: &'a [i64],
    /// The ints that are told apart, and their numbers among the values.
    known: Vec<(i64, usize)>,
}

impl PinnedRows<'_> {
    /// The ints that are told apart.
    pub(crate) fn known(&self) -> impl Iterator<Item = i64> {
        self.known.iter().map(|(int, _)| *int)
    }
}

impl Pinned {
    /// The same for some rows of a chunk, if they are such and few ints are told apart.
    pub(crate) fn rows<'a>(&self, chunk: &'a Chunk, rows: Range<usize>) -> Option<PinnedRows<'a>> {
        let column = IntColumn::of(chunk, &self.path)?;
        let kind = column.kind(&rows)?;
        let ints = PinnedInts::of_kind(self, kind);
        let known: Vec<(i64, usize)> = ints.take(FEW_VALUES + 1).collect();
        let is_whole = are_valid(column.nulls.as_ref(), rows.start, rows.end);
        (is_whole && (1..=FEW_VALUES).contains(&known.len())).then(|| PinnedRows {
            ints: &column.ints[rows],
            known,
        })
    }

    /// The classes of events that have a class without value, by the place of their value among those of rows.
    pub(crate) fn classes_of(&self, class: u32, rows: &PinnedRows<'_>) -> impl Iterator<Item = (usize, u32)> {
        let known = rows.known.iter().enumerate();
        known.filter_map(move |(place, (_, number))| Some((place, *self.classes.get(&(class, *number))?)))
    }
}

/// The event itself has to be looked at.
pub(crate) struct MustLook;

/// An event of which only the value of the field and the type are known.
struct ValueAlone<'a>(&'a Value, &'a Value);

impl EventView for ValueAlone<'_> {
    fn field(&self, _: &FieldPath) -> Value {
        self.0.clone()
    }

    fn ts(&self) -> i64 {
        0
    }

    fn kind(&self) -> Value {
        self.1.clone()
    }

    fn id(&self) -> Value {
        Value::Unknown
    }
}

/// All that a body's remaining fence and its transfer read of an event beside its type, if that is one field.
pub(crate) fn only_field<'a>(nodes: impl Iterator<Item = &'a Node> + Clone) -> Option<FieldPath> {
    let reads_more = nodes.clone().any(Node::reads_ts_or_id);
    let fields: Vec<FieldPath> = nodes.flat_map(Node::fields).collect();
    let (first, others) = fields.split_first()?;
    let reads_only_it = others.iter().all(|other| other == first) && !reads_more;
    reads_only_it.then(|| first.clone())
}

/// The column of the field, if it is one of ints.
struct IntColumn<'a> {
    ints: &'a [i64],
    nulls: Option<NullBuffer>,
    kinds: Option<(&'a Texts, usize)>,
}

impl<'a> IntColumn<'a> {
    fn of(chunk: &'a Chunk, path: &FieldPath) -> Option<Self> {
        let Payload::Arrow(rows) = &chunk.payload else {
            return None;
        };
        match rows.column(path) {
            Column::Ints(ints, nulls) if !chunk.is_reordered() => Some(Self {
                ints,
                nulls,
                kinds: rows.kinds(),
            }),
            _ => None,
        }
    }

    /// The type of rows that are all of one, or have none.
    #[allow(clippy::option_option)] // of two different meanings
    fn kind(&self, rows: &Range<usize>) -> Option<Option<&'a str>> {
        match self.kinds {
            None => Some(None),
            Some((kinds, offset)) => kinds.all_alike(offset + rows.start..offset + rows.end).map(Some),
        }
    }

    /// Pins rows together; a bit for each that has to be looked at alone.
    fn pin(&self, pinned: &Pinned, block: Range<usize>, ints: &mut Option<PinnedInts>, classes: &mut [u32]) -> u64 {
        let is_whole = are_valid(self.nulls.as_ref(), block.start, block.end);
        let Some(kind) = self.kind(&block).filter(|_| is_whole) else {
            return rows_mask(block.len());
        };
        if ints.as_ref().is_some_and(|ints| !ints.is_of(kind)) {
            *ints = None;
        }
        let known = ints.get_or_insert_with(|| PinnedInts::new(pinned, kind));
        known.pin(&self.ints[block.clone()], &mut classes[block])
    }
}

impl Program {
    /// Looks whether there is such a field, from all bodies that the query has.
    pub fn find_pin(&mut self) {
        let Some(register) = self.query.as_ref().and_then(|query| query.partition.first()).copied() else {
            return;
        };
        let keeps = |known: &CompiledBody| {
            let transfer = known.body.transfer.iter().find(|(target, _)| *target == register);
            transfer.and_then(|(_, node)| only_field(std::iter::once(node)))
        };
        self.pinned = self.bodies.iter().find_map(keeps).map(|path| Pinned {
            path,
            values: vec![(Value::Unknown, Value::Unknown)], // OTHERS
            classes: HashMap::default(),
        });
    }

    /// Gives the rows of a chunk from one on the classes that say which value they have; those without a key do not
    /// matter.
    pub(crate) fn pin_rows(&mut self, rows: &Rows, number: usize, begin: usize, keys: &[u32], classes: &mut [u32]) {
        let chunk = rows.chunk(number);
        let column = self
            .pinned
            .as_ref()
            .and_then(|pinned| IntColumn::of(chunk, &pinned.path));
        let mut ints: Option<PinnedInts> = None;
        let mut at = begin;
        while at < classes.len() {
            let most = &keys[at - begin..(at - begin + BLOCK).min(keys.len())];
            let count = most.iter().position(|key| *key == NO_KEY).unwrap_or(most.len());
            let block = at..at + count;
            at += count.max(1);
            let mut left = match (&column, &self.pinned) {
                (Some(column), Some(pinned)) => column.pin(pinned, block.clone(), &mut ints, classes),
                _ => rows_mask(count),
            };
            let before = self.classes.len();
            while left != 0 {
                let offset = block.start + left.trailing_zeros() as usize;
                classes[offset] = self.pin(classes[offset], &rows.view_of(chunk, offset));
                left &= left - 1;
            }
            if self.classes.len() != before {
                ints = None;
            }
        }
    }

    /// The class of an event that has another one without regard to its value.
    pub(crate) fn pin(&mut self, class: u32, event: &dyn EventView) -> u32 {
        let Some(pinned) = &mut self.pinned else {
            return class;
        };
        let value = (event.field(&pinned.path), event.kind());
        let known = pinned.values.iter().position(|known| *known == value);
        let number = match known {
            Some(number) => number,
            None if pinned.values.len() < MOST_VALUES => {
                pinned.values.push(value);
                pinned.values.len() - 1
            }
            None => return class,
        };
        if let Some(known) = pinned.classes.get(&(class, number)) {
            return *known;
        }
        self.new_pinned_class(class, number)
    }

    #[cold]
    pub(crate) fn new_pinned_class(&mut self, class: u32, value: usize) -> u32 {
        let number = self.free_classes.take(self.classes.len());
        let Class { consuming, epsilon, .. } = &self.classes[class as usize];
        let pinned = Class {
            consuming: consuming.clone(),
            epsilon: epsilon.clone(),
            origin: UNKNOWN,
            value: Some(value),
        };
        put(&mut self.classes, number, pinned);
        put(&mut self.starts, number, UNKNOWN);
        if let Some(pinned) = &mut self.pinned {
            pinned.classes.insert((class, value), number);
        }
        number
    }

    /// Takes a body whose outcome does not depend on more of an event than its class says: where it leads from a
    /// configuration, if anywhere.
    pub(crate) fn take_by_class(&mut self, class: u32, body: u32, from: u32) -> Result<Option<u32>, MustLook> {
        let compiled = &self.bodies[body as usize];
        if !(compiled.decides || compiled.computes) {
            return Ok(self.take(body, from, None));
        }
        let pinned = self.pinned.as_ref().ok_or(MustLook)?;
        let number = self.classes[class as usize].value.ok_or(MustLook)?;
        let (value, kind) = pinned.values[number].clone();
        if self.is_other(from, &value) {
            let path = pinned.path.clone();
            if let Ok(taken) = self.take_others(body, from, &path) {
                return Ok(taken);
            }
        }
        let compiled = &self.bodies[body as usize];
        let is_its = |pinned: &Pinned| compiled.only_field.as_ref() == Some(&pinned.path);
        if number == OTHERS || !self.pinned.as_ref().is_some_and(is_its) {
            return Err(MustLook);
        }
        Ok(self.take(body, from, Some(&ValueAlone(&value, &kind))))
    }
}
