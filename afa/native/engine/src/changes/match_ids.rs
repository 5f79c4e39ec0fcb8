//! The ids of matches and graphs, as `schemas/match-ids.json` shows them.

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};

use crate::changes::json_text::Positions;
use crate::changes::table::{ChangeRow, IdSlot, Sources, packed};

impl Sources<'_> {
    /// The id of a row's match or graph; `buffer` saves an allocation from row to row.
    pub(crate) fn match_id(&self, row: &ChangeRow, buffer: &mut Vec<u8>) -> [u8; 16] {
        if !self.patterns[row.pattern as usize].is_compressed {
            return self.single_id(row, buffer);
        }
        buffer.clear();
        packed(rmp::encode::write_array_len(buffer, 4));
        self.pack_names(row, buffer);
        self.pack_event(row.end, row.last, buffer);
        Blake2b::<U16>::digest(&buffer).into()
    }

    /// The id of a row's match, also if that is told as part of a graph.
    pub(crate) fn single_id(&self, row: &ChangeRow, buffer: &mut Vec<u8>) -> [u8; 16] {
        buffer.clear();
        packed(rmp::encode::write_array_len(buffer, 7));
        self.pack_names(row, buffer);
        self.pack_event(row.start, row.first, buffer);
        self.pack_event(row.end, row.last, buffer);
        match &self.patterns[row.pattern as usize].variables {
            Some(variables) => self.pack_bindings(row, variables, buffer),
            None => self.outcomes[row.outcome as usize].pack(buffer),
        }
        Blake2b::<U16>::digest(&buffer).into()
    }

    fn pack_names(&self, row: &ChangeRow, buffer: &mut Vec<u8>) {
        packed(rmp::encode::write_str(
            buffer,
            &self.patterns[row.pattern as usize].name,
        ));
        packed(rmp::encode::write_str(buffer, &self.keys[row.key as usize]));
    }

    fn pack_event(&self, ts: i64, id: IdSlot, buffer: &mut Vec<u8>) {
        packed(rmp::encode::write_sint(buffer, ts));
        packed(rmp::encode::write_str_len(buffer, self.id_length(id)));
        self.write_id(id, &mut Positions::default(), buffer);
    }
}
