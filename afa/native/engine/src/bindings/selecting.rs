//! Which matches of a key are told where a pattern does not ask for all of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use crate::bindings::finding::QueryMatch;
use crate::program::query::Output;
use crate::rows::event::Id;
use crate::rows::store::Rows;

/// Where an event stands among those of its key, whether it is stored or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    pub(crate) ts: i64,
    pub(crate) seq: i64,
    pub(crate) id: Id,
}

impl Standing {
    /// That of a row.
    #[must_use]
    pub(crate) fn of(rows: &Rows, row: u32) -> Self {
        Self {
            ts: rows.ts(row),
            seq: rows.seq(row).unwrap_or(0),
            id: rows.id(row).owned(),
        }
    }
}

/// By partition of `[attr]`, in a form of bytes: where the last match ended that counts.
pub(crate) type CountedEnds = BTreeMap<Vec<u8>, Standing>;

/// What is left of the matches of a lane whose start is forgotten.
#[derive(Debug, Default)]
pub struct Forgotten {
    /// Start events before this time are forgotten.
    pub(crate) before: Option<i64>,
    pub(crate) ends: CountedEnds,
    /// The other matches that count, where that is known.
    pub(crate) counted: Option<Counted>,
}

/// The matches that count, by partition of `[attr]`: where they begin and end, in order.
#[derive(Debug, Default)]
pub(crate) struct Counted(BTreeMap<Vec<u8>, Vec<(Standing, Standing)>>);

impl Counted {
    /// Those that are told.
    pub(crate) fn of(rows: &Rows, told: &[QueryMatch]) -> Self {
        let mut counted = Self::default();
        for found in told {
            counted.note(rows, found);
        }
        counted
    }

    fn note(&mut self, rows: &Rows, found: &QueryMatch) {
        let edges = (Standing::of(rows, found.start), Standing::of(rows, found.end));
        match self.0.get_mut(&found.told.partition) {
            Some(known) => known.push(edges),
            None => drop(self.0.insert(found.told.partition.clone(), vec![edges])),
        }
    }

    /// Whether none of them, and none that was forgotten, reaches to a start event of a partition.
    pub(crate) fn is_free(&self, rows: &Rows, forgotten: &CountedEnds, partition: &[u8], start: u32) -> bool {
        let last = self.0.get(partition).and_then(|known| known.last());
        let end = last.map(|(_, end)| end).or_else(|| forgotten.get(partition));
        end.is_none_or(|end| Standing::of(rows, start) > *end)
    }

    /// Whether a match counts that comes after all others in order; if so, it is one of them.
    fn admits(&mut self, rows: &Rows, forgotten: &CountedEnds, found: &QueryMatch) -> bool {
        let counts = self.is_free(rows, forgotten, &found.told.partition, found.start);
        if counts {
            self.note(rows, found);
        }
        counts
    }

    /// Adds the ends of those that begin before an instant.
    pub(crate) fn add_ends(&self, before: i64, ends: &mut CountedEnds) {
        for (partition, matches) in &self.0 {
            let begun = matches.partition_point(|(start, _)| start.ts < before);
            if let Some((_, end)) = matches[..begun].last() {
                ends.insert(partition.clone(), end.clone());
            }
        }
    }

    /// Lets go of those that begin before an instant.
    pub(crate) fn forget(&mut self, before: i64) {
        self.0.retain(|_, matches| {
            matches.drain(..matches.partition_point(|(start, _)| start.ts < before));
            !matches.is_empty()
        });
    }
}

/// Chooses among the matches of one key and pattern; ids decide where matches have the same first and last event.
pub(crate) fn select(
    output: Output,
    rows: &Rows,
    ends: &CountedEnds,
    matches: Vec<QueryMatch>,
    id_of: impl Fn(&QueryMatch) -> [u8; 16],
) -> Vec<QueryMatch> {
    match output {
        Output::All => matches,
        Output::NonOverlapping => non_overlapping(rows, ends, matches, id_of),
        Output::EarliestMaximal => earliest_maximal(rows, &matches),
    }
}

/// By end, start and id: a match counts iff it starts after the end of the last one counted.
fn non_overlapping(
    rows: &Rows,
    ends: &CountedEnds,
    matches: Vec<QueryMatch>,
    id_of: impl Fn(&QueryMatch) -> [u8; 16],
) -> Vec<QueryMatch> {
    let mut counted = Counted::default();
    count(rows, &mut counted, ends, matches, |found| found, id_of)
}

/// Of matches that end after all that count so far, those that count too.
pub(crate) fn count<T>(
    rows: &Rows,
    counted: &mut Counted,
    ends: &CountedEnds,
    mut matches: Vec<T>,
    match_of: impl Fn(&T) -> &QueryMatch,
    id_of: impl Fn(&QueryMatch) -> [u8; 16],
) -> Vec<T> {
    matches.sort_by(|one, other| {
        let (one, other) = (match_of(one), match_of(other));
        let edges = rows
            .order(one.end, other.end)
            .then_with(|| rows.order(one.start, other.start));
        edges.then_with(|| id_of(one).cmp(&id_of(other)))
    });
    matches.retain(|found| counted.admits(rows, ends, match_of(found)));
    matches
}

/// Of those with one first event the ones that none dominates, and of these the ones that none extends.
pub(crate) fn earliest_maximal(rows: &Rows, matches: &[QueryMatch]) -> Vec<QueryMatch> {
    let mut groups: HashMap<u32, Vec<(usize, Variables)>, FixedState> = HashMap::default();
    for (number, found) in matches.iter().enumerate() {
        groups
            .entry(found.start)
            .or_default()
            .push((number, by_variable(found)));
    }
    let mut kept: Vec<usize> = Vec::new();
    for group in groups.into_values() {
        let loses = |one: &Variables| {
            let mut rivals = group.iter().map(|(_, rival)| rival);
            rivals.any(|rival| dominates(rows, rival, one) || extends(rival, one))
        };
        kept.extend(group.iter().filter(|(_, one)| !loses(one)).map(|(number, _)| *number));
    }
    kept.sort_unstable();
    kept.into_iter().map(|number| matches[number].clone()).collect()
}

/// The events of each variable that has some, in order of variables.
type Variables = Vec<(u16, Vec<u32>)>;

fn by_variable(found: &QueryMatch) -> Variables {
    let mut variables = Variables::new();
    for (variable, row) in &found.bound {
        match variables.binary_search_by_key(variable, |(known, _)| *known) {
            Ok(place) => variables[place].1.push(*row),
            Err(place) => variables.insert(place, (*variable, vec![*row])),
        }
    }
    variables
}

fn events_of(variables: &Variables, variable: u16) -> &[u32] {
    let place = variables.binary_search_by_key(&variable, |(known, _)| *known);
    place.map_or(&[], |place| &variables[place].1)
}

/// Whether it begins every variable no later and one earlier.
fn dominates(rows: &Rows, mine: &Variables, theirs: &Variables) -> bool {
    let mut is_earlier = false;
    for (variable, events) in mine {
        let Some(other) = events_of(theirs, *variable).first() else {
            continue;
        };
        match rows.order(events[0], *other) {
            Ordering::Less => is_earlier = true,
            Ordering::Equal => {}
            Ordering::Greater => return false,
        }
    }
    is_earlier
}

/// Whether it differs in one variable alone, and binds all of the other's events to it and more.
fn extends(mine: &Variables, theirs: &Variables) -> bool {
    let mut different = mine
        .iter()
        .filter(|(variable, events)| events_of(theirs, *variable) != events);
    let Some((variable, events)) = different.next() else {
        return false;
    };
    let theirs = events_of(theirs, *variable);
    different.next().is_none() && events.len() > theirs.len() && theirs.iter().all(|row| events.contains(row))
}
