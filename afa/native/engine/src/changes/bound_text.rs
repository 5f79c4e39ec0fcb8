//! Bindings in words: for people as JSON, for ids as msgpack.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use crate::bindings::matches::BoundEvent;
use crate::changes::json_text::{POSITION_DIGITS, Positions, write_int, write_text};
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, Outcome, Sources, packed, write_member};
use crate::program::value::Value;

/// A match id, and of a query what it returns.
pub(crate) type Identity = ([u8; 16], Option<Arc<[Value]>>);

/// For each variable its events' times and ids.
pub type Bindings = Vec<(Arc<str>, Vec<(i64, String)>)>;

/// Lists of ids that were written into a text: what begins like one of them is copied.
#[derive(Default)]
pub(crate) struct WrittenIds {
    lists: Vec<WrittenList>,
    /// The one to be forgotten next.
    oldest: usize,
    positions: Positions,
}

/// Ids that are all as long: positions.
#[derive(Clone, Copy, Debug)]
struct WrittenList {
    /// Where the first of them is among the events.
    begin: usize,
    /// Where they are in the text.
    at: usize,
    count: usize,
}

impl WrittenIds {
    /// So many lists are remembered: more hardly grow at once.
    const MOST: usize = 16;
    /// Quotes and a comma stand around the digits.
    const WIDTH: usize = POSITION_DIGITS + 3;

    /// Appends the ids of some events.
    fn write(&mut self, table: &ChangeTable, span: Range<usize>, out: &mut Vec<u8>) {
        let at = out.len();
        let known = self.lists.iter().position(|list| list.begin == span.start);
        let copied = known.map_or(0, |known| self.lists[known].count.min(span.len()));
        if let Some(known) = known.filter(|_| copied > 0) {
            let from = self.lists[known].at;
            out.extend_from_within(from..from + copied * Self::WIDTH - 1);
        }
        if copied == span.len() {
            return;
        }
        if copied > 0 {
            out.push(b',');
        }
        let events = table.bound.between(span.start + copied..span.end);
        let are_positions = events.iter().all(|event| event.id.is_short_position());
        if are_positions {
            self.write_positions(events, out);
        } else {
            // Not all are as long then.
            for (place, event) in events.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_text(out, &table.id_text(event.id));
            }
        }
        if are_positions && span.len() > 1 {
            self.note(
                known,
                WrittenList {
                    begin: span.start,
                    at,
                    count: span.len(),
                },
            );
        }
    }

    fn write_positions(&mut self, events: &[BoundEvent], out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + events.len() * Self::WIDTH, b'"');
        let (cells, _) = out[at..].as_chunks_mut::<{ Self::WIDTH }>();
        for (cell, event) in cells.iter_mut().zip(events) {
            if let Some(digits) = cell[1..].first_chunk_mut() {
                self.positions.put(digits, event.id.number());
            }
            cell[Self::WIDTH - 1] = b',';
        }
        // None behind the last one.
        out.pop();
    }

    fn note(&mut self, known: Option<usize>, list: WrittenList) {
        if let Some(known) = known {
            self.lists[known] = list;
        } else if self.lists.len() < Self::MOST {
            self.lists.push(list);
        } else {
            self.lists[self.oldest] = list;
            self.oldest = (self.oldest + 1) % Self::MOST;
        }
    }
}

impl ChangeTable {
    /// How a match ended: of a query, what it returns.
    #[must_use]
    pub fn outcome(&self, row: &ChangeRow) -> &Outcome {
        &self.outcomes[self.outcome_number(row) as usize]
    }

    /// Its number; without meaning for a punctuation and a graph.
    pub(crate) fn outcome_number(&self, row: &ChangeRow) -> u32 {
        if self.graph(row).is_some() {
            0
        } else if self.variables(row).is_some() && row.kind != ChangeKind::Punctuation {
            self.bound.outcome(row.outcome)
        } else {
            row.outcome
        }
    }

    /// What an insert and a retraction of the same match share: a query may return something else under one id.
    pub(crate) fn identity(&self, row: &ChangeRow) -> Option<Identity> {
        let returned = || self.variables(row).map(|_| self.outcome(row).registers.clone());
        let is_match = matches!(row.kind, ChangeKind::Retract | ChangeKind::Insert) && self.graph(row).is_none();
        is_match.then(|| (self.match_id(row), returned()))
    }

    /// The variables of a row's query.
    #[must_use]
    pub fn variables(&self, row: &ChangeRow) -> Option<&Arc<[Arc<str>]>> {
        self.patterns[row.pattern as usize].variables.as_ref()
    }

    /// What the match of a query has bound: for each variable its events' times and ids.
    #[must_use]
    pub fn bindings(&self, row: &ChangeRow) -> Option<Bindings> {
        let variables = self.variables(row)?;
        let events = self.bound.variables(row.outcome, variables.len());
        let named = variables.iter().zip(events).map(|(name, events)| {
            let events = events
                .iter()
                .map(|event| (event.ts, self.id_text(event.id).into_owned()));
            (name.clone(), events.collect())
        });
        Some(named.collect())
    }

    /// The variable that a run has bound last, of a start event that no match came from.
    #[must_use]
    pub fn reached(&self, row: &ChangeRow) -> Option<&Arc<str>> {
        self.variables(row)?.get(self.bound.reached(row.outcome))
    }

    /// About how long the texts of all bindings are.
    pub(crate) fn text_of_bindings(&self) -> usize {
        let length = |row: &ChangeRow| {
            if let Some(graph) = self.graph(row) {
                return graph.text().len();
            }
            let variables = self.variables(row).filter(|_| row.kind != ChangeKind::Punctuation);
            let spans = variables.map(|names| self.bound.spans(row.outcome, names.len()));
            2 + spans.map_or(0, |spans| {
                spans.map(|span| 16 + span.len() * WrittenIds::WIDTH).sum::<usize>()
            })
        };
        self.rows.iter().map(length).sum()
    }

    /// Appends the bindings as a JSON object of ids; `all`: variables without events too.
    pub(crate) fn write_bindings(&self, row: &ChangeRow, all: bool, written: &mut WrittenIds, out: &mut Vec<u8>) {
        let Some(variables) = self.variables(row) else {
            return;
        };
        out.push(b'{');
        let mut is_first = true;
        for (name, span) in variables.iter().zip(self.bound.spans(row.outcome, variables.len())) {
            if span.is_empty() && !all {
                continue;
            }
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            write_text(out, name);
            out.extend_from_slice(b":[");
            written.write(self, span, out);
            out.push(b']');
        }
        out.push(b'}');
    }

    /// Appends the rest of a start event that no match came from.
    pub(crate) fn write_timeout(&self, row: &ChangeRow, out: &mut Vec<u8>) {
        self.write_start(row, out);
        write_member(out, "until");
        write_int(out, row.until);
        write_member(out, "reached");
        write_text(out, self.reached(row).map_or("", |name| name));
        write_member(out, "bindings");
        self.write_bindings(row, false, &mut WrittenIds::default(), out);
    }

    /// Where start events that no match came from stand to each other if they have one time.
    pub(crate) fn order_bindings(&self, one: &ChangeRow, other: &ChangeRow) -> Ordering {
        let bound = |row: &ChangeRow| {
            let mut bindings = self.bindings(row).unwrap_or_default();
            bindings.retain(|(_, events)| !events.is_empty());
            bindings
        };
        bound(one)
            .cmp(&bound(other))
            .then_with(|| one.pattern.cmp(&other.pattern))
    }
}

impl Sources<'_> {
    /// Appends bindings as match ids have them: `[[variable, [[ts, id], ...]], ...]`.
    pub(crate) fn pack_bindings(&self, row: &ChangeRow, variables: &[Arc<str>], buffer: &mut Vec<u8>) {
        packed(rmp::encode::write_array_len(buffer, length(variables.len())));
        for (name, events) in variables.iter().zip(self.bound.variables(row.outcome, variables.len())) {
            packed(rmp::encode::write_array_len(buffer, 2));
            packed(rmp::encode::write_str(buffer, name));
            packed(rmp::encode::write_array_len(buffer, length(events.len())));
            for event in events {
                packed(rmp::encode::write_array_len(buffer, 2));
                packed(rmp::encode::write_sint(buffer, event.ts));
                packed(rmp::encode::write_str_len(buffer, self.id_length(event.id)));
                self.write_id(event.id, &mut Positions::default(), buffer);
            }
        }
    }
}

fn length(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(0)
}
