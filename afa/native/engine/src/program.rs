//! A pattern compiled: arcs by their bodies, event predicates apart from register tests, events by their class.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::configuration::{Configuration, Configurations, FINAL, Transition};
use crate::expression::{EventView, FieldPath, Node};
use crate::pattern::{Body, Frame, Register, Window};
use crate::value::Value;

struct CompiledBody {
    body: Body,
    /// Conjuncts that read the event alone: part of the event's class.
    predicates: Vec<u32>,
    /// The other conjuncts.
    residual: Vec<Node>,
    /// Whether a residual or the transfer reads the event.
    dynamic: bool,
}

/// An arc as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveArc {
    body: u32,
    le: i64,
    re: Option<i64>,
}

/// What is alive from one end of a lifetime to the next.
struct Epoch {
    from: i64,
    bodies: Vec<u32>,
    /// The event predicates that decide between them.
    predicates: Vec<u32>,
    /// The class that each combination of truths makes, as far as it was seen.
    classes: HashMap<Vec<bool>, u32, FixedState>,
}

/// The bodies that an event of a class may take.
struct Class {
    consuming: Vec<u32>,
    epsilon: Vec<u32>,
    /// Where computations that begin with such an event stand after it; none: it has to be looked at.
    starts: Option<Arc<[u32]>>,
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
    /// Fences that were unknown and transfers that failed.
    pub errors: u64,
    /// Fences and predicates that were evaluated.
    pub evaluations: u64,
    /// Interned configurations and transitions.
    pub configurations: Configurations,
    start: u32,
    states: Vec<Arc<str>>,
    finals: Vec<bool>,
    bodies: Vec<CompiledBody>,
    body_numbers: HashMap<Body, u32, FixedState>,
    predicates: Vec<Node>,
    predicate_numbers: HashMap<Node, u32, FixedState>,
    arcs: BTreeMap<Arc<str>, LiveArc>,
    epochs: Vec<Epoch>,
    truths: Vec<bool>,
    classes: Vec<Class>,
    class_numbers: HashMap<Vec<u32>, u32, FixedState>,
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
            errors: 0,
            evaluations: 0,
            configurations: Configurations::default(),
            start: 0,
            states: Vec::new(),
            finals: Vec::new(),
            bodies: Vec::new(),
            body_numbers: HashMap::default(),
            predicates: Vec::new(),
            predicate_numbers: HashMap::default(),
            arcs: BTreeMap::new(),
            epochs: Vec::new(),
            truths: Vec::new(),
            classes: Vec::new(),
            class_numbers: HashMap::default(),
        };
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

    /// The name of a state.
    #[must_use]
    pub fn state_name(&self, number: u32) -> &Arc<str> {
        &self.states[number as usize]
    }

    /// Makes a state final; true if it was not, in which case partial matches in it must be computed anew.
    pub fn make_final(&mut self, name: &str) -> bool {
        let number = self.state(name) as usize;
        !std::mem::replace(&mut self.finals[number], true)
    }

    /// Inserts or replaces an arc; the interval is `[le, re)`, `re` = none unbounded, `le` = the least time too.
    pub fn set_arc(&mut self, id: &str, body: Body, le: i64, re: Option<i64>) {
        let number = self.body_number(body);
        self.arcs.insert(id.into(), LiveArc { body: number, le, re });
        self.rebuild_epochs();
    }

    /// Removes an arc.
    pub fn remove_arc(&mut self, id: &str) {
        self.arcs.remove(id);
        self.rebuild_epochs();
    }

    fn body_number(&mut self, body: Body) -> u32 {
        if let Some(number) = self.body_numbers.get(&body) {
            return *number;
        }
        let (mut predicates, mut residual) = (Vec::new(), Vec::new());
        for conjunct in body.fence.iter().cloned().flat_map(Node::conjuncts) {
            if conjunct == Node::Literal(Value::Bool(true)) {
                continue;
            }
            if conjunct.reads_event() && !conjunct.reads_register() {
                predicates.push(self.predicate_number(conjunct));
            } else {
                residual.push(conjunct);
            }
        }
        let reads = residual
            .iter()
            .chain(body.transfer.iter().map(|(_, node)| node))
            .any(Node::reads_event);
        let number = count(self.bodies.len());
        self.bodies.push(CompiledBody {
            body: body.clone(),
            predicates,
            residual,
            dynamic: reads,
        });
        self.body_numbers.insert(body, number);
        number
    }

    fn predicate_number(&mut self, node: Node) -> u32 {
        if let Some(number) = self.predicate_numbers.get(&node) {
            return *number;
        }
        let number = count(self.predicates.len());
        self.predicates.push(node.clone());
        self.predicate_numbers.insert(node, number);
        number
    }

    fn rebuild_epochs(&mut self) {
        let mut bounds: Vec<i64> = vec![i64::MIN];
        for arc in self.arcs.values() {
            bounds.push(arc.le);
            bounds.extend(arc.re);
        }
        bounds.sort_unstable();
        bounds.dedup();
        self.epochs = bounds.into_iter().map(|from| self.epoch(from)).collect();
    }

    fn epoch(&self, from: i64) -> Epoch {
        let alive = |arc: &&LiveArc| arc.le <= from && arc.re.is_none_or(|re| from < re);
        let mut bodies: Vec<u32> = self.arcs.values().filter(alive).map(|arc| arc.body).collect();
        bodies.sort_unstable();
        bodies.dedup();
        let needed = bodies.iter().flat_map(|body| &self.bodies[*body as usize].predicates);
        let mut predicates: Vec<u32> = needed.copied().collect();
        predicates.sort_unstable();
        predicates.dedup();
        Epoch {
            from,
            bodies,
            predicates,
            classes: HashMap::default(),
        }
    }

    /// The class of an event: which bodies it may take, as far as the event alone decides.
    pub fn class_of(&mut self, event: &dyn EventView) -> u32 {
        let at = self.epochs.partition_point(|epoch| epoch.from <= event.ts()) - 1;
        let epoch = &self.epochs[at];
        let mut truths = std::mem::take(&mut self.truths);
        truths.clear();
        for predicate in &*epoch.predicates {
            let truth = self.predicates[*predicate as usize]
                .evaluate(Some(event), &[])
                .as_truth();
            self.errors += u64::from(truth.is_none());
            truths.push(truth == Some(true));
        }
        self.evaluations += truths.len() as u64;
        let known = epoch.classes.get(&truths).copied();
        let class = known.unwrap_or_else(|| self.new_class(at, &truths));
        self.truths = truths;
        class
    }

    /// The class that these truths of an epoch's predicates make.
    fn new_class(&mut self, at: usize, truths: &[bool]) -> u32 {
        let epoch = &self.epochs[at];
        let holds = |predicate: &u32| {
            epoch
                .predicates
                .binary_search(predicate)
                .is_ok_and(|index| truths[index])
        };
        let takes = |body: &&u32| self.bodies[**body as usize].predicates.iter().all(holds);
        let enabled: Vec<u32> = epoch.bodies.iter().filter(takes).copied().collect();
        let class = self.class_number(enabled);
        self.epochs[at].classes.insert(truths.to_vec(), class);
        class
    }

    fn class_number(&mut self, enabled: Vec<u32>) -> u32 {
        if let Some(number) = self.class_numbers.get(&enabled) {
            return *number;
        }
        let number = count(self.classes.len());
        let (epsilon, consuming) = enabled
            .iter()
            .partition(|body| self.bodies[**body as usize].body.epsilon);
        self.classes.push(Class {
            consuming,
            epsilon,
            starts: None,
        });
        self.class_numbers.insert(enabled, number);
        number
    }

    fn marked(&self, number: u32) -> u32 {
        let state = self.configurations.get(number).state as usize;
        if self.finals[state] { number | FINAL } else { number }
    }

    /// Where a body leads from a configuration, if its residual fence holds and its transfer succeeds.
    fn take(&mut self, body: u32, from: u32, event: Option<&dyn EventView>) -> Option<u32> {
        let compiled = &self.bodies[body as usize];
        let before = self.configurations.get(from);
        if before.state != compiled.body.source {
            return None;
        }
        self.evaluations += 1;
        for conjunct in &compiled.residual {
            let truth = conjunct.evaluate(event, &before.registers).as_truth();
            self.errors += u64::from(truth.is_none());
            if truth != Some(true) {
                return None;
            }
        }
        let mut registers: Vec<Value> = before.registers.to_vec();
        for (index, node) in &compiled.body.transfer {
            let Some(stored) = self.registers[*index].stored(node.evaluate(event, &before.registers)) else {
                self.errors += 1;
                return None;
            };
            registers[*index] = stored;
        }
        let after = Configuration {
            state: compiled.body.target,
            registers: registers.into(),
        };
        Some(self.configurations.number(after))
    }

    /// Adds what epsilon bodies of the class lead to.
    fn close(&mut self, class: u32, reached: &mut Vec<u32>) {
        let epsilon = self.classes[class as usize].epsilon.clone();
        let mut next = 0;
        while next < reached.len() {
            for body in &epsilon {
                if let Some(after) = self.take(*body, reached[next], None)
                    && !reached.contains(&after)
                {
                    reached.push(after);
                }
            }
            next += 1;
        }
    }

    /// The transition of a class from a configuration, computed and not yet remembered.
    fn transition_from(&mut self, class: u32, from: u32) -> Transition {
        let consuming = self.classes[class as usize].consuming.clone();
        let state = self.configurations.get(from).state;
        let (mut reached, mut dynamic) = (Vec::new(), Vec::new());
        for body in consuming {
            let compiled = &self.bodies[body as usize];
            if compiled.body.source != state {
                continue;
            }
            if compiled.dynamic {
                dynamic.push(body);
            } else if let Some(after) = self.take(body, from, None)
                && !reached.contains(&after)
            {
                reached.push(after);
            }
        }
        self.close(class, &mut reached);
        let mut marked: Vec<u32> = reached.into_iter().map(|number| self.marked(number)).collect();
        marked.sort_unstable();
        match (marked.as_slice(), dynamic.is_empty()) {
            ([], true) => Transition::None,
            ([one], true) => Transition::One(*one),
            (_, true) => Transition::Several(marked.into()),
            (_, false) => Transition::Dynamic(marked.into(), dynamic.into()),
        }
    }

    /// Appends the configurations (marked, not yet sorted) that an event leads to from one.
    pub fn step(&mut self, class: u32, from: u32, event: &dyn EventView, out: &mut Vec<u32>) {
        let transition = match self.configurations.quick(class, from) {
            Ok(None) => return,
            Ok(Some(one)) => return out.push(one),
            Err(Some(known)) => known.clone(),
            Err(None) => {
                let found = self.transition_from(class, from & !FINAL);
                self.configurations.remember(class, from, found.clone());
                found
            }
        };
        self.follow(class, from, &transition, event, out);
    }

    fn follow(&mut self, class: u32, from: u32, transition: &Transition, event: &dyn EventView, out: &mut Vec<u32>) {
        match transition {
            Transition::None => {}
            Transition::One(one) => out.push(*one),
            Transition::Several(several) => out.extend_from_slice(several),
            Transition::Dynamic(several, bodies) => {
                out.extend_from_slice(several);
                let mut reached: Vec<u32> = bodies
                    .iter()
                    .filter_map(|body| self.take(*body, from & !FINAL, Some(event)))
                    .collect();
                self.close(class, &mut reached);
                out.extend(reached.into_iter().map(|number| self.marked(number)));
            }
        }
    }

    /// Appends the configurations of computations that begin with this event.
    pub fn begin(&mut self, class: u32, event: &dyn EventView, out: &mut Vec<u32>) {
        if let Some(starts) = &self.classes[class as usize].starts {
            return out.extend_from_slice(starts);
        }
        let initial: Arc<[Value]> = self.registers.iter().map(|register| register.initial.clone()).collect();
        let mut origins = vec![self.configurations.number(Configuration {
            state: self.start,
            registers: initial,
        })];
        self.close(class, &mut origins);
        let begin = out.len();
        for origin in origins {
            self.step(class, origin, event, out);
        }
        let dynamic = |body: &u32| self.bodies[*body as usize].dynamic;
        if !self.classes[class as usize].consuming.iter().any(dynamic) {
            self.classes[class as usize].starts = Some(out[begin..].into());
        }
    }

    /// Drops the configurations that are not in use, and what was remembered of transitions.
    pub fn sweep(&mut self, in_use: &[bool]) {
        self.configurations.sweep(in_use);
        self.forget_transitions();
    }

    /// Marks, after a state became final, are not what they were: forgets all transitions.
    pub fn forget_transitions(&mut self) {
        self.configurations.forget_transitions();
        for class in &mut self.classes {
            class.starts = None;
        }
    }

    /// A configuration's mark as it should be now.
    #[must_use]
    pub fn remarked(&self, number: u32) -> u32 {
        self.marked(number & !FINAL)
    }
}

#[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
fn count(length: usize) -> u32 {
    length as u32
}
