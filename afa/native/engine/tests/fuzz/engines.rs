//! Engines with some patterns, one for each way in which the engine keeps partial matches.

use std::sync::Arc;

use afa_engine::engine::Engine;
use afa_engine::input::{Feeding, RawBatch};
use afa_engine::program::compiled::{Program, Shared};
use afa_engine::program::epochs::Life;
use afa_engine::program::expression::{FieldPath, Node};
use afa_engine::program::pattern::{Body, Frame, Register, Window};
use afa_engine::program::query::Output;
use afa_engine::program::value::{Arithmetic, Comparison, Value};
use afa_engine::progress::domain::Origin;
use afa_engine::progress::limits::Limits;
use afa_engine::raw::scan::{Codec, Envelope, Mapping, Padded, Records};
use afa_engine::segment::Net;

use crate::bytes::Bytes;

pub(crate) fn field(name: &str) -> Node {
    Node::Field(FieldPath {
        steps: [Arc::from(name)].into(),
        declared: 0,
    })
}

fn compared(left: Node, comparison: Comparison, right: Node) -> Node {
    Node::Comparison(comparison, Box::new(left), Box::new(right))
}

fn int(number: i64) -> Node {
    Node::Literal(Value::Int(number))
}

fn frame(name: &str, window: Window) -> Frame {
    Frame {
        name: name.into(),
        window,
        registers: Vec::new(),
        start: "0".into(),
        finals: vec!["2".into()],
        key_field: None,
        speculation: None,
        hold: false,
        gap_free: false,
        output: Output::All,
        query: None,
    }
}

fn counter() -> Register {
    Register {
        name: "c".into(),
        kind: 1,
        initial: Value::Int(0),
    }
}

/// From state to state: fence, and whether the register counts.
type Arcs = Vec<(u32, u32, Node, bool)>;

fn word() -> Arcs {
    let buys = compared(field("s"), Comparison::Equal, Node::Literal(Value::Str("buy".into())));
    vec![
        (0, 1, compared(field("x"), Comparison::Less, int(3)), false),
        (
            1,
            2,
            Node::Or(vec![compared(int(0), Comparison::LessEqual, field("n")), buys]),
            false,
        ),
    ]
}

fn counted() -> Arcs {
    let more = compared(field("n"), Comparison::GreaterEqual, Node::Register(0));
    vec![
        (0, 1, compared(field("x"), Comparison::GreaterEqual, int(0)), true),
        (
            1,
            1,
            compared(field("b"), Comparison::NotEqual, Node::Literal(Value::Bool(true))),
            false,
        ),
        (1, 1, Node::UnknownTest(Box::new(field("b"))), true),
        (1, 2, more, true),
    ]
}

fn patterns() -> Vec<(Frame, Arcs)> {
    let with_register = |frame: Frame| Frame {
        registers: vec![counter()],
        ..frame
    };
    let held = Frame {
        hold: true,
        speculation: Some(7),
        ..frame("held", Window::Time(9))
    };
    let gap_free = Frame {
        gap_free: true,
        ..frame("gapless", Window::Time(30))
    };
    vec![
        (frame("word", Window::Time(20)), word()),
        (with_register(frame("counted", Window::Events(4))), counted()),
        (with_register(frame("endless", Window::None)), counted()),
        (held, word()),
        (with_register(gap_free), counted()),
    ]
}

/// An engine that has seen nothing.
pub(crate) fn engine(codec: Codec) -> Engine {
    let mut shared = Shared::default();
    let (mut programs, mut lives) = (Vec::new(), Vec::new());
    for (frame, arcs) in patterns() {
        let mut program = Program::new(frame);
        let state = |program: &mut Program, number: u32| program.state(&number.to_string());
        for (number, (source, target, fence, counts)) in arcs.into_iter().enumerate() {
            let next = Node::Arithmetic(Arithmetic::Add, Box::new(Node::Register(0)), Box::new(int(1)));
            let body = Body {
                source: state(&mut program, source),
                target: state(&mut program, target),
                fence: vec![fence],
                transfer: if counts { vec![(0, next)] } else { Vec::new() },
                epsilon: false,
                binds: None,
            };
            let body = program.body_number(body, &mut shared);
            lives.push((program.name.clone(), number.to_string(), body));
        }
        program.find_chain();
        programs.push(program);
    }
    let mut engine = Engine::new(programs, shared, Mapping::tape(codec), Limits::default());
    for (pattern, id, body) in lives {
        let pattern = engine.pattern_number(&pattern).expect("a pattern");
        let life = Life {
            body,
            le: i64::MIN,
            re: None,
        };
        engine.set_arc(pattern, &id, life, false);
    }
    engine
}

/// Raw records, numbered in their order from some number on.
struct Batch {
    records: Records,
    first_number: u64,
}

impl RawBatch for Batch {
    fn len(&self) -> usize {
        self.records.len()
    }

    fn value(&self, index: usize) -> Option<Padded<'_>> {
        self.records.value(index)
    }

    fn bytes_from(&self, index: usize) -> usize {
        self.records.bytes_from(index)
    }

    fn alone(&self) -> Option<&Records> {
        Some(&self.records)
    }

    fn has_positions(&self) -> bool {
        false
    }

    fn envelope(&self, _: usize) -> Envelope<'_> {
        Envelope::default()
    }

    fn origin(&self, _: usize) -> Origin {
        Origin::default()
    }

    fn replayed(&self, _: usize) -> Option<i64> {
        None
    }

    fn number(&self, index: usize) -> u64 {
        self.first_number + index as u64
    }
}

/// What became of records.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// The numbers of bad ones, and why.
    pub(crate) bad: Vec<(u64, String)>,
    /// The numbers of late ones, and why.
    pub(crate) late: Vec<(u64, String)>,
    /// The numbers of those that only the caller could judge; they are left out.
    pub(crate) asks: Vec<u64>,
    /// What was told, as it is printed.
    pub(crate) changes: Vec<String>,
}

impl Outcome {
    pub(crate) fn add(&mut self, more: Self) {
        self.bad.extend(more.bad);
        self.late.extend(more.late);
        self.asks.extend(more.asks);
        self.changes.extend(more.changes);
    }
}

/// Feeds records as one batch, told after every record; the first has this number.
pub(crate) fn feed(engine: &mut Engine, records: &[Bytes], first_number: u64) -> Outcome {
    let mut batch = Batch {
        records: Records::default(),
        first_number,
    };
    for record in records {
        batch.records.push(&record.0);
    }
    let mut feeding = Feeding::new(Net::Record, false);
    let mut outcome = Outcome::default();
    let mut next = 0;
    loop {
        engine.feed_raw(&mut feeding, next, &batch);
        let Some(asked) = feeding.fed.asks else {
            break;
        };
        outcome.asks.push(first_number + u64::from(asked));
        next = asked as usize + 1;
    }
    engine.finish(&mut feeding);
    let numbered = |list: Vec<(u32, String)>| {
        let numbered = list
            .into_iter()
            .map(|(index, why)| (first_number + u64::from(index), why));
        numbered.collect()
    };
    outcome.bad = numbered(feeding.fed.bad);
    outcome.late = numbered(feeding.fed.late);
    let mut table = engine.take_changes();
    table.settle_ties();
    let told = table
        .rows
        .iter()
        .map(|row| String::from_utf8_lossy(&table.json(row)).into_owned());
    outcome.changes = told.collect();
    outcome
}

/// The snapshots of all keys but one of which something is known.
pub(crate) fn snapshots(engine: &mut Engine, without: &str) -> Vec<(String, Bytes)> {
    let names = engine.key_names().into_iter().filter(|name| name != without);
    let names: Vec<String> = names.collect();
    let taken = names.into_iter().filter_map(|name| {
        let snapshot = engine.snapshot(&name).expect("small")?;
        Some((name, Bytes(snapshot)))
    });
    taken.collect()
}
