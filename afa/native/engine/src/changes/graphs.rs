//! Graphs in a table of changes: all matches of a query that share their end event, told whole.

use std::collections::HashMap;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
use foldhash::fast::FixedState;

use crate::changes::graph_text::NO_MATCHES;
use crate::changes::json_text::write_int;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable, write_hex, write_member};

/// What one text is told from another by.
type Digest16 = [u8; 16];

/// A graph, and what stood in its place.
#[derive(Clone, Debug)]
pub struct ToldGraph {
    /// The text; none if there are no matches any more.
    text: Option<Box<str>>,
    /// That of the one before.
    before: Option<Digest16>,
}

impl ToldGraph {
    /// A graph that takes the place of another one.
    #[must_use]
    pub fn new(text: Option<String>, before: Option<&str>) -> Self {
        Self {
            text: text.map(String::into_boxed_str),
            before: before.map(digest),
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or(NO_MATCHES)
    }
}

fn digest(text: &str) -> Digest16 {
    Blake2b::<U16>::digest(text).into()
}

impl ChangeTable {
    /// The graph that a row tells, if it does.
    #[must_use]
    pub fn graph(&self, row: &ChangeRow) -> Option<&ToldGraph> {
        let tells = self.patterns[row.pattern as usize].is_compressed
            && matches!(row.kind, ChangeKind::Insert | ChangeKind::Retract);
        tells.then(|| &self.graphs[row.outcome as usize])
    }

    /// Lets the last graph of each end stand from one place on, unless it is the one that stood before all of them.
    pub(crate) fn net_graphs_from(&mut self, from: usize) {
        if !self.patterns.iter().any(|pattern| pattern.is_compressed) {
            return;
        }
        // What stood before, and which row has the last word.
        let mut ends: HashMap<[u8; 16], (Option<Digest16>, usize), FixedState> = HashMap::default();
        for (place, row) in self.rows[from..].iter().enumerate() {
            if let Some(graph) = self.graph(row) {
                ends.entry(self.match_id(row)).or_insert((graph.before, place)).1 = place;
            }
        }
        let mut last: Vec<bool> = vec![false; self.rows.len() - from];
        for (before, place) in ends.into_values() {
            let graph = &self.graphs[self.rows[from + place].outcome as usize];
            last[place] = graph.text.as_deref().map(digest) != before;
        }
        let rows = self.rows.split_off(from);
        let kept = rows
            .into_iter()
            .zip(last)
            .filter(|(row, is_last)| *is_last || self.graph(row).is_none());
        let kept: Vec<ChangeRow> = kept.map(|(row, _)| row).collect();
        self.rows.extend(kept);
    }

    pub(crate) fn write_graph(&self, row: &ChangeRow, graph: &ToldGraph, out: &mut Vec<u8>) {
        write_member(out, "match");
        out.push(b'"');
        write_hex(out, self.match_id(row));
        out.push(b'"');
        self.write_key(row, out);
        write_member(out, "end");
        write_int(out, row.end);
        write_member(out, "graph");
        out.extend_from_slice(graph.text().as_bytes());
        if row.degraded {
            out.extend_from_slice(b",\"degraded\":true");
        }
    }
}
