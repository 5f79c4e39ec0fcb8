//! Letting go of bodies that no arc has any more, and of what was computed for them: predicates, columns of triggers,
//! sets of bodies alive together, classes of events. Their numbers are given to others.

use crate::engine::Engine;
use crate::lists::configuration::UNKNOWN;
use crate::program::body::CompiledBody;
use crate::program::compiled::{Class, Program, Shared, UNRELEASED};
use crate::program::epochs::{Alive, ClassTable, Moves, NOTHING};

/// So many more than were left the last time, and twice as many, make it worth while to look.
const SPARE: usize = 4096;

/// Marks of numbers that are in use.
#[derive(Debug, Default)]
pub struct Marks(Vec<bool>);

impl Marks {
    /// Marks a number.
    pub fn set(&mut self, number: u32) {
        let place = number as usize;
        if self.0.len() <= place {
            self.0.resize(place + 1, false);
        }
        self.0[place] = true;
    }

    /// Whether a number is marked.
    #[must_use]
    pub fn has(&self, number: u32) -> bool {
        self.0.get(number as usize).copied().unwrap_or(false)
    }
}

/// Numbers that are free to be given again, and how many were given in all.
#[derive(Debug, Default)]
pub struct Numbers {
    free: Vec<u32>,
}

impl Numbers {
    /// A number that is free; else the one after all that were given.
    #[allow(clippy::cast_possible_truncation)] // limited by max_program_arcs
    pub fn take(&mut self, given: usize) -> u32 {
        self.free.pop().unwrap_or(given as u32)
    }

    /// How many of those that were given are in use.
    #[must_use]
    pub fn in_use(&self, given: usize) -> usize {
        given - self.free.len()
    }

    /// Frees all numbers that are in use but not marked, and answers with them.
    #[allow(clippy::cast_possible_truncation)] // as above
    pub fn free_unmarked(&mut self, given: usize, marks: &Marks) -> Vec<u32> {
        let mut is_free = Marks::default();
        self.free.iter().for_each(|number| is_free.set(*number));
        let freed: Vec<u32> = (0..given as u32)
            .filter(|number| !marks.has(*number) && !is_free.has(*number))
            .collect();
        self.free.extend(&freed);
        freed
    }
}

/// Puts something at the place of a number, which may be the one after the last.
pub(crate) fn put<T>(list: &mut Vec<T>, number: u32, value: T) {
    let place = number as usize;
    if place == list.len() {
        list.push(value);
    } else {
        list[place] = value;
    }
}

impl Program {
    /// How many bodies, sets of them and classes are in use.
    fn known(&self) -> usize {
        self.free_bodies.in_use(self.bodies.len())
            + self.free_alive.in_use(self.alive.len())
            + self.free_classes.in_use(self.classes.len())
    }

    /// Drops the sets that are not in use, and what was remembered of transitions; configurations that were found stay.
    pub fn sweep(&mut self, in_use: &mut Vec<bool>, found: impl Iterator<Item = u32>) {
        self.sets.sweep(in_use, found);
        self.last_configuration = None;
        self.forget_starts();
    }

    /// After a state became final marks are not what they were: forgets all transitions.
    pub fn forget_transitions(&mut self) {
        self.sets.forget_transitions();
        self.forget_starts();
    }

    fn forget_starts(&mut self) {
        for class in &mut self.classes {
            class.origin = UNKNOWN;
        }
        self.starts.fill(UNKNOWN);
        self.shapes.forget();
    }

    /// Forgets sets of bodies that are alive in no epoch, predicates of bodies in no other, those bodies themselves that
    /// are not marked, and classes that are neither marked nor known to a set that stays.
    fn forget_unused(&mut self, bodies: &mut Marks, classes: &mut Marks) {
        let mut alive = Marks::default();
        alive.set(NOTHING);
        for epoch in self.epochs_from(i64::MIN) {
            alive.set(epoch.alive);
        }
        for number in self.free_alive.free_unmarked(self.alive.len(), &alive) {
            let gone = std::mem::replace(&mut self.alive[number as usize], Alive::new(vec![], vec![], vec![]));
            self.alive_numbers.remove(&gone.bodies);
        }
        self.moves = Moves::default();
        let mut living = Marks::default();
        for alive in &self.alive {
            alive.bodies.iter().for_each(|body| living.set(*body));
            alive.classes.each(|class| classes.set(class));
        }
        for (number, known) in (0..).zip(&mut self.bodies) {
            if living.has(number) {
                bodies.set(number);
            } else {
                known.needs = None;
            }
        }
        for (number, class) in (0..).zip(&self.classes) {
            if classes.has(number) {
                class
                    .consuming
                    .iter()
                    .chain(&class.epsilon)
                    .for_each(|body| bodies.set(*body));
            }
        }
        for number in self.free_bodies.free_unmarked(self.bodies.len(), bodies) {
            let gone = std::mem::replace(&mut self.bodies[number as usize], CompiledBody::nothing());
            self.body_numbers.remove(&gone.body);
        }
        let freed = self.free_classes.free_unmarked(self.classes.len(), classes);
        for number in &freed {
            self.classes[*number as usize] = Class::nothing();
        }
        if let Some(pinned) = &mut self.pinned {
            let known = &mut pinned.classes;
            known.retain(|(class, _), number| classes.has(*class) && classes.has(*number));
        }
        self.class_numbers.retain(|_, number| classes.has(*number));
        self.forget_transitions();
    }
}

impl ClassTable {
    /// Visits the classes that are known.
    fn each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::Dense(table) => table
                .iter()
                .filter(|known| **known > 0)
                .for_each(|known| visit(known - 1)),
            Self::Sparse(known) => known.values().for_each(|class| visit(*class)),
        }
    }
}

impl Shared {
    fn known(&self) -> usize {
        self.predicates.in_use() + self.columns.in_use()
    }
}

impl Engine {
    /// How many bodies, and things computed for them, are in use.
    #[must_use]
    pub fn known_of_arcs(&self) -> usize {
        self.programs.iter().map(Program::known).sum::<usize>() + self.shared.known()
    }

    /// Forgets what no arc uses any more, if there may be much of it.
    pub(crate) fn forget_bodies_if_grown(&mut self) {
        if self.known_of_arcs() > 2 * self.known_after_sweep + SPARE {
            self.forget_bodies();
            self.known_after_sweep = self.known_of_arcs();
        }
    }

    fn forget_bodies(&mut self) {
        let (mut predicates, mut columns) = (Marks::default(), Marks::default());
        for pattern in 0..self.programs.len() {
            let mut bodies = Marks::default();
            // Arcs that ended may be given another lifetime, without their body being said again.
            self.books[pattern].each_body(|body| bodies.set(body));
            for ((_, _), life) in self.asked_lives.iter().filter(|((other, _), _)| *other == pattern) {
                bodies.set(life.body);
            }
            let mut classes = Marks::default();
            for (_, chunk) in self.rows.chunks_mut() {
                let known = chunk.classes_mut(pattern).iter();
                known
                    .filter(|class| **class < UNRELEASED)
                    .for_each(|class| classes.set(*class));
            }
            let program = &mut self.programs[pattern];
            program.forget_unused(&mut bodies, &mut classes);
            self.books[pattern].forget_bodies(|body| bodies.has(body));
            let of_bodies = program.bodies.iter().flat_map(CompiledBody::all_predicates);
            of_bodies.for_each(|predicate| predicates.set(predicate));
            let of_alive = program.alive.iter().flat_map(|alive| &alive.columns);
            of_alive.for_each(|column| columns.set(*column));
        }
        self.arc_shapes.forget();
        self.shared.columns.forget_unmarked(&columns);
        let freed = self.shared.predicates.forget_unmarked(&predicates);
        for (_, chunk) in self.rows.chunks_mut() {
            chunk.forget_truths(&freed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, Numbers, SPARE};
    use crate::engine::Engine;
    use crate::program::compiled::{Program, Shared};
    use crate::program::epochs::Life;
    use crate::program::expression::{FieldPath, Node};
    use crate::program::pattern::{Body, Frame, Window};
    use crate::program::query::Output;
    use crate::program::value::{Comparison, Value};
    use crate::progress::domain::Origin;
    use crate::progress::limits::Limits;
    use crate::raw::scan::Mapping;

    fn engine() -> Engine {
        let program = Program::new(Frame {
            name: "p".into(),
            window: Window::Time(100),
            registers: Vec::new(),
            start: "a".into(),
            finals: vec!["b".into()],
            key_field: None,
            speculation: None,
            hold: false,
            gap_free: false,
            output: Output::All,
            query: None,
        });
        Engine::new(
            vec![program],
            Shared::default(),
            Mapping::only_data(),
            Limits::default(),
        )
    }

    fn body(limit: i64) -> Body {
        let field = Node::Field(FieldPath {
            steps: vec!["x".into()].into(),
            declared: 0,
        });
        let limit = Node::Literal(Value::Int(limit));
        Body {
            source: 0,
            target: 1,
            fence: vec![Node::Comparison(Comparison::Less, Box::new(field), Box::new(limit))],
            transfer: Vec::new(),
            epsilon: false,
            binds: None,
        }
    }

    #[test]
    fn arcs_that_ended_leave_no_predicates_behind() {
        let mut engine = engine();
        for step in 0..5000_i64 {
            let (program, shared) = engine.program_and_shared(0);
            let number = program.body_number(body(step), shared);
            let life = Life {
                body: number,
                le: step * 10,
                re: Some(step * 10 + 10),
            };
            engine.set_arc(0, &format!("a{step}"), life, false);
            engine.punctuate(Origin::default(), step * 10, true);
            let shared = &engine.shared;
            assert!(shared.predicates.in_use() + engine.programs[0].alive.len() < 2 * SPARE);
        }
        assert!(engine.shared.predicates.in_use() < SPARE);
        let kept = engine
            .life_of(0, "a7")
            .map(|life| engine.programs[0].body(life.body).clone());
        assert_eq!(kept, Some(body(7)), "what an arc is stays known");
    }

    #[test]
    fn bodies_that_no_arc_has_are_forgotten() {
        let mut engine = engine();
        for step in 0..20_000_i64 {
            let (program, shared) = engine.program_and_shared(0);
            let number = program.body_number(body(step), shared);
            let life = Life {
                body: number,
                le: 1_000_000,
                re: None,
            };
            engine.set_arc(0, "always another", life, false);
            engine.punctuate(Origin::default(), step, true);
        }
        assert!(
            engine.programs[0].bodies.len() < 2 * SPARE,
            "{}",
            engine.programs[0].bodies.len()
        );
        assert!(engine.known_of_arcs() < 2 * SPARE);
        let life = engine.life_of(0, "always another");
        assert_eq!(
            life.map(|life| engine.programs[0].body(life.body).clone()),
            Some(body(19_999))
        );
    }

    #[test]
    fn free_numbers_are_given_first() {
        let (mut numbers, mut marks) = (Numbers::default(), Marks::default());
        for number in [1, 4] {
            marks.set(number);
        }
        assert_eq!(numbers.free_unmarked(6, &marks), [0, 2, 3, 5]);
        assert_eq!(numbers.in_use(6), 2);
        assert_eq!((numbers.take(6), numbers.in_use(6)), (5, 3));
        assert_eq!(numbers.free_unmarked(6, &marks), [5]);
        let again: Vec<u32> = (0..5).map(|_| numbers.take(6)).collect();
        assert_eq!(again, [5, 3, 2, 0, 6]);
    }
}
