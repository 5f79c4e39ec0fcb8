//! Rows that follow all that a key has: the list is stepped over them, matches are noted, pages begun.

use crate::changes::found::{Findings, Found};
use crate::keys::key::Key;
use crate::keys::page::{PAGE_ENTRIES, Page};
use crate::keys::spine::Pages;
use crate::lists::configuration::{Word, code_of, start_row};
use crate::lists::lane::{Lane, Lanes};
use crate::lists::matcher::Matcher;
use crate::lists::stepper::{Entries, Stepper, Witness};
use crate::program::compiled::Program;
use crate::rows::store::{Reader, parts};
use crate::rows::stretch::Stretch;

/// Notes the matches that end at rows.
struct Noting<'a, R: Fn(usize) -> u32> {
    findings: &'a mut Findings,
    pattern: usize,
    row: R,
    /// The record of the first row, if each has its own.
    first_record: Option<u32>,
}

impl<R: Fn(usize) -> u32> Noting<'_, R> {
    #[inline]
    fn record(&self, row: u32) -> u32 {
        self.first_record
            .map_or(self.findings.record, |first| first + (row - (self.row)(0)))
    }
}

impl<R: Fn(usize) -> u32> Witness for Noting<'_, R> {
    fn note(&mut self, program: &Program, at: usize, word: Word) {
        let row = (self.row)(at);
        self.findings.record = self.record(row);
        self.findings
            .note(program, self.pattern, false, start_row(word), row, code_of(word));
    }

    #[inline]
    fn note_one(&mut self, at: usize, word: Word, configuration: u32) {
        let end = (self.row)(at);
        self.findings.list.push(Found {
            record: self.record(end),
            retracts: false,
            pattern: self.pattern,
            start: start_row(word),
            end,
            configuration,
        });
    }
}

/// Notes the matches of a run, and begins the pages for it.
struct Paging<'a, R: Fn(usize) -> u32> {
    noting: Noting<'a, R>,
    pages: &'a mut Pages,
    /// Of all rows of the run.
    times: &'a [i64],
    /// The first row that is in no page yet.
    next: usize,
    /// No page takes more.
    longest: usize,
}

impl<R: Fn(usize) -> u32> Witness for Paging<'_, R> {
    #[inline]
    fn note(&mut self, program: &Program, at: usize, word: Word) {
        self.noting.note(program, at, word);
    }

    #[inline]
    fn note_one(&mut self, at: usize, word: Word, configuration: u32) {
        self.noting.note_one(at, word, configuration);
    }

    #[inline]
    fn next_page(&self) -> usize {
        self.next
    }

    fn begin_page(&mut self) -> Option<&mut Lane> {
        let count = (self.times.len() - self.next).min(self.longest);
        let mut page = Page::new(Lanes::from_buf([Lane::default()]));
        page.extend_run((self.noting.row)(self.next), count, self.times[self.next + count - 1]);
        self.next += count;
        self.pages.push_back(page).entering.first_mut()
    }
}

impl Matcher<'_> {
    /// Appends rows that follow each other in one chunk, where there is one lane and no pattern asks for AFA+O: one loop
    /// over all of them, which keeps the list wherever a page begins. No page takes more than `longest`.
    pub(crate) fn append_run(
        &mut self,
        key: &mut Key,
        (first, count): (u32, usize),
        longest: usize,
        first_record: Option<u32>,
    ) {
        let pattern = self.lanes[0];
        let (number, offset) = parts(first);
        let chunk = self.rows.chunk(number);
        let times = &chunk.times()[offset..offset + count];
        let next = key.spine.extend_last(first, times, longest);
        #[allow(clippy::cast_possible_truncation)] // a run lies in one chunk
        let row = move |at| first + at as u32;
        let entries = Entries {
            row,
            times,
            classes: &chunk.classes(pattern)[offset..offset + count],
        };
        let mut stepper = Stepper {
            program: &mut self.programs[pattern],
            rows: self.rows,
            max_partial_matches: self.max_partial_matches,
            refused: 0,
        };
        let paging = Paging {
            noting: Noting {
                findings: self.findings,
                pattern,
                row,
                first_record,
            },
            pages: &mut key.spine.pages,
            times,
            next,
            longest,
        };
        stepper.step_over(&mut key.lanes[0], &entries, paging);
        let (refused, newest) = (stepper.refused, times[count - 1]);
        self.findings.refused += refused;
        self.rows.store(number, count, newest);
    }

    /// Steps the list after the last event over rows that follow, no more than a page takes.
    pub(crate) fn step_rows(&mut self, lane: &mut Lane, pattern: usize, piece: Stretch<'_>, first_record: Option<u32>) {
        let mut stepper = Stepper {
            program: &mut self.programs[pattern],
            rows: self.rows,
            max_partial_matches: self.max_partial_matches,
            refused: 0,
        };
        let row = |at| piece.row(at);
        let noting = Noting {
            findings: self.findings,
            pattern,
            row,
            first_record,
        };
        let (mut times, mut classes) = ([0; PAGE_ENTRIES], [0; PAGE_ENTRIES]);
        let entries = match piece {
            Stretch::Run(first, count) => {
                let (chunk, offset) = parts(first);
                let chunk = self.rows.chunk(chunk);
                Entries {
                    row,
                    times: &chunk.times()[offset..offset + count],
                    classes: &chunk.classes(pattern)[offset..offset + count],
                }
            }
            Stretch::Listed(_) | Stretch::Gapped(_) => {
                let mut reader = Reader::new(self.rows);
                for (at, row) in piece.rows().enumerate() {
                    let (chunk, offset) = reader.find(row);
                    (times[at], classes[at]) = (chunk.times()[offset], chunk.class(pattern, offset));
                }
                Entries {
                    row,
                    times: &times[..piece.len()],
                    classes: &classes[..piece.len()],
                }
            }
        };
        stepper.step_over(lane, &entries, noting);
        let refused = stepper.refused;
        self.findings.refused += refused;
    }
}
