//! Whether a pattern is linear: one step after the other from the start to the only final state, and no register.

use crate::program::body::CompiledBody;
use crate::program::compiled::{Program, Shared};
use crate::program::pattern::Window;

impl Program {
    /// The columns of triggers, one per step, of a linear pattern with these bodies.
    pub(crate) fn columns_of(&self, bodies: &[u32], shared: &mut Shared) -> Vec<u32> {
        let steps = self.chain.len().saturating_sub(1);
        let mut forms = vec![Vec::new(); steps];
        for body in bodies {
            let compiled = &self.bodies[*body as usize];
            if let Some(step) = self.chain.iter().position(|state| *state == compiled.body.source)
                && step < steps
            {
                forms[step].push(compiled.predicates().to_vec());
            }
        }
        forms.into_iter().map(|form| shared.columns.number(form)).collect()
    }

    /// Looks whether the pattern is linear, from all bodies it has; to be asked before any arc is alive.
    pub fn find_chain(&mut self) {
        let timed = matches!(self.window, Window::Time(_));
        let plain = self.registers.is_empty() && self.key_field.is_none() && !self.is_observed();
        if timed && plain && !self.gap_free && self.speculation.is_none() {
            self.chain = self.follow_chain().unwrap_or_default();
        }
    }

    fn follow_chain(&self) -> Option<Vec<u32>> {
        let mut chain = vec![self.start];
        while !self.finals[*chain.last()? as usize] {
            let here = *chain.last()?;
            let mut targets = self.bodies.iter().filter(|known| known.body.source == here);
            let target = targets.next()?.body.target;
            if targets.any(|other| other.body.target != target) || chain.contains(&target) || chain.len() > 63 {
                return None;
            }
            chain.push(target);
        }
        let all_fit = self.bodies.iter().all(|known| fits(&chain, known));
        let one_final = self.finals.iter().filter(|is_final| **is_final).count() == 1;
        (chain.len() > 1 && all_fit && one_final).then_some(chain)
    }

    /// Whether a linear pattern stays one with this body.
    #[must_use]
    pub fn fits_chain(&self, body: u32) -> bool {
        fits(&self.chain, &self.bodies[body as usize])
    }

    /// The pattern is not linear any more: what was computed for that goes.
    pub fn drop_chain(&mut self) {
        self.chain = Vec::new();
        for alive in &mut self.alive {
            alive.columns = Vec::new();
        }
    }
}

fn fits(chain: &[u32], known: &CompiledBody) -> bool {
    let place = |state: u32| chain.iter().position(|other| *other == state);
    let follows = match (place(known.body.source), place(known.body.target)) {
        (Some(source), Some(target)) => target == source + 1,
        _ => false,
    };
    follows && !known.body.epsilon && known.residual.is_empty()
}
