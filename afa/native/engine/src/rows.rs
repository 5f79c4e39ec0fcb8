//! The rows: every event that is stored, remembered as retracted, or the start of a partial match.

use crate::event::Event;

/// A slab of events; numbers of rows that went are given out again.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
}

/// An event and what is remembered of the records that lost against it.
#[derive(Debug)]
pub struct Row {
    /// The winning record; of a retraction only identity, `rev` and `seq` count.
    pub event: Event,
    /// Other sequence numbers that records of this identity carried.
    pub other_seqs: Vec<i64>,
}

impl Row {
    /// Every sequence number that a record of this identity carried.
    pub fn seqs(&self) -> impl Iterator<Item = i64> + '_ {
        self.event.seq.iter().chain(&self.other_seqs).copied()
    }
}

impl Rows {
    /// Keeps an event and answers with its number.
    ///
    /// # Panics
    /// If more than 2^32 events are stored at once.
    pub fn add(&mut self, event: Event) -> u32 {
        let row = Some(Row {
            event,
            other_seqs: Vec::new(),
        });
        if let Some(number) = self.free.pop() {
            self.rows[number as usize] = row;
            return number;
        }
        self.rows.push(row);
        u32::try_from(self.rows.len() - 1).expect("rows fit in 32 bits")
    }

    /// The row of a number.
    ///
    /// # Panics
    /// If it is not in use.
    #[must_use]
    pub fn get(&self, number: u32) -> &Row {
        self.rows[number as usize].as_ref().expect("a row in use")
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// If it is not in use.
    pub fn get_mut(&mut self, number: u32) -> &mut Row {
        self.rows[number as usize].as_mut().expect("a row in use")
    }

    /// The event of a row.
    #[must_use]
    pub fn event(&self, number: u32) -> &Event {
        &self.get(number).event
    }

    /// How many are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() - self.free.len()
    }

    /// Whether none is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Room for a mark per row.
    #[must_use]
    pub fn marks(&self) -> Vec<bool> {
        vec![false; self.rows.len()]
    }

    /// Drops the rows that were not marked.
    pub fn sweep(&mut self, marks: &[bool]) {
        for (number, row) in self.rows.iter_mut().enumerate() {
            if !marks[number] && row.take().is_some() {
                #[allow(clippy::cast_possible_truncation)]
                self.free.push(number as u32);
            }
        }
    }
}
