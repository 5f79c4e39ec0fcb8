//! A page and the changes that fall into it, as one list of steps.

use crate::keys::page::PAGE_ENTRIES;
use crate::keys::spine::Spine;
use crate::rows::store::Rows;

/// One entry, as it was and as it is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) row: u32,
    pub(crate) in_old: bool,
    pub(crate) in_new: bool,
    pub(crate) edited: bool,
}

/// The entries of one page, as they were and as they are to be.
pub(crate) struct Here {
    pub(crate) steps: Vec<Step>,
    pub(crate) new_length: usize,
    pub(crate) edited: bool,
}

impl Here {
    /// Merges a page with the changes that fall into it, which are taken from the front of their lists (from the back
    /// of `changed`, which is in reverse).
    pub(crate) fn of(
        rows: &Rows,
        spine: &Spine,
        page: usize,
        inserts: &mut &[u32],
        removals: &mut &[u32],
        changed: &mut Vec<u32>,
    ) -> Self {
        let is_last = page + 1 == spine.pages.len();
        let mut steps = Vec::with_capacity(PAGE_ENTRIES + inserts.len().min(PAGE_ENTRIES));
        let mut edited = false;
        let insert = |row: u32| Step {
            row,
            in_old: false,
            in_new: true,
            edited: true,
        };
        for (ts, row) in spine.pages[page].entries(0, rows) {
            while let Some(first) = inserts.first()
                && (rows.ts(*first) < ts || rows.ts(*first) == ts && rows.order(*first, row).is_lt())
            {
                steps.push(insert(*first));
                *inserts = &inserts[1..];
                edited = true;
            }
            let removed = removals.first() == Some(&row);
            let differs = changed.last() == Some(&row);
            if removed {
                *removals = &removals[1..];
            }
            if differs {
                changed.pop();
            }
            edited |= removed || differs;
            steps.push(Step {
                row,
                in_old: true,
                in_new: !removed,
                edited: removed || differs,
            });
        }
        if is_last && !inserts.is_empty() {
            steps.extend(inserts.iter().map(|row| insert(*row)));
            *inserts = &[];
            edited = true;
        }
        let new_length = steps.iter().filter(|step| step.in_new).count();
        Self {
            steps,
            new_length,
            edited,
        }
    }

    pub(crate) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Whether entries come or go.
    pub(crate) fn moves(&self) -> bool {
        self.edited && self.steps.iter().any(|step| step.in_old != step.in_new)
    }

    pub(crate) fn last_edit(&self) -> usize {
        self.steps.iter().rposition(|step| step.edited).unwrap_or(0)
    }

    pub(crate) fn step_of_new(&self, slot: usize) -> usize {
        let mut places = self.steps.iter().enumerate().filter(|(_, step)| step.in_new);
        places.nth(slot).map_or(0, |(index, _)| index)
    }

    /// The new slots at which new pages begin.
    pub(crate) fn cuts(&self) -> Vec<usize> {
        if self.new_length <= PAGE_ENTRIES {
            return Vec::new();
        }
        let pieces = self.new_length.div_ceil(PAGE_ENTRIES * 3 / 4);
        (1..pieces).map(|piece| piece * self.new_length / pieces).collect()
    }
}
