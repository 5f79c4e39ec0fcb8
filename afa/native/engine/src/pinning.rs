//! Events by their type and the value of the one field that a query compares with its registers, `[attr]` for most: where
//! these are few, an event's class says which it has, and where it leads from a set can be remembered.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::configuration::UNKNOWN;
use crate::expression::{EventView, FieldPath, Node};
use crate::forgetting::put;
use crate::program::{Class, CompiledBody, Program};
use crate::value::Value;

/// So many values are told apart; events with others are looked at one by one.
const MOST_VALUES: usize = 32;

/// The field, its values, and the classes that events have with them.
#[derive(Debug)]
pub(crate) struct Pinned {
    path: FieldPath,
    /// Values and types that came together.
    values: Vec<(Value, Value)>,
    /// By class without value, and value.
    pub(crate) classes: HashMap<(u32, usize), u32, FixedState>,
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
            values: Vec::new(),
            classes: HashMap::default(),
        });
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
    fn new_pinned_class(&mut self, class: u32, value: usize) -> u32 {
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
        let is_its = |pinned: &&Pinned| compiled.only_field.as_ref() == Some(&pinned.path);
        let pinned = self.pinned.as_ref().filter(is_its).ok_or(MustLook)?;
        let number = self.classes[class as usize].value.ok_or(MustLook)?;
        let (value, kind) = pinned.values[number].clone();
        Ok(self.take(body, from, Some(&ValueAlone(&value, &kind))))
    }
}
