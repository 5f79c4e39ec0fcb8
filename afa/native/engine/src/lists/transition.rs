//! Where an event leads: the lazy DFA over sets of configurations.

use std::sync::Arc;

use crate::lists::configuration::{
    Code, Conditional, Configuration, DEAD, FINAL, Link, SLOW, UNKNOWN, Word, code_of, unmarked,
};
use crate::lists::lane::List;
use crate::program::compiled::Program;
use crate::program::expression::EventView;
use crate::program::pattern::Window;
use crate::program::value::Value;

/// The part of a word that says where it began.
pub(crate) const ROW_MASK: Word = !0 << 32;

impl Program {
    /// Steps a whole list over an event; what died is gone. The answer has `FINAL` if some set has a final state.
    #[inline]
    pub fn step_list<E: EventView>(&mut self, class: u32, list: &mut List, event: impl Fn() -> E) -> Code {
        let transitions = self.sets.row(class);
        let (mut kept, mut seen) = (0, 0);
        for at in 0..list.len() {
            let before = list[at];
            let next = transitions.get(unmarked(code_of(before))).copied().unwrap_or(UNKNOWN);
            if next & SLOW != 0 {
                return self.step_rest(class, list, at, kept, seen, event);
            }
            list[kept] = before & ROW_MASK | Word::from(next);
            kept += usize::from(next != DEAD);
            seen |= next;
        }
        list.truncate(kept);
        seen & FINAL
    }

    /// The same from one place on, where not everything is known yet.
    #[cold]
    fn step_rest<E: EventView>(
        &mut self,
        class: u32,
        list: &mut List,
        from: usize,
        mut kept: usize,
        mut seen: Code,
        event: impl Fn() -> E,
    ) -> Code {
        let event = event();
        for at in from..list.len() {
            let before = list[at];
            let next = self.step(class, code_of(before), &event);
            list[kept] = before & ROW_MASK | Word::from(next);
            kept += usize::from(next != DEAD);
            seen |= next;
        }
        list.truncate(kept);
        seen & FINAL
    }

    /// Steps one set over an event.
    #[inline]
    pub fn step(&mut self, class: u32, code: Code, event: &dyn EventView) -> Code {
        if code == DEAD {
            return DEAD;
        }
        let next = self.sets.transition(class, unmarked(code));
        if next & SLOW == 0 {
            return next;
        }
        self.step_slowly(class, code, event)
    }

    /// The set of the computations that begin with this event.
    #[inline]
    pub fn begin<E: EventView>(&mut self, class: u32, event: impl Fn() -> E) -> Code {
        let start = self.starts[class as usize];
        if start & SLOW == 0 {
            return start;
        }
        self.begin_slowly(class, &event())
    }

    #[cold]
    fn begin_slowly(&mut self, class: u32, event: &dyn EventView) -> Code {
        let origin = self.origin(class);
        let code = self.step(class, origin, event);
        if self.sets.transition(class, unmarked(origin)) & SLOW == 0 {
            self.starts[class as usize] = code;
        }
        code
    }

    /// The set before a first event of this class.
    pub(crate) fn origin(&mut self, class: u32) -> Code {
        let mut origin = self.classes[class as usize].origin;
        if origin == UNKNOWN {
            let initial: Arc<[Value]> = self.registers.iter().map(|register| register.initial.clone()).collect();
            let mut members = vec![self.sets.configuration_number(Configuration {
                state: self.start,
                registers: initial,
            })];
            self.close(class, &mut members);
            origin = self.sets.set_number(members, 0, false);
            self.classes[class as usize].origin = origin;
        }
        origin
    }

    /// How an event leads from the members of a set to members of the next, epsilon arcs after it included.
    pub(crate) fn links(&mut self, class: u32, set: usize, event: &dyn EventView) -> Arc<[Link]> {
        if let Some(known) = self.sets.links(class, set) {
            return known.clone();
        }
        if let Some(others) = self.class_of_others(class, set, event) {
            return self.links(others, set, event);
        }
        // What was counted when the list was stepped is not counted again.
        let counted = (self.errors, self.evaluations);
        #[allow(clippy::cast_possible_truncation)] // a set's number
        let members = self.sets.set(set as Code).members.clone();
        let mut links = Vec::new();
        for from in &*members {
            for index in 0..self.classes[class as usize].consuming.len() {
                let body = self.classes[class as usize].consuming[index];
                if let Some(after) = self.take(body, *from, Some(event)) {
                    let binds = self.bodies[body as usize].body.binds;
                    let mut reached = vec![after];
                    self.close(class, &mut reached);
                    links.extend(reached.into_iter().map(|to| Link { from: *from, to, binds }));
                }
            }
        }
        (self.errors, self.evaluations) = counted;
        let links: Arc<[Link]> = links.into();
        if self.sets.transition(class, set) & SLOW == 0 {
            self.sets.remember_links(class, set, links.clone());
        }
        links
    }

    #[cold]
    fn step_slowly(&mut self, class: u32, code: Code, event: &dyn EventView) -> Code {
        let set = unmarked(code);
        let mut known = self.sets.transition(class, set);
        if known == UNKNOWN {
            known = self.find_transition(class, set);
        }
        if known & SLOW == 0 {
            return known;
        }
        if let Some(others) = self.class_of_others(class, set, event) {
            return self.step(others, code, event);
        }
        self.decide(class, set, known, event)
    }

    /// Computes and remembers the transition of a class from a set.
    pub(crate) fn find_transition(&mut self, class: u32, set: usize) -> Code {
        #[allow(clippy::cast_possible_truncation)] // a set's number
        let from = self.sets.set(set as Code).clone();
        if self.is_spent(from.consumed) {
            self.sets.remember(class, set, DEAD);
            return DEAD;
        }
        let (mut certain, mut open, mut decides_only) = (Vec::new(), Vec::new(), true);
        for member in &*from.members {
            let state = self.sets.configuration(*member).state;
            for index in 0..self.classes[class as usize].consuming.len() {
                let body = self.classes[class as usize].consuming[index];
                let compiled = &self.bodies[body as usize];
                if compiled.body.source != state {
                    continue;
                }
                let computes = compiled.computes;
                let binds = compiled.body.binds;
                if let Ok(taken) = self.take_by_class(class, body, *member) {
                    certain.extend(taken.map(|to| Link {
                        from: *member,
                        to,
                        binds,
                    }));
                } else {
                    decides_only &= !computes;
                    open.push((*member, body));
                }
            }
        }
        if open.is_empty() {
            let code = self.reached(class, &certain, from.consumed);
            self.sets.remember(class, set, code);
            return code;
        }
        let conditional = Conditional {
            certain: certain.into(),
            decides_only: decides_only && open.len() <= 64,
            open: open.into(),
            outcomes: Vec::new(),
        };
        self.sets.remember_conditional(class, set, conditional)
    }

    /// Follows a transition that depends on the event.
    fn decide(&mut self, class: u32, set: usize, known: Code, event: &dyn EventView) -> Code {
        let conditional = self.sets.conditional(known);
        let (open, certain, decides_only) = (
            conditional.open.clone(),
            conditional.certain.clone(),
            conditional.decides_only,
        );
        let mut outcome = 0_u64;
        if decides_only {
            for (bit, (member, body)) in open.iter().enumerate() {
                outcome |= u64::from(self.holds(*body, *member, Some(event))) << bit;
            }
            let outcomes = &self.sets.conditional(known).outcomes;
            if let Some((_, code)) = outcomes.iter().find(|(seen, _)| *seen == outcome) {
                return *code;
            }
        }
        let mut links = certain.to_vec();
        for (bit, (member, body)) in open.iter().enumerate() {
            if !decides_only || outcome >> bit & 1 != 0 {
                let (taken, binds) = (
                    self.take(*body, *member, Some(event)),
                    self.bodies[*body as usize].body.binds,
                );
                links.extend(taken.map(|to| Link {
                    from: *member,
                    to,
                    binds,
                }));
            }
        }
        #[allow(clippy::cast_possible_truncation)] // a set's number
        let consumed = self.sets.set(set as Code).consumed;
        let code = self.reached(class, &links, consumed);
        if decides_only {
            self.sets.conditional(known).outcomes.push((outcome, code));
        }
        code
    }

    /// Whether links of a query leave ways apart that were: each to a configuration of its own, and those from one
    /// configuration by binding the event differently. Then as many ways lead to the end as there are final
    /// configurations, and no two have bound the same. Epsilon arcs are not looked into.
    fn are_apart(&self, class: u32, links: &[Link]) -> bool {
        if self.query.is_none() || links.is_empty() {
            return true;
        }
        let mut reached: Vec<u32> = links.iter().map(|link| link.to).collect();
        let mut bound: Vec<(u32, Option<u16>)> = links.iter().map(|link| (link.from, link.binds)).collect();
        reached.sort_unstable();
        bound.sort_unstable();
        let is_plain = self.classes[class as usize].epsilon.is_empty();
        is_plain && reached.is_sorted_by(|a, b| a < b) && bound.is_sorted_by(|a, b| a < b)
    }

    /// Whether a window in events is used up.
    fn is_spent(&self, consumed: u64) -> bool {
        matches!(self.window, Window::Events(most) if consumed >= most)
    }

    /// The code of the set that an event has led to, closed under epsilon arcs and cut to its limit.
    fn reached(&mut self, class: u32, links: &[Link], consumed: u64) -> Code {
        self.sets.ways_meet = self.sets.ways_meet || !self.are_apart(class, links);
        let mut members = links.iter().map(|link| link.to).collect();
        self.close(class, &mut members);
        members.sort_unstable();
        members.dedup();
        let is_cut = members.len() > self.max_set_size;
        if is_cut {
            self.cut(&mut members);
        }
        let counts = matches!(self.window, Window::Events(_));
        let set = self
            .sets
            .set_number(members, if counts { consumed + 1 } else { 0 }, is_cut);
        self.code(set)
    }

    /// Cuts a set to its limit. Matches take up to half of it, so that both they and what goes on are not lost at once.
    #[cold]
    fn cut(&self, members: &mut Vec<u32>) {
        let is_final = |member: &u32| self.finals[self.sets.configuration(*member).state as usize];
        let (mut found, mut others): (Vec<u32>, Vec<u32>) = members.iter().partition(|member| is_final(member));
        let half = self.max_set_size / 2;
        found.truncate(half.max(self.max_set_size.saturating_sub(others.len())));
        others.truncate(self.max_set_size - found.len());
        found.append(&mut others);
        found.sort_unstable();
        *members = found;
    }

    /// Adds what epsilon bodies of the class lead to.
    fn close(&mut self, class: u32, members: &mut Vec<u32>) {
        if self.classes[class as usize].epsilon.is_empty() {
            return;
        }
        let epsilon = self.classes[class as usize].epsilon.clone();
        let mut next = 0;
        while next < members.len() {
            for body in &epsilon {
                if let Some(after) = self.take(*body, members[next], None)
                    && !members.contains(&after)
                {
                    members.push(after);
                }
            }
            next += 1;
        }
    }

    /// Whether a body's remaining fence holds for a configuration.
    fn holds(&mut self, body: u32, from: u32, event: Option<&dyn EventView>) -> bool {
        let compiled = &self.bodies[body as usize];
        let registers = &self.sets.configuration(from).registers;
        self.evaluations += 1;
        for conjunct in &compiled.residual {
            let truth = conjunct.evaluate(event, registers).as_truth();
            self.errors += u64::from(truth.is_none());
            if truth != Some(true) {
                return false;
            }
        }
        true
    }

    /// Where a body leads from a configuration, if its remaining fence holds and its transfer succeeds.
    pub(crate) fn take(&mut self, body: u32, from: u32, event: Option<&dyn EventView>) -> Option<u32> {
        let compiled = &self.bodies[body as usize];
        if self.sets.configuration(from).state != compiled.body.source || !self.holds(body, from, event) {
            return None;
        }
        let compiled = &self.bodies[body as usize];
        let before = self.sets.configuration(from);
        let mut registers = before.registers.clone();
        if !compiled.body.transfer.is_empty() {
            let mut values: Vec<Value> = registers.to_vec();
            for (index, node) in &compiled.body.transfer {
                let Some(stored) = self.registers[*index].stored(node.evaluate(event, &before.registers)) else {
                    self.errors += 1;
                    return None;
                };
                values[*index] = stored;
            }
            registers = values.into();
        }
        let after = Configuration {
            state: compiled.body.target,
            registers,
        };
        Some(self.sets.configuration_number(after))
    }
}
