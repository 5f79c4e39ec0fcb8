//! Events of other partitions. Nearly all bodies of a query with `[attr]` ask for the value that their run began with, so
//! that an event with another one leads to the same from a set whatever else is in it, and that can be remembered: only
//! runs of its own partition have to look at it.

use crate::predicates::pinning::MustLook;
use crate::program::compiled::Program;
use crate::program::expression::{EventView, FieldPath, Node};
use crate::program::parting::denied;
use crate::program::value::{Comparison, Value};

/// The place among the pinned values of one that no run has.
pub(crate) const OTHERS: usize = 0;

impl Program {
    /// The class that an event has for the runs of a set if it is of another partition, but its class does not say so.
    pub(crate) fn class_of_others(&mut self, class: u32, set: usize, event: &dyn EventView) -> Option<u32> {
        if self.classes[class as usize].value.is_some() {
            return None;
        }
        let pinned = self.pinned.as_ref()?;
        #[allow(clippy::cast_possible_truncation)] // a set's number
        let member = *self.sets.set(set as u32).members.first()?;
        if !self.is_other(member, &event.field(&pinned.path)) {
            return None;
        }
        let known = pinned.classes.get(&(class, OTHERS)).copied();
        Some(known.unwrap_or_else(|| self.new_pinned_class(class, OTHERS)))
    }

    /// Whether a value of the field is not that of the partition in which a configuration's run began.
    pub(crate) fn is_other(&self, configuration: u32, value: &Value) -> bool {
        let Some(register) = self.query.as_ref().and_then(|query| query.partition.first()) else {
            return false;
        };
        let own = &self.sets.configuration(configuration).registers[*register];
        !own.is_unknown() && Comparison::Equal.apply(value, own) != Some(true)
    }

    /// Where a body leads from a configuration, if anywhere, at any event of another partition.
    pub(crate) fn take_others(&mut self, body: u32, from: u32, path: &FieldPath) -> Result<Option<u32>, MustLook> {
        let partition = self.query.as_ref().map_or(&[][..], |query| &query.partition);
        let register = *partition.first().ok_or(MustLook)?;
        let (field, own) = (Box::new(Node::Field(path.clone())), Box::new(Node::Register(register)));
        let is_own = Node::Comparison(Comparison::Equal, field, own);
        let compiled = &self.bodies[body as usize];
        if compiled.residual.contains(&is_own) {
            return Ok(None);
        }
        // An event without the field stands for all others.
        let denies_it = |node: &Node| denied(node).is_some_and(|all| all.clone().conjuncts().contains(&is_own));
        let is_certain = |node: &Node| !node.reads_event() || denies_it(node);
        if compiled.computes || !compiled.residual.iter().all(is_certain) {
            return Err(MustLook);
        }
        Ok(self.take(body, from, None))
    }
}
