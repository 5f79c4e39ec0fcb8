//! The events that ways have bound, in order: what several of them have bound alike is kept once.

/// The events that were bound to one variable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    /// The trail that begins with them; of a single one its row.
    place: u32,
    pub(crate) length: u32,
}

/// Where the events of a part are.
pub(crate) enum Bound {
    Nothing,
    Only(u32),
    /// The first ones of this trail.
    Trail(usize),
}

/// Lists of rows, in the memory of those before.
#[derive(Debug, Default)]
pub(crate) struct Trails {
    all: Vec<Vec<u32>>,
    count: usize,
}

impl Part {
    pub(crate) fn events(self) -> Bound {
        match self.length {
            0 => Bound::Nothing,
            1 => Bound::Only(self.place),
            _ => Bound::Trail(self.place as usize),
        }
    }
}

impl Trails {
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// All that there are.
    pub(crate) fn all(&self) -> &[Vec<u32>] {
        &self.all[..self.count]
    }

    /// Binds an event: the trail goes on, or another one begins like it if it went on otherwise.
    #[inline]
    pub(crate) fn bind(&mut self, part: &mut Part, row: u32) {
        if part.length == 0 {
            *part = Part { place: row, length: 1 };
        } else {
            self.open(part).push(row);
            part.length += 1;
        }
    }

    /// Binds some of so many events.
    #[inline]
    pub(crate) fn bind_some(
        &mut self,
        part: &mut Part,
        count: usize,
        is_bound: impl Fn(usize) -> bool,
        row: impl Fn(usize) -> u32,
    ) {
        let mut at = 0;
        while part.length < 2 && at < count {
            if is_bound(at) {
                self.bind(part, row(at));
            }
            at += 1;
        }
        if at == count {
            return;
        }
        let trail = self.open(part);
        let mut end = trail.len();
        // Each is written, and only what is bound stays: whether the next one is cannot be foreseen.
        trail.resize(end + count - at, 0);
        for at in at..count {
            trail[end] = row(at);
            end += usize::from(is_bound(at));
        }
        trail.truncate(end);
        part.length = length(end);
    }

    /// The trail of a part, which ends with it.
    fn open(&mut self, part: &mut Part) -> &mut Vec<u32> {
        let (place, bound) = (part.place as usize, part.length as usize);
        if part.length > 1 && self.all[place].len() == bound {
            return &mut self.all[place];
        }
        if self.count == self.all.len() {
            self.all.push(Vec::new());
        }
        let (older, newer) = self.all.split_at_mut(self.count);
        let trail = &mut newer[0];
        trail.clear();
        match part.events() {
            Bound::Nothing => {}
            Bound::Only(row) => trail.push(row),
            Bound::Trail(begun) => trail.extend_from_slice(&older[begun][..bound]),
        }
        part.place = length(self.count);
        self.count += 1;
        trail
    }
}

#[allow(clippy::cast_possible_truncation)] // no more than the rows that are stored
fn length(count: usize) -> u32 {
    count as u32
}

#[cfg(test)]
mod tests {
    use super::{Bound, Part, Trails, length};

    fn rows(trails: &Trails, part: Part) -> Vec<u32> {
        match part.events() {
            Bound::Nothing => Vec::new(),
            Bound::Only(row) => vec![row],
            Bound::Trail(trail) => trails.all()[trail][..part.length as usize].to_vec(),
        }
    }

    #[test]
    fn parts_that_go_on_apart_stay_apart() {
        let mut trails = Trails::default();
        let mut one = Part::default();
        for row in 1..4 {
            trails.bind(&mut one, row);
        }
        let mut other = one;
        trails.bind(&mut one, 4);
        trails.bind(&mut other, 5);
        trails.bind(&mut one, 6);
        assert_eq!(rows(&trails, one), [1, 2, 3, 4, 6]);
        assert_eq!(rows(&trails, other), [1, 2, 3, 5]);
        assert_eq!(trails.all().len(), 2);
    }

    #[test]
    fn some_of_many_are_bound_as_one_by_one() {
        for begun in 0..4 {
            for bits in 0..1_u32 << 6 {
                let mut trails = Trails::default();
                let mut one = Part::default();
                (0..begun).for_each(|row| trails.bind(&mut one, 100 + row));
                let mut many = one;
                let is_bound = |at: usize| bits >> at & 1 != 0;
                let numbers = || (0..6_u32).filter(|at| bits >> at & 1 != 0);
                numbers().for_each(|row| trails.bind(&mut one, row));
                trails.bind_some(&mut many, 6, is_bound, length);
                let expected: Vec<u32> = (0..begun).map(|row| 100 + row).chain(numbers()).collect();
                assert_eq!(rows(&trails, one), expected);
                assert_eq!(rows(&trails, many), expected);
            }
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut trails = Trails::default();
        let mut part = Part::default();
        (0..9).for_each(|row| trails.bind(&mut part, row));
        trails.clear();
        let mut part = Part::default();
        (5..8).for_each(|row| trails.bind(&mut part, row));
        assert_eq!(rows(&trails, part), [5, 6, 7]);
        assert_eq!(trails.all().len(), 1);
    }
}
