//! Graphs of a key's matches: which ends they are told of, and when.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::FixedState;

use crate::bindings::finding::{QueryMatch, place_of};
use crate::bindings::folding::{Behind, Nodes, TooLarge};
use crate::bindings::layers::{Layer, layers_of, number};
use crate::bindings::observing::{Progress, Scope};
use crate::bindings::tries::{Letter, Trie, Word};
use crate::bindings::weaving::{Reached, Span, Weaver};
use crate::changes::found::Found;
use crate::changes::graph_text::{GraphWriter, returned};
use crate::changes::graphs::ToldGraph;
use crate::changes::table::{ChangeKind, ChangeRow};
use crate::engine::Engine;
use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::matcher::expiry;
use crate::program::compiled::{Program, UNRELEASED};
use crate::program::expression::Node;
use crate::program::pattern::{Window, first_open};
use crate::rows::event::Id;
use crate::rows::store::Rows;

/// The event that matches end with.
type End = (i64, Id);
/// Graphs by their ends.
pub(crate) type Graphs = BTreeMap<End, String>;

impl Program {
    /// Whether its matches are told as graphs.
    pub(crate) fn tells_graphs(&self) -> bool {
        self.query.as_ref().is_some_and(|query| query.compressed)
    }

    /// Writes graphs of its matches, which bind these rows, in order.
    fn graph_writer(&self, rows: &Rows, layers: &[u32]) -> GraphWriter {
        let length = match self.window {
            Window::Time(length) => Some(length),
            _ => None,
        };
        let variables = self.query.as_ref().map_or(&[][..], |query| &*query.variables);
        GraphWriter::new(rows, layers, variables, length)
    }

    /// What matches return that end in a configuration, as text.
    fn returned(&self, configuration: u32) -> String {
        let (_, values) = self.told_of(configuration);
        let query = self.query.as_ref();
        query.map(|query| returned(query, &values)).unwrap_or_default()
    }
}

/// Makes the graphs of one pattern and key from the layers of its events.
struct GraphMaker<'a> {
    program: &'a Program,
    rows: &'a Rows,
    key: &'a Key,
    pattern: usize,
    punctuation: Option<i64>,
    most: usize,
    layers: &'a [Layer],
    /// Those that matches may begin with.
    starts: Vec<u32>,
    weaver: Weaver<'a>,
    writer: GraphWriter,
}

impl GraphMaker<'_> {
    /// The graph of the matches that end with the event of a layer, if there are such.
    fn graph(&mut self, end: u32) -> Result<Option<String>, TooLarge> {
        let mut finals = BTreeMap::<String, Vec<Reached>>::new();
        for configuration in &self.layers[end as usize].finals {
            if let Some(span) = self.span(end, *configuration) {
                let reached = (*configuration, self.weaver.span(span));
                finals
                    .entry(self.program.returned(*configuration))
                    .or_default()
                    .push(reached);
            }
        }
        let (told, finals): (Vec<String>, Vec<Vec<Reached>>) = finals.into_iter().unzip();
        self.weaver.forget_much();
        let ends = self.weaver.ends(end, &finals)?;
        self.writer.write(&self.weaver.nodes, &ends, &told, self.most)
    }

    /// The start events of matches that end with an event in a configuration, as far as nothing forbids them.
    fn span(&self, end: u32, configuration: u32) -> Option<Span> {
        let layer = &self.layers[end as usize];
        // Spans that begin with the same event are the same: what ways of several ends have in common is walked once.
        let (first, mut last) = (self.first_start(layer.oldest, end)?, end);
        let mut counts_until = |is_late: &dyn Fn(u32) -> bool| {
            let layers = &self.layers[first as usize..=last as usize];
            let count = layers.partition_point(|layer| !is_late(layer.row));
            last = (first + number(count)).checked_sub(1)?;
            (first <= last).then_some(())
        };
        if self.program.is_told_at_window_end() {
            let closed = self.punctuation?;
            counts_until(&|row| expiry(self.program, self.rows, row) > closed)?;
        }
        let (Some(query), Window::Time(length)) = (&self.program.query, self.program.window) else {
            return Some(Span::new(first, last, end));
        };
        let registers = &self.program.sets.configuration(configuration).registers;
        let occurs = |nodes: &[Node], row: u32| {
            let view = self.rows.view(row);
            let truth = |node: &Node| node.evaluate(Some(&view), registers).as_truth();
            nodes.iter().any(|node| truth(node) == Some(true))
        };
        if !query.trailing.is_empty()
            && let Some(denied) = self.first_behind(layer.row, length, |row| occurs(&query.trailing, row))
        {
            counts_until(&|row| self.rows.ts(row).saturating_add(length) > denied)?;
        }
        if !query.leading.is_empty() {
            let mut before = self.layers[layer.oldest as usize..end as usize].iter();
            let denied = before.position(|layer| occurs(&query.leading, layer.row));
            last = denied.map_or(last, |denied| last.min(layer.oldest + number(denied)));
        }
        (first <= last).then_some(Span::new(first, last, end))
    }

    /// The first layer from one on that matches may begin with.
    fn first_start(&self, oldest: u32, end: u32) -> Option<u32> {
        let place = self.starts.partition_point(|start| *start < oldest);
        self.starts.get(place).copied().filter(|start| *start <= end)
    }

    /// The time of the first event behind an end of which something is true, if windows may be open there.
    fn first_behind(&self, end: u32, length: i64, is_it: impl Fn(u32) -> bool) -> Option<i64> {
        let spine = &self.key.spine;
        let until = self.rows.ts(end).saturating_add(length);
        let mut place = spine.next(place_of(self.rows, self.key, end)?);
        while let Some(here) = place.filter(|here| spine.ts(*here, self.rows) < until) {
            let row = spine.row(here);
            if self.rows.class(self.pattern, row) < UNRELEASED && is_it(row) {
                return Some(self.rows.ts(row));
            }
            place = spine.next(here);
        }
        None
    }
}

/// The graph of single matches that end with one event.
fn graph_of(program: &Program, rows: &Rows, matches: &[&QueryMatch]) -> Option<String> {
    let mut bound: Vec<u32> = matches
        .iter()
        .flat_map(|found| found.bound.iter().map(|(_, row)| *row))
        .collect();
    bound.sort_by(|one, other| rows.order(*one, *other));
    bound.dedup();
    let layers: HashMap<u32, u32, FixedState> = bound.iter().copied().zip(0..).collect();
    let mut tries = BTreeMap::<String, Trie>::new();
    for found in matches {
        let mut path = found.bound.to_vec();
        path.sort_by_key(|(variable, row)| (rows.ts(*row), *row == found.end, *row != found.start, *variable));
        let start = path.remove(0);
        let mut word: Word = path
            .iter()
            .rev()
            .map(|(variable, row)| Letter::new(layers[row], *variable))
            .collect();
        word.push(Letter::start(layers[&start.1], start.0));
        let told = program.query.as_ref().map(|query| returned(query, &found.told.values));
        tries.entry(told.unwrap_or_default()).or_default().add(word, &[]);
    }
    let (told, tries): (Vec<String>, Vec<Trie>) = tries.into_iter().unzip();
    let mut nodes = Nodes::default();
    let mut ends = nodes.fold(Trie::stage(&tries, |_| Behind::Nothing), &[]);
    ends.truncate(tries.len());
    let mut writer = program.graph_writer(rows, &bound);
    writer.write(&nodes, &ends, &told, usize::MAX).unwrap_or_default()
}

impl Engine {
    /// Tells the graphs of ends that came after all other events.
    pub(crate) fn tell_new_graphs(&mut self, key: &mut Key, lane: usize, added: &[Found]) {
        let pattern = self.lanes[lane];
        let records: HashMap<u32, u32, FixedState> = added.iter().map(|found| (found.end, found.record)).collect();
        let mut starts: Vec<u32> = added.iter().map(|found| found.start).collect();
        starts.sort_by(|one, other| self.rows.order(*one, *other));
        starts.dedup();
        let places: Vec<Place> = starts
            .iter()
            .filter_map(|row| place_of(&self.rows, key, *row))
            .collect();
        // What has begun with an event that is stored no more cannot be followed.
        self.findings.refused += starts.len() - places.len();
        let until = added.iter().map(|found| self.rows.ts(found.end)).max();
        let (Some(mut from), Some(until)) = (places.first().copied(), until) else {
            return;
        };
        let looks_back = self.programs[pattern].looks_back();
        if looks_back > 0 {
            let first = first_open(key.spine.ts(from, &self.rows), looks_back);
            from = key.spine.search(&self.rows, first).unwrap_or(from);
        }
        let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
        let is_due = |_: &Rows, row: u32| records.contains_key(&row);
        let graphs = self.make_graphs(key, lane, (Some(from), until), progress, is_due);
        self.note_refused(key);
        for (end, text) in graphs {
            let after = Graphs::from([(self.end_of(end), text)]);
            self.tell_graphs(key, pattern, records[&end], Graphs::new(), after);
        }
    }

    /// The graphs of a key that something may concern.
    pub(crate) fn graphs_of(&mut self, key: &Key, lane: usize, scope: Scope, progress: Progress) -> Graphs {
        let program = &self.programs[self.lanes[lane]];
        let (from, mut until) = scope.ends(program);
        if program.hold {
            match progress.emitted.and_then(|emitted| emitted.checked_sub(1)) {
                Some(last) => until = until.min(last),
                None => return Graphs::new(),
            }
        }
        let first = match program.window {
            Window::Time(length) => first_open(from, length),
            _ => i64::MIN,
        };
        let begin = key.spine.search(&self.rows, first);
        let graphs = self.make_graphs(key, lane, (begin, until), progress, |rows, row| rows.ts(row) >= from);
        graphs.into_iter().map(|(end, text)| (self.end_of(end), text)).collect()
    }

    /// The graphs of the ends between a place and an instant that are asked for, in order.
    fn make_graphs(
        &mut self,
        key: &Key,
        lane: usize,
        (from, until): (Option<Place>, i64),
        progress: Progress,
        is_due: impl Fn(&Rows, u32) -> bool,
    ) -> Vec<(u32, String)> {
        let pattern = self.lanes[lane];
        let layers = layers_of(
            &mut self.programs[pattern],
            (&self.rows, key),
            (lane, pattern),
            from,
            until,
        );
        let rows: Vec<u32> = layers.iter().map(|layer| layer.row).collect();
        let (program, most) = (&self.programs[pattern], self.limits.max_partial_matches_per_key);
        let mut maker = GraphMaker {
            program,
            rows: &self.rows,
            key,
            pattern,
            punctuation: progress.punctuation,
            most,
            layers: &layers,
            starts: (0..)
                .zip(&layers)
                .filter(|(_, layer)| layer.begins.is_some())
                .map(|(at, _)| at)
                .collect(),
            weaver: Weaver::new(&self.rows, &layers, program.has_sets(), most),
            writer: program.graph_writer(&self.rows, &rows),
        };
        let mut graphs = Vec::new();
        let ends = (0..)
            .zip(&layers)
            .filter(|(_, layer)| !layer.finals.is_empty() && is_due(&self.rows, layer.row));
        for (end, layer) in ends {
            match maker.graph(end) {
                Ok(Some(text)) => graphs.push((layer.row, text)),
                Ok(None) => {}
                Err(TooLarge) => self.findings.refused += 1,
            }
        }
        graphs
    }

    fn end_of(&self, row: u32) -> End {
        (self.rows.ts(row), self.rows.id(row).owned())
    }

    /// Tells graphs that are others than before; of what there was and is no more, that there are no matches.
    pub(crate) fn tell_graphs(&mut self, key: &Key, pattern: usize, record: u32, mut before: Graphs, after: Graphs) {
        let mut changed = Vec::new();
        for (end, text) in after {
            let old = before.remove(&end);
            if old.as_ref() != Some(&text) {
                changed.push((end, old, Some(text)));
            }
        }
        changed.extend(before.into_iter().map(|(end, old)| (end, Some(old), None)));
        let name = self.key_index(&key.name);
        let sample = self.sample(key, pattern, ChangeKind::Insert, name);
        for ((ts, id), old, text) in changed {
            let kind = if text.is_some() {
                ChangeKind::Insert
            } else {
                ChangeKind::Retract
            };
            self.table.graphs.push(ToldGraph::new(text, old.as_deref()));
            let last = self.table.push_id(&id);
            self.table.rows.push(ChangeRow {
                kind,
                has_until: false,
                outcome: number(self.table.graphs.len() - 1),
                record,
                start: ts,
                end: ts,
                last,
                ..sample
            });
        }
    }

    /// Tells what single matches that came and went change, where a pattern chooses among its matches.
    pub(crate) fn tell_changed_graphs(&mut self, key: &Key, lane: usize, gone: &[QueryMatch], come: &[QueryMatch]) {
        let pattern = self.lanes[lane];
        let changed: HashSet<End> = gone.iter().chain(come).map(|found| self.end_of(found.end)).collect();
        let times = || changed.iter().map(|(ts, _)| *ts);
        let (Some(from), Some(to)) = (times().min(), times().max()) else {
            return;
        };
        // Others may end there too, which stay.
        let progress = self.domains[key.domain()].progress(&self.programs[pattern], pattern);
        let mut after = self.matches_of(key, lane, Scope::Ending(from, to.saturating_add(1)), progress);
        after.retain(|found| changed.contains(&self.end_of(found.end)));
        let stay = after.iter().filter(|found| !come.contains(found));
        let before = self.graphs_of_matches(pattern, stay.chain(gone));
        let after = self.graphs_of_matches(pattern, after.iter());
        self.tell_graphs(key, pattern, self.findings.record, before, after);
    }

    /// Tells single matches that came, each with the record that it is due to: as graphs, if all with their ends came.
    pub(crate) fn tell_inserts(&mut self, key: &Key, pattern: usize, told: &[(u32, QueryMatch)]) {
        if !self.programs[pattern].tells_graphs() {
            let told = told.iter().map(|(record, found)| (*record, found));
            return self.tell_matches(key, pattern, ChangeKind::Insert, told);
        }
        for told in told.chunk_by(|one, other| one.0 == other.0) {
            let graphs = self.graphs_of_matches(pattern, told.iter().map(|(_, found)| found));
            self.tell_graphs(key, pattern, told[0].0, Graphs::new(), graphs);
        }
    }

    /// Graphs of single matches, by their ends.
    pub(crate) fn graphs_of_matches<'a>(
        &self,
        pattern: usize,
        matches: impl Iterator<Item = &'a QueryMatch>,
    ) -> Graphs {
        let mut ends = BTreeMap::<End, Vec<&QueryMatch>>::new();
        for found in matches {
            ends.entry(self.end_of(found.end)).or_default().push(found);
        }
        let program = &self.programs[pattern];
        let graphs = ends
            .into_iter()
            .filter_map(|(end, matches)| Some((end, graph_of(program, &self.rows, &matches)?)));
        graphs.collect()
    }
}
