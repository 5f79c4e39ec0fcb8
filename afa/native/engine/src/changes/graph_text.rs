//! Graphs of matches that share their end event, as text: `schemas/match-graph.schema.json` has the parts.

use std::ops::Range;
use std::sync::Arc;

use crate::bindings::folding::{Nodes, TooLarge};
use crate::changes::json_text::{write_int, write_position, write_text};
use crate::changes::outcomes::write_values;
use crate::program::query::Query;
use crate::program::value::Value;
use crate::rows::event::IdRef;
use crate::rows::store::Rows;

/// The graph without matches.
pub(crate) const NO_MATCHES: &str = r#"{"variables":[],"events":[],"nodes":[],"starts":[],"ends":[]}"#;

/// What matches return, as text.
pub(crate) fn returned(query: &Query, values: &[Value]) -> String {
    let mut out = Vec::new();
    write_values(query.returns.iter().map(|(name, _)| name), values, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Writes graphs of one query and key, whose nodes bind the same events.
pub(crate) struct GraphWriter {
    /// The names of variables as text.
    variables: Vec<u8>,
    /// By layer, where its event stands among all by time and id.
    ranks: Vec<u32>,
    /// In that order the texts of events, and where they are; and until when matches live that begin with them.
    texts: Vec<u8>,
    events: Vec<Range<usize>>,
    untils: Vec<Option<i64>>,
    /// By node, and by rank of an event, the place in the graph that is written.
    node_places: Vec<u32>,
    event_places: Vec<u32>,
    /// What is written, in order: nodes, where the places of those before each end, and those.
    nodes: Vec<(u32, usize)>,
    before: Vec<u32>,
    ends: Vec<(u32, usize)>,
}

const UNKNOWN: u32 = u32::MAX;

impl GraphWriter {
    /// One for the events of these rows, which are in order. Matches live so long, if they have an end of life.
    pub(crate) fn new(rows: &Rows, layers: &[u32], variables: &[Arc<str>], length: Option<i64>) -> Self {
        let mut order: Vec<u32> = (0..).take(layers.len()).collect();
        let row = |layer: u32| layers[layer as usize];
        // Of one time they need not be in the order of their ids.
        order.sort_by(|one, other| {
            let times = rows.ts(row(*one)).cmp(&rows.ts(row(*other)));
            times.then_with(|| rows.id(row(*one)).cmp(&rows.id(row(*other))))
        });
        let mut writer = Self {
            variables: Vec::new(),
            ranks: vec![0; layers.len()],
            texts: Vec::with_capacity(layers.len() * 32),
            events: Vec::with_capacity(layers.len()),
            untils: Vec::with_capacity(layers.len()),
            node_places: Vec::new(),
            event_places: vec![0; layers.len()],
            nodes: Vec::new(),
            before: Vec::new(),
            ends: Vec::new(),
        };
        write_list(&mut writer.variables, variables.iter(), |out, name| {
            write_text(out, name);
        });
        for (rank, layer) in (0..).zip(order) {
            let (row, from) = (row(layer), writer.texts.len());
            writer.ranks[layer as usize] = rank;
            write_event(&mut writer.texts, rows, row);
            writer.events.push(from..writer.texts.len());
            writer
                .untils
                .push(length.map(|length| rows.ts(row).saturating_add(length)));
        }
        writer
    }

    /// The graph of matches that end with the nodes of these lists, with what is returned there; none without matches.
    pub(crate) fn write(
        &mut self,
        nodes: &Nodes,
        ends: &[u32],
        returned: &[String],
        most: usize,
    ) -> Result<Option<String>, TooLarge> {
        self.begin(nodes);
        for (number, list) in ends.iter().enumerate() {
            let mut list: Vec<u32> = nodes.of_list(*list).collect();
            self.order(nodes, &mut list);
            for end in list {
                self.place(nodes, end, most)?;
                self.ends.push((self.node_places[end as usize], number));
            }
        }
        Ok((!self.nodes.is_empty()).then(|| self.text(nodes, returned)))
    }

    /// Forgets the graph before.
    fn begin(&mut self, nodes: &Nodes) {
        for (node, _) in &self.nodes {
            if let Some(place) = self.node_places.get_mut(*node as usize) {
                *place = UNKNOWN;
            }
        }
        self.node_places.resize(nodes.len(), UNKNOWN);
        self.nodes.clear();
        self.before.clear();
        self.ends.clear();
    }

    /// Puts nodes into the order of their events and variables.
    fn order(&self, nodes: &Nodes, list: &mut [u32]) {
        list.reverse();
        list.sort_by_key(|node| {
            let node = nodes.node(*node);
            (self.ranks[node.layer as usize], node.variable)
        });
    }

    /// Gives a node its place, behind those before it, which are placed in the order of their events.
    fn place(&mut self, nodes: &Nodes, end: u32, most: usize) -> Result<(), TooLarge> {
        // Of each node on the way down: where the nodes before it begin in the list of all, and the next to be placed.
        let (mut ways, mut all): (Vec<(u32, usize, usize)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut next = Some(end);
        loop {
            if let Some(node) = next.take().filter(|node| self.node_places[*node as usize] == UNKNOWN) {
                let from = all.len();
                all.extend(nodes.of_list(nodes.node(node).before));
                self.order(nodes, &mut all[from..]);
                ways.push((node, from, from));
            }
            let Some((node, from, at)) = ways.last_mut() else {
                return Ok(());
            };
            next = all.get(*at).copied();
            *at += 1;
            if next.is_none() {
                let node = *node;
                self.node_places[node as usize] = place(self.nodes.len());
                let begin = self.before.len();
                let places = all.drain(*from..).map(|node| self.node_places[node as usize]);
                self.before.extend(places);
                self.before[begin..].sort_unstable();
                self.nodes.push((node, self.before.len()));
                ways.pop();
                if self.nodes.len() + self.before.len() > most {
                    return Err(TooLarge);
                }
            }
        }
    }

    fn text(&mut self, nodes: &Nodes, returned: &[String]) -> String {
        let mut ranks: Vec<u32> = self.nodes.iter().map(|(node, _)| self.rank(nodes, *node)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for (place, rank) in (0..).zip(&ranks) {
            self.event_places[*rank as usize] = place;
        }
        let mut out = Vec::with_capacity(128 + ranks.len() * 24 + (self.nodes.len() + self.before.len()) * 10);
        out.extend_from_slice(b"{\"variables\":");
        out.extend_from_slice(&self.variables);
        out.extend_from_slice(b",\"events\":");
        write_list(&mut out, ranks.iter(), |out, rank| {
            out.extend_from_slice(&self.texts[self.events[*rank as usize].clone()]);
        });
        out.extend_from_slice(b",\"nodes\":");
        self.write_nodes(nodes, &mut out);
        out.extend_from_slice(b",\"starts\":");
        let starts = (0..)
            .zip(&self.nodes)
            .filter(|(_, (node, _))| nodes.node(*node).is_start);
        write_list(&mut out, starts, |out, (place, (node, _))| {
            let until = self.untils[self.rank(nodes, *node) as usize];
            write_pair(out, place, |out| match until {
                Some(until) => write_int(out, until),
                None => out.extend_from_slice(b"null"),
            });
        });
        out.extend_from_slice(b",\"ends\":");
        write_list(&mut out, self.ends.iter(), |out, (place, number)| {
            write_pair(out, *place, |out| out.extend_from_slice(returned[*number].as_bytes()));
        });
        out.push(b'}');
        String::from_utf8(out).unwrap_or_default()
    }

    fn write_nodes(&self, nodes: &Nodes, out: &mut Vec<u8>) {
        let mut from = 0;
        write_list(out, self.nodes.iter(), |out, (node, until)| {
            let event = self.event_places[self.rank(nodes, *node) as usize];
            let before = &self.before[std::mem::replace(&mut from, *until)..*until];
            write_pair(out, nodes.node(*node).variable.into(), |out| {
                write_int(out, event.into());
                out.push(b',');
                write_list(out, before.iter(), |out, place| write_int(out, (*place).into()));
            });
        });
    }

    fn rank(&self, nodes: &Nodes, node: u32) -> u32 {
        self.ranks[nodes.node(node).layer as usize]
    }
}

/// Appends the time and the id of an event.
fn write_event(out: &mut Vec<u8>, rows: &Rows, row: u32) {
    out.push(b'[');
    write_int(out, rows.ts(row));
    out.push(b',');
    match rows.id(row) {
        IdRef::Text(text) => write_text(out, text),
        IdRef::Number(number) => {
            out.push(b'"');
            write_position(out, number);
            out.push(b'"');
        }
    }
    out.push(b']');
}

fn write_pair(out: &mut Vec<u8>, place: u32, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'[');
    write_int(out, place.into());
    out.push(b',');
    write(out);
    out.push(b']');
}

fn write_list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}

#[allow(clippy::cast_possible_truncation)] // limited
fn place(length: usize) -> u32 {
    length as u32
}
