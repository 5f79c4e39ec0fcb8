//! The columns of a table in which queries tell: what they have bound, and which rows lack what others have.

use crate::changes::arrow::TextBuffer;
use crate::changes::bound_text::WrittenIds;
use crate::changes::table::{ChangeKind, ChangeRow, ChangeTable};

/// Which rows have a value in columns where not every row has one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Having {
    /// Bindings: matches of queries, also as graphs, and start events that none came from.
    Bindings,
    /// A final state: matches of automata.
    State,
    /// What every single match has.
    Match,
    /// An end: all but start events that no match came from.
    End,
    /// A start: all but graphs.
    Start,
    /// An id: matches and graphs.
    Id,
}

const KINDS: usize = 6;

/// Bits of rows and the texts of bindings.
#[derive(Debug)]
pub(crate) struct BoundColumns {
    pub(crate) bindings: TextBuffer,
    /// Kind after kind.
    bits: Vec<u8>,
    nulls: [usize; KINDS],
}

impl BoundColumns {
    /// Those of a table; none if no query tells anything.
    pub(crate) fn of(table: &ChangeTable) -> Option<Self> {
        if !table.patterns.iter().any(|pattern| pattern.is_query) {
            return None;
        }
        let mut columns = Self {
            bindings: TextBuffer::for_texts(table.rows.len(), table.text_of_bindings() / table.rows.len().max(1) + 1),
            bits: Vec::new(),
            nulls: [0; KINDS],
        };
        let bytes = table.rows.len().div_ceil(8);
        columns.bits.resize(KINDS * bytes, 0);
        for (place, row) in table.rows.iter().enumerate() {
            for (kind, has) in having(table, row).into_iter().enumerate() {
                columns.bits[kind * bytes + place / 8] |= u8::from(has) << (place % 8);
                columns.nulls[kind] += usize::from(!has);
            }
        }
        if table.patterns.iter().all(|pattern| pattern.variables.is_none()) {
            columns.bindings.push_nothing(table.rows.len());
            return Some(columns);
        }
        let mut written = WrittenIds::default();
        for row in &table.rows {
            columns.bindings.push_with(|out| {
                if let Some(graph) = table.graph(row) {
                    out.extend_from_slice(graph.text().as_bytes());
                } else if having(table, row)[Having::Bindings as usize] {
                    table.write_bindings(row, row.kind != ChangeKind::Timeout, &mut written, out);
                }
            });
        }
        Some(columns)
    }

    /// The bits of rows that have something, and how many have not.
    pub(crate) fn validity(&self, kind: Having) -> (&[u8], usize) {
        let (bytes, number) = (self.bits.len() / KINDS, kind as usize);
        (&self.bits[number * bytes..(number + 1) * bytes], self.nulls[number])
    }
}

/// What a row has, in the order of the kinds.
fn having(table: &ChangeTable, row: &ChangeRow) -> [bool; KINDS] {
    let is_match = matches!(row.kind, ChangeKind::Retract | ChangeKind::Insert);
    let is_alone = table.graph(row).is_none();
    let pattern = &table.patterns[row.pattern as usize];
    [
        pattern.variables.is_some() && row.kind != ChangeKind::Punctuation,
        is_match && !pattern.is_query,
        is_match && is_alone,
        row.kind != ChangeKind::Timeout,
        row.kind != ChangeKind::Punctuation && is_alone,
        is_match,
    ]
}
