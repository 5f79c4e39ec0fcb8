//! Progress: what a punctuation releases, finishes and lets go.

use crate::change::Change;
use crate::configuration::{FINAL, marked, start_row};
use crate::engine::{Counters, Engine, Outcome, Predicated, class_of};
use crate::expression::Node;
use crate::key::Key;
use crate::pattern::Window;
use crate::propagate::Differences;
use crate::spine::UNRELEASED;

impl Engine {
    /// No later event with a smaller `ts`.
    pub fn punctuate(&mut self, ts: i64) -> Outcome {
        self.event_punctuation = self.event_punctuation.max(Some(ts));
        self.predicated.retain(|known| known.ts > ts);
        self.advance()
    }

    /// No later event with a smaller `ts` for which the condition holds.
    pub fn punctuate_when(&mut self, ts: i64, condition: Node, text: &str) -> Outcome {
        match self.predicated.iter_mut().find(|known| known.condition == condition) {
            Some(known) => known.ts = known.ts.max(ts),
            None => self.predicated.push(Predicated {
                condition,
                text: text.into(),
                ts,
            }),
        }
        Outcome::default()
    }

    /// No later arc record that changes anything before `ts`.
    pub fn punctuate_arcs(&mut self, ts: i64) -> Outcome {
        self.arc_punctuation = self.arc_punctuation.max(Some(ts));
        self.advance()
    }

    fn advance(&mut self) -> Outcome {
        let next = match self.arc_punctuation {
            Some(arcs) => self.event_punctuation.map(|events| events.min(arcs)),
            None => self.event_punctuation,
        };
        if next <= self.effective_punctuation {
            return Outcome::default();
        }
        self.effective_punctuation = next;
        let waits = self
            .programs
            .iter()
            .any(|program| program.gap_free || program.speculation.is_some());
        let mut changes = if waits {
            self.for_each_key(Self::release)
        } else {
            Vec::new()
        };
        self.tell_held(&mut changes);
        self.clean();
        Outcome {
            changes,
            punctuation: next,
            late: None,
        }
    }

    /// Does something to every key and collects what changed, retractions first, in order.
    pub(crate) fn for_each_key(&mut self, mut act: impl FnMut(&mut Self, &mut Key, &mut Differences)) -> Vec<Change> {
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for number in 0..self.keys.len() {
            let Some(mut key) = self.keys[number].take() else {
                continue;
            };
            let mut differences = Differences::default();
            act(self, &mut key, &mut differences);
            self.settle(&mut key, None, &mut differences);
            for change in self.deliver(&key.name, differences) {
                if change.retracts {
                    gone.push(change);
                } else {
                    come.push(change);
                }
            }
            self.keys[number] = Some(key);
        }
        Change::sort(&mut gone);
        Change::sort(&mut come);
        gone.append(&mut come);
        gone
    }

    /// Cleanse: lets patterns see the events that the punctuation releases.
    fn release(&mut self, key: &mut Key, _: &mut Differences) {
        let mut place = key.spine.first();
        while let Some(here) = place {
            let event = self.rows.event(key.spine.row(here));
            for (pattern, program) in self.programs.iter_mut().enumerate() {
                if key.spine.cell(pattern, here).class == UNRELEASED {
                    let class = class_of(program, event, self.effective_punctuation, &mut Counters::default());
                    if class != UNRELEASED {
                        key.spine.set_list(pattern, here, &[]);
                        let cell = key.spine.cell_mut(pattern, here);
                        (cell.class, cell.dirty) = (class, true);
                    }
                }
            }
            place = key.spine.next(here);
        }
    }

    fn tell_held(&mut self, changes: &mut Vec<Change>) {
        let Some(bound) = self.effective_punctuation else {
            return;
        };
        let before = changes.len();
        for held in &mut self.held {
            let later = held.split_off(&(bound, [0; 16]));
            changes.extend(std::mem::replace(held, later).into_values());
        }
        if changes.len() > before {
            let inserts = changes
                .iter()
                .position(|change| !change.retracts)
                .unwrap_or(changes.len());
            Change::sort(&mut changes[inserts..]);
        }
    }

    fn clean(&mut self) {
        let Some(punctuation) = self.effective_punctuation else {
            return;
        };
        let windows: Vec<Window> = self.programs.iter().map(|program| program.window).collect();
        for (number, slot) in self.keys.iter_mut().enumerate() {
            let Some(key) = slot else { continue };
            key.clean(&self.rows, &windows, punctuation);
            if key.is_idle() {
                self.counters.partial_matches -= key.live;
                self.numbers.remove(&key.name);
                *slot = None;
                self.free_keys.push(number);
            }
        }
        let configurations = self
            .programs
            .iter()
            .map(|program| program.configurations.len())
            .sum::<usize>();
        let many = configurations > 2 * self.configurations_after_sweep;
        if many || self.rows.len() > 2 * self.rows_after_sweep {
            self.sweep(many);
        }
    }

    /// Drops rows and configurations that nothing refers to any more.
    fn sweep(&mut self, with_configurations: bool) {
        let mut rows = self.rows.marks();
        let mut configurations: Vec<Vec<bool>> = self.programs.iter().map(|_| Vec::new()).collect();
        for key in self.keys.iter().flatten() {
            let mut starts = Vec::new();
            let mut mark = |pattern: usize, list: &[u64]| {
                for partial in list {
                    starts.push(start_row(*partial));
                    if !with_configurations {
                        continue;
                    }
                    let number = (marked(*partial) & !FINAL) as usize;
                    let marks: &mut Vec<bool> = &mut configurations[pattern];
                    if marks.len() <= number {
                        marks.resize(number + 1, false);
                    }
                    marks[number] = true;
                }
            };
            for (pattern, cover) in key.covers.iter().enumerate() {
                mark(pattern, &cover.list);
            }
            key.spine.each(&mut mark, |row| rows[row as usize] = true);
            starts
                .iter()
                .chain(key.tombs.values())
                .for_each(|row| rows[*row as usize] = true);
        }
        self.rows.sweep(&rows);
        self.rows_after_sweep = self.rows.len().max(1024);
        if with_configurations {
            for (program, marks) in self.programs.iter_mut().zip(configurations) {
                program.sweep(&marks);
            }
            let left = self
                .programs
                .iter()
                .map(|program| program.configurations.len())
                .sum::<usize>();
            self.configurations_after_sweep = left.max(4096);
        }
    }
}
