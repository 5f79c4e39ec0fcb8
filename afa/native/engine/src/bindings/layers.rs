//! How the events of a key lead on the runs of all start events at once: the structure that they share, laid open.
//!
//! Runs of different start events that have come to one configuration go on alike. So it is enough to know which sets
//! of configurations there are before an event, and of each the newest event that its runs began with: a match may
//! begin there unless that one is too old.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::keys::key::Key;
use crate::keys::spine::Place;
use crate::lists::configuration::{Code, DEAD, FINAL, Link, unmarked};
use crate::lists::matcher::{expiry, is_closed};
use crate::program::compiled::{Program, UNRELEASED};
use crate::program::pattern::Window;
use crate::rows::store::Rows;

/// How an event leads on a set of configurations.
#[derive(Debug)]
pub(crate) struct Move {
    /// The layer of the newest event that runs with this set began with.
    pub(crate) newest: u32,
    pub(crate) links: Arc<[Link]>,
}

/// An event that runs consume.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) row: u32,
    /// The layer of the oldest event whose window is open here.
    pub(crate) oldest: u32,
    /// How runs begin with it.
    pub(crate) begins: Option<Arc<[Link]>>,
    pub(crate) moves: SmallVec<[Move; 2]>,
    /// The configurations behind it that are final.
    pub(crate) finals: SmallVec<[u32; 2]>,
}

/// What is reached on the way: sets, each with the layer of the newest start event.
type Live = Vec<(Code, u32)>;

/// Follows the events of a key from a place on, until after an instant.
pub(crate) fn layers_of(
    program: &mut Program,
    (rows, key): (&Rows, &Key),
    (lane, pattern): (usize, usize),
    from: Option<Place>,
    until: i64,
) -> Vec<Layer> {
    // What was counted when the list was stepped is not counted again.
    let counted = (program.errors, program.evaluations);
    let (mut layers, mut live, mut oldest) = (Vec::new(), Live::new(), 0);
    let mut place = from;
    while let Some(here) = place.filter(|here| key.spine.ts(*here, rows) <= until) {
        place = key.spine.next(here);
        let page = &key.spine.pages[here.page];
        let row = page.row(here.slot);
        if rows.class(pattern, row) >= UNRELEASED {
            continue;
        }
        if program.gap_free && !page.is_linked(lane, here.slot) {
            live.clear();
        }
        oldest = first_open_layer(program, rows, &layers, oldest, row);
        live.retain(|(_, newest)| *newest >= oldest);
        layers.push(next_layer(
            program,
            rows,
            pattern,
            (row, number(layers.len()), oldest),
            &mut live,
        ));
    }
    (program.errors, program.evaluations) = counted;
    layers
}

/// The first layer whose window is open at the row that comes next.
fn first_open_layer(program: &Program, rows: &Rows, layers: &[Layer], mut oldest: u32, row: u32) -> u32 {
    if let Window::Events(most) = program.window {
        let before = (layers.len() as u64 + 1).saturating_sub(most);
        return u32::try_from(before).unwrap_or(u32::MAX);
    }
    let ts = rows.ts(row);
    let is_over = |layer: &Layer| is_closed(program, expiry(program, rows, layer.row), ts);
    while layers.get(oldest as usize).is_some_and(is_over) {
        oldest += 1;
    }
    oldest
}

fn next_layer(
    program: &mut Program,
    rows: &Rows,
    pattern: usize,
    (row, layer, oldest): (u32, u32, u32),
    live: &mut Live,
) -> Layer {
    let (class, view) = (rows.class(pattern, row), rows.view(row));
    let mut moves = SmallVec::new();
    for (code, newest) in live.iter_mut() {
        let links = program.links(class, unmarked(*code), &view);
        *code = program.step(class, *code, &view);
        moves.push(Move { newest: *newest, links });
    }
    let mut begins = None;
    let begun = program.begin(class, || rows.view(row));
    if begun != DEAD && !is_closed(program, expiry(program, rows, row), rows.ts(row)) {
        let origin = program.origin(class);
        begins = Some(program.links(class, unmarked(origin), &view));
        live.push((begun, layer));
    }
    live.retain(|(code, _)| *code != DEAD);
    if let Window::Events(_) = program.window {
        for (code, _) in live.iter_mut() {
            *code = uncounted(program, *code);
        }
    }
    live.sort_unstable_by_key(|(code, newest)| (*code, std::cmp::Reverse(*newest)));
    live.dedup_by_key(|(code, _)| *code);
    let mut finals: SmallVec<[u32; 2]> = SmallVec::new();
    for (code, _) in live.iter().filter(|(code, _)| code & FINAL != 0) {
        finals.extend(program.final_members(*code));
    }
    finals.sort_unstable();
    finals.dedup();
    Layer {
        row,
        oldest,
        begins,
        moves,
        finals,
    }
}

/// The same set with no event consumed: layers say how many there are, and other runs may have come to it, too.
fn uncounted(program: &mut Program, code: Code) -> Code {
    let set = program.sets.set(code).clone();
    let number = program.sets.set_number(set.members.to_vec(), 0, set.is_cut);
    program.code(number)
}

/// The number of a layer.
#[allow(clippy::cast_possible_truncation)] // there are no more than rows
pub(crate) fn number(layer: usize) -> u32 {
    layer as u32
}
