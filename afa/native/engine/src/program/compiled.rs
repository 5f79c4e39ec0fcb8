//! A pattern compiled: arcs by their bodies, event predicates apart from register tests, events by their class.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::arcs::forgetting::{Numbers, put};
use crate::lists::configuration::{Code, FINAL, Sets, UNKNOWN};
use crate::lists::shapes::Shapes;
use crate::predicates::pinning::Pinned;
use crate::predicates::predicate::{Columns, Predicates};
use crate::program::body::{CompiledBody, Needs};
use crate::program::epochs::{Alive, ClassTable, Epoch, Epochs, Life, Moves, NOTHING};
use crate::program::expression::FieldPath;
use crate::program::pattern::{Body, Frame, Register, Window};
use crate::program::query::{Output, Query};
use crate::rows::chunk::Chunk;

/// The class of an event that a pattern does not see, because its key field differs.
pub const UNSEEN: u32 = u32::MAX;
/// The class of an event that Cleanse has not released to a pattern yet.
pub const UNRELEASED: u32 = u32::MAX - 1;

/// What all patterns of an engine share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Event predicates.
    pub predicates: Predicates,
    /// Columns of triggers.
    pub columns: Columns,
    /// Another one with every change of an arc's life.
    pub(crate) arcs_version: u64,
}

/// The bodies that an event of a class may take.
pub(crate) struct Class {
    pub(crate) consuming: Vec<u32>,
    pub(crate) epsilon: Vec<u32>,
    /// The set before the first event, closed under epsilon arcs.
    pub(crate) origin: Code,
    /// Which value its events have, where that is known.
    pub(crate) value: Option<usize>,
}

impl Class {
    /// One that no event has.
    pub(crate) fn nothing() -> Self {
        Self {
            consuming: Vec::new(),
            epsilon: Vec::new(),
            origin: UNKNOWN,
            value: None,
        }
    }
}

/// A pattern and everything that is computed from it alone.
pub struct Program {
    /// Its name.
    pub name: Arc<str>,
    /// Its window.
    pub window: Window,
    /// Its registers, in order of names.
    pub registers: Vec<Register>,
    /// The path of the key field, if it has one.
    pub key_field: Option<FieldPath>,
    /// Cleanse: events are released below the punctuation plus this; `None` is infinity.
    pub speculation: Option<i64>,
    /// Inserts wait until they are final.
    pub hold: bool,
    /// AFA+O.
    pub gap_free: bool,
    pub(crate) output: Output,
    pub(crate) query: Option<Arc<Query>>,
    pub(crate) pinned: Option<Pinned>,
    /// Fences that were unknown and transfers that failed.
    pub errors: u64,
    /// Fences that were evaluated.
    pub evaluations: u64,
    /// Interned configurations, sets and transitions.
    pub sets: Sets,
    /// Shapes of lists, and where they lead.
    pub(crate) shapes: Shapes,
    /// The most partial matches of one start event.
    pub max_set_size: usize,
    /// The states of a linear pattern in order, from the start to the only final one; empty: it is not linear.
    pub chain: Vec<u32>,
    /// The only final configuration of a linear pattern, once it was asked for.
    pub(crate) last_configuration: Option<u32>,
    pub(crate) start: u32,
    pub(crate) finals: Vec<bool>,
    pub(crate) bodies: Vec<CompiledBody>,
    pub(crate) classes: Vec<Class>,
    /// By class, where computations that begin with such an event stand after it, if the event itself does not matter.
    pub(crate) starts: Vec<Code>,
    states: Vec<Arc<str>>,
    pub(crate) body_numbers: HashMap<Body, u32, FixedState>,
    pub(crate) class_numbers: HashMap<Vec<u32>, u32, FixedState>,
    epochs: Epochs,
    has_forgotten: bool,
    pub(crate) alive: Vec<Alive>,
    pub(crate) alive_numbers: HashMap<Vec<u32>, u32, FixedState>,
    pub(crate) moves: Moves,
    pub(crate) free_bodies: Numbers,
    pub(crate) free_alive: Numbers,
    pub(crate) free_classes: Numbers,
}

impl Program {
    /// A program without arcs.
    #[must_use]
    pub fn new(frame: Frame) -> Self {
        let mut program = Self {
            name: frame.name,
            window: frame.window,
            registers: frame.registers,
            key_field: frame.key_field,
            speculation: frame.speculation,
            hold: frame.hold,
            gap_free: frame.gap_free,
            output: frame.output,
            query: frame.query,
            pinned: None,
            errors: 0,
            evaluations: 0,
            sets: Sets::default(),
            shapes: Shapes::default(),
            max_set_size: usize::MAX,
            chain: Vec::new(),
            last_configuration: None,
            start: 0,
            finals: Vec::new(),
            bodies: Vec::new(),
            classes: Vec::new(),
            starts: Vec::new(),
            states: Vec::new(),
            body_numbers: HashMap::default(),
            class_numbers: HashMap::default(),
            epochs: Epochs::new(NOTHING),
            has_forgotten: false,
            alive: vec![Alive::new(Vec::new(), Vec::new(), Vec::new())],
            alive_numbers: HashMap::default(),
            moves: Moves::default(),
            free_bodies: Numbers::default(),
            free_alive: Numbers::default(),
            free_classes: Numbers::default(),
        };
        program.alive_numbers.insert(Vec::new(), NOTHING);
        program.start = program.state(&frame.start);
        for name in &frame.finals {
            program.make_final(name);
        }
        program
    }

    /// The number of a state, new or known.
    ///
    /// # Panics
    /// If there are more than 2^32 states.
    pub fn state(&mut self, name: &str) -> u32 {
        let found = self.states.iter().position(|known| &**known == name);
        let number = found.unwrap_or_else(|| {
            self.states.push(name.into());
            self.finals.push(false);
            self.states.len() - 1
        });
        u32::try_from(number).expect("states fit in 32 bits")
    }

    /// The number of a state that is known.
    #[must_use]
    pub fn find_state(&self, name: &str) -> Option<u32> {
        let found = self.states.iter().position(|known| &**known == name);
        found.and_then(|number| u32::try_from(number).ok())
    }

    /// The name of a state.
    #[must_use]
    pub fn state_name(&self, number: u32) -> &Arc<str> {
        &self.states[number as usize]
    }

    /// Whether a state is final.
    #[must_use]
    pub fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Makes a state final; true if it was not, in which case codes of sets must be marked anew.
    pub fn make_final(&mut self, name: &str) -> bool {
        let number = self.state(name) as usize;
        !std::mem::replace(&mut self.finals[number], true)
    }

    /// The number of a body, new or known.
    pub fn body_number(&mut self, body: Body, shared: &mut Shared) -> u32 {
        if let Some(number) = self.body_numbers.get(&body) {
            return *number;
        }
        let mut parts = body.parts();
        let needs = Needs::of(&mut parts, shared);
        self.add_body(CompiledBody::new(body, needs, parts.rest))
    }

    /// The number of a body that the event alone decides nothing about, new or known.
    fn remaining_number(&mut self, body: Body) -> u32 {
        let known = self.body_numbers.get(&body).copied();
        known.unwrap_or_else(|| {
            let rest = body.fence.clone();
            self.add_body(CompiledBody::new(body, Needs::default(), rest))
        })
    }

    fn add_body(&mut self, compiled: CompiledBody) -> u32 {
        let number = self.free_bodies.take(self.bodies.len());
        self.body_numbers.insert(compiled.body.clone(), number);
        put(&mut self.bodies, number, compiled);
        number
    }

    /// Whether an arc has or had this body.
    pub(crate) fn was_alive(&self, body: u32) -> bool {
        self.bodies[body as usize].was_alive
    }

    /// The same; from now on one had.
    pub(crate) fn note_alive(&mut self, body: u32) -> bool {
        std::mem::replace(&mut self.bodies[body as usize].was_alive, true)
    }

    /// The fields of events that the pattern reads.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldPath> {
        let bodies = self.bodies.iter().flat_map(|known| known.body.fields());
        let negations = self.query.iter().flat_map(|query| query.fields());
        bodies.chain(negations).chain(self.key_field.clone()).collect()
    }

    /// The body of a number.
    #[must_use]
    pub fn body(&self, number: u32) -> &Body {
        &self.bodies[number as usize].body
    }

    /// Changes the life of an arc: what it was, if anything, and what it is now.
    pub fn change_life(&mut self, old: Option<&Life>, new: Option<&Life>, shared: &mut Shared) {
        let (old, new) = (old.filter(|life| !life.is_empty()), new.filter(|life| !life.is_empty()));
        let mut epochs = std::mem::take(&mut self.epochs);
        if let (Some(old), Some(new)) = (old, new)
            && old.body == new.body
        {
            for part in old.outside(new) {
                epochs.change(&part, |alive| self.moved(alive, part.body, false, shared));
            }
            for part in new.outside(old) {
                epochs.change(&part, |alive| self.moved(alive, part.body, true, shared));
            }
        } else {
            if let Some(life) = old {
                epochs.change(life, |alive| self.moved(alive, life.body, false, shared));
            }
            if let Some(life) = new {
                epochs.change(life, |alive| self.moved(alive, life.body, true, shared));
            }
        }
        self.epochs = epochs;
        shared.arcs_version += 1;
    }

    /// What bodies become when one more is alive, or one less.
    fn moved(&mut self, alive: u32, body: u32, comes: bool, shared: &mut Shared) -> u32 {
        if let Some(known) = self.moves.get(alive, body, comes) {
            return known;
        }
        let mut bodies = self.alive[alive as usize].bodies.clone();
        let at = bodies.partition_point(|known| *known < body);
        if comes {
            bodies.insert(at, body);
        } else if bodies.get(at) == Some(&body) {
            bodies.remove(at);
        }
        let number = self.alive_number(bodies, shared);
        self.moves.put(alive, body, comes, number);
        number
    }

    fn alive_number(&mut self, bodies: Vec<u32>, shared: &mut Shared) -> u32 {
        if let Some(number) = self.alive_numbers.get(&bodies) {
            return *number;
        }
        let mut predicates = Vec::new();
        for body in &bodies {
            let compiled = &mut self.bodies[*body as usize];
            if compiled.needs.is_none() {
                compiled.needs = Some(Needs::of(&mut compiled.body.parts(), shared));
            }
            predicates.extend(compiled.all_predicates());
        }
        predicates.sort_unstable();
        predicates.dedup();
        let columns = self.columns_of(&bodies, shared);
        let number = self.free_alive.take(self.alive.len());
        let alive = Alive::new(bodies.clone(), predicates, columns);
        put(&mut self.alive, number, alive);
        self.alive_numbers.insert(bodies, number);
        number
    }

    /// The number of what is alive at an instant; the same number means the same bodies.
    #[must_use]
    #[inline]
    pub fn alive_at(&self, ts: i64) -> u32 {
        self.epochs.alive_at(ts)
    }

    /// The epochs from the one of an instant on.
    #[must_use]
    pub fn epochs_from(&self, ts: i64) -> &[Epoch] {
        self.epochs.from_instant(ts)
    }

    /// The last instant at which the same bodies are alive as at this one.
    #[must_use]
    pub fn alive_until(&self, ts: i64) -> i64 {
        self.epochs.last_instant(ts)
    }

    /// The bodies of a number and what follows from them.
    #[must_use]
    pub fn alive(&self, number: u32) -> &Alive {
        &self.alive[number as usize]
    }

    /// The epochs as they are, to compare with what they become.
    #[must_use]
    pub fn epochs(&self) -> Epochs {
        self.epochs.clone()
    }

    /// Forgets the epochs that no stored event can be in.
    pub fn forget_epochs(&mut self, punctuation: i64) {
        let reach = match self.window {
            Window::Time(length) => length,
            _ => 0,
        };
        self.has_forgotten |= self.epochs.forget_before(punctuation.saturating_sub(reach));
    }

    /// Whether epochs were forgotten that a partition far behind would need.
    #[must_use]
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten
    }

    /// Makes all epochs anew from the lives of all arcs.
    pub fn recall_epochs(&mut self, lives: &[Life], shared: &mut Shared) {
        self.epochs = Epochs::new(NOTHING);
        self.has_forgotten = false;
        for life in lives {
            self.change_life(None, Some(life), shared);
        }
    }

    /// Adds the predicates that decide between classes in this stretch of time, some of them several times.
    pub(crate) fn ask_between(&self, from: i64, to: i64, wanted: &mut Vec<u32>) {
        // Where arcs take turns, the same two or three come again and again.
        let mut last = [NOTHING; 2];
        for epoch in self.epochs_from(from).iter().take_while(|epoch| epoch.from <= to) {
            if !last.contains(&epoch.alive) {
                last = [last[1], epoch.alive];
                wanted.extend(&self.alive[epoch.alive as usize].predicates);
            }
        }
    }

    /// The class of a row by what is alive at its time; its truths must be prepared.
    pub fn class_of(&mut self, chunk: &Chunk, offset: usize) -> u32 {
        let alive = self.epochs.alive_at(chunk.times()[offset]);
        self.class_in(alive, chunk, offset)
    }

    /// The class of a row if these bodies are alive.
    #[inline]
    pub fn class_in(&mut self, number: u32, chunk: &Chunk, offset: usize) -> u32 {
        let alive = &self.alive[number as usize];
        if let ClassTable::Dense(table) = &alive.classes {
            let mut index = 0;
            for (bit, predicate) in alive.predicates.iter().enumerate() {
                index |= usize::from(chunk.is_true(*predicate, offset)) << bit;
            }
            let known = table[index];
            if known > 0 {
                return known - 1;
            }
        }
        self.class_by_truths(number, chunk, offset)
    }

    #[cold]
    fn class_by_truths(&mut self, number: u32, chunk: &Chunk, offset: usize) -> u32 {
        let alive = &self.alive[number as usize];
        let mut truths = vec![0_u64; alive.predicates.len().div_ceil(64).max(1)];
        for (bit, predicate) in alive.predicates.iter().enumerate() {
            truths[bit / 64] |= u64::from(chunk.is_true(*predicate, offset)) << (bit % 64);
        }
        if let ClassTable::Sparse(known) = &alive.classes
            && let Some(class) = known.get(&truths)
        {
            return *class;
        }
        let holds = |predicate: &u32| {
            let index = alive.predicates.binary_search(predicate);
            index.is_ok_and(|bit| truths[bit / 64] >> (bit % 64) & 1 != 0)
        };
        let is_enabled = |body: &&u32| self.bodies[**body as usize].predicates().iter().all(holds);
        let bodies = alive.bodies.iter().filter(is_enabled);
        let bodies: Vec<(u32, Option<Body>)> = bodies
            .map(|body| (*body, self.bodies[*body as usize].remaining(&holds)))
            .collect();
        let number_of =
            |(body, remaining): (u32, Option<Body>)| remaining.map_or(body, |rest| self.remaining_number(rest));
        let mut enabled: Vec<u32> = bodies.into_iter().map(number_of).collect();
        enabled.sort_unstable();
        enabled.dedup();
        let class = self.class_number(enabled);
        match &mut self.alive[number as usize].classes {
            #[allow(clippy::cast_possible_truncation)] // at most MAX_DENSE_PREDICATES bits
            ClassTable::Dense(table) => table[truths[0] as usize] = class + 1,
            ClassTable::Sparse(known) => {
                known.insert(truths, class);
            }
        }
        class
    }

    fn class_number(&mut self, enabled: Vec<u32>) -> u32 {
        if let Some(number) = self.class_numbers.get(&enabled) {
            return *number;
        }
        let number = self.free_classes.take(self.classes.len());
        let (epsilon, consuming) = enabled
            .iter()
            .partition(|body| self.bodies[**body as usize].body.epsilon);
        let class = Class {
            consuming,
            epsilon,
            origin: UNKNOWN,
            value: None,
        };
        put(&mut self.classes, number, class);
        put(&mut self.starts, number, UNKNOWN);
        self.class_numbers.insert(enabled, number);
        number
    }

    /// The code of a set: its number, marked if it has a final configuration.
    #[must_use]
    pub fn code(&self, set: u32) -> Code {
        let is_final = |member: &u32| self.finals[self.sets.configuration(*member).state as usize];
        if self.sets.set(set).members.iter().any(is_final) {
            set | FINAL
        } else {
            set
        }
    }
}
