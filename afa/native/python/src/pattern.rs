//! Patterns and arcs as the Python facade packs them.

use std::sync::Arc;

use afa_engine::arcs::book::{BodyFacts, BodyText, read_arc_record};
use afa_engine::engine::Engine;
use afa_engine::program::compiled::{Program, Shared};
use afa_engine::program::epochs::Life;
use afa_engine::program::expression::{FieldPath, Node};
use afa_engine::program::pattern::{Body, Frame, Register, Window};
use afa_engine::program::query::{Output, Query};
use afa_engine::progress::limits::Limits;
use afa_engine::raw::msgpack::{Malformed, Reader};
use afa_engine::raw::scan::Mapping;

/// An arc as it was packed.
pub(crate) struct NewArc {
    id: Arc<str>,
    life: Life,
    is_final: bool,
    /// Its lifetime names the least 64-bit number, which is not the same as unbounded to the rules of changes.
    asked: bool,
    /// The text of its fence; none if more than that has to be compared.
    fence: Option<Box<str>>,
}

/// An engine with the arcs of its patterns.
pub(crate) fn build_engine(patterns: &[Vec<u8>], mapping: &[u8], limits: Limits) -> Result<Engine, Malformed> {
    let mut shared = Shared::default();
    let mut read = patterns
        .iter()
        .map(|bytes| read_pattern(bytes, &mut shared))
        .collect::<Result<Vec<_>, _>>()?;
    read.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let (programs, arcs): (Vec<Program>, Vec<Vec<NewArc>>) = read.into_iter().unzip();
    let mut engine = Engine::new(programs, shared, Mapping::read(mapping)?, limits);
    for (pattern, arcs) in arcs.into_iter().enumerate() {
        for arc in arcs {
            learn_text(&mut engine, pattern, &arc);
            engine.set_arc(pattern, &arc.id, arc.life, arc.asked);
        }
    }
    Ok(engine)
}

/// The text of an arc was checked with its pattern: a record that has the same need not be.
fn learn_text(engine: &mut Engine, pattern: usize, arc: &NewArc) {
    let Some(fence) = arc.fence.as_ref().filter(|_| !arc.asked) else {
        return;
    };
    let program = &engine.programs[pattern];
    if program.is_query() {
        // Its arcs come from its own text.
        return;
    }
    let body = program.body(arc.life.body);
    let text = BodyText {
        source: program.state_name(body.source).as_bytes(),
        target: program.state_name(body.target).as_bytes(),
        fence: Some(fence.as_bytes()),
        transfer: None,
    };
    engine.books[pattern].learn(text, arc.life.body, BodyFacts::default());
}

/// `[name, window, registers, start, finals, key field, speculation, hold, gap free, output, query, [arc...]]`.
fn read_pattern(bytes: &[u8], shared: &mut Shared) -> Result<(Program, Vec<NewArc>), Malformed> {
    let mut reader = Reader::new(bytes);
    reader.array(12)?;
    let name = reader.text()?.into();
    let window = read_window(&mut reader)?;
    let registers = read_registers(&mut reader)?;
    let start = reader.text()?.into();
    let finals = read_texts(&mut reader)?;
    let key_field = if reader.nil() {
        None
    } else {
        Some(FieldPath {
            steps: read_texts(&mut reader)?.into(),
            declared: 0,
        })
    };
    let speculation = if reader.nil() { None } else { Some(reader.int()?) };
    let (hold, gap_free) = (reader.truth()?, reader.truth()?);
    let output = match reader.text()? {
        "all" => Output::All,
        "non_overlapping" => Output::NonOverlapping,
        "earliest_maximal" => Output::EarliestMaximal,
        _ => return Err(Malformed("an unknown output")),
    };
    let query = read_query(&mut reader, &registers)?;
    let mut program = Program::new(Frame {
        name,
        window,
        registers,
        start,
        finals,
        key_field,
        speculation,
        hold,
        gap_free,
        output,
        query,
    });
    let arcs = (0..reader.any_array()?)
        .map(|_| read_arc(&mut reader, &mut program, shared))
        .collect::<Result<Vec<_>, _>>()?;
    reader.end()?;
    program.find_chain();
    program.find_pin();
    Ok((program, arcs))
}

/// Nil, or `[variables, partition, [[name, expression]...], leading, trailing, speculates, timeouts, compressed,
/// components, tells bindings]`.
fn read_query(reader: &mut Reader<'_>, registers: &[Register]) -> Result<Option<Arc<Query>>, Malformed> {
    if reader.nil() {
        return Ok(None);
    }
    reader.array(10)?;
    let names: Vec<Arc<str>> = registers.iter().map(|register| register.name.clone()).collect();
    let variables: Arc<[Arc<str>]> = read_texts(reader)?.into();
    let numbered = |known: &[Arc<str>], names: Vec<Arc<str>>| {
        let place = |name: &Arc<str>| known.iter().position(|known| known == name);
        let found = names.iter().map(place).collect::<Option<Vec<usize>>>();
        found.ok_or(Malformed("an unknown name"))
    };
    let partition = numbered(&names, read_texts(reader)?)?;
    let returns = (0..reader.any_array()?)
        .map(|_| {
            reader.array(2)?;
            Ok((reader.text()?.into(), Node::read(reader.binary()?, &names)?))
        })
        .collect::<Result<_, Malformed>>()?;
    let (leading, trailing) = (read_nodes(reader, &names)?, read_nodes(reader, &names)?);
    let (speculates, timeouts, compressed) = (reader.truth()?, reader.truth()?, reader.truth()?);
    let components = (0..reader.any_array()?)
        .map(|_| {
            let variables = numbered(&variables, read_texts(reader)?)?;
            variables.into_iter().map(number).collect()
        })
        .collect::<Result<_, Malformed>>()?;
    let tells_bindings = reader.truth()?;
    Ok(Some(Arc::new(Query {
        variables,
        partition,
        returns,
        leading,
        trailing,
        speculates,
        timeouts,
        compressed,
        components,
        tells_bindings,
    })))
}

fn read_nodes(reader: &mut Reader<'_>, registers: &[Arc<str>]) -> Result<Vec<Node>, Malformed> {
    (0..reader.any_array()?)
        .map(|_| Node::read(reader.binary()?, registers))
        .collect()
}

/// The number of a variable.
fn number(place: usize) -> Result<u16, Malformed> {
    u16::try_from(place).map_err(|_| Malformed("too many variables"))
}

fn read_window(reader: &mut Reader<'_>) -> Result<Window, Malformed> {
    if reader.nil() {
        return Ok(Window::None);
    }
    reader.array(2)?;
    match reader.text()? {
        "time" => reader.int().map(Window::Time),
        "events" => reader.uint().map(Window::Events),
        _ => Err(Malformed("an unknown kind of window")),
    }
}

fn read_registers(reader: &mut Reader<'_>) -> Result<Vec<Register>, Malformed> {
    (0..reader.any_array()?)
        .map(|_| {
            reader.array(3)?;
            let name = reader.text()?.into();
            let kind = u8::try_from(reader.uint()?).map_err(|_| Malformed("an unknown type"))?;
            Ok(Register {
                name,
                kind,
                initial: reader.value()?,
            })
        })
        .collect()
}

fn read_texts(reader: &mut Reader<'_>) -> Result<Vec<Arc<str>>, Malformed> {
    (0..reader.any_array()?).map(|_| reader.text().map(Arc::from)).collect()
}

/// `[id, from, to, fence, [[register, transfer]...], epsilon, final, binds, le, re, text of the fence]`.
fn read_arc(reader: &mut Reader<'_>, program: &mut Program, shared: &mut Shared) -> Result<NewArc, Malformed> {
    reader.array(11)?;
    let id = reader.text()?.into();
    let (source, target) = (program.state(reader.text()?), program.state(reader.text()?));
    let names: Vec<Arc<str>> = program.registers.iter().map(|register| register.name.clone()).collect();
    let fence = Node::read(reader.binary()?, &names)?.conjuncts();
    let mut transfer = Vec::new();
    for _ in 0..reader.any_array()? {
        reader.array(2)?;
        let name = reader.text()?;
        let index = names
            .iter()
            .position(|known| &**known == name)
            .ok_or(Malformed("an unknown register"))?;
        transfer.push((index, Node::read(reader.binary()?, &names)?));
    }
    let (epsilon, is_final) = (reader.truth()?, reader.truth()?);
    let binds = if reader.nil() {
        None
    } else {
        program.variable(reader.text()?)
    };
    let le = if reader.nil() { None } else { Some(reader.int()?) };
    let re = if reader.nil() { None } else { Some(reader.int()?) };
    let text = reader.text()?;
    let fence_text = transfer.is_empty().then(|| text.into());
    let body = Body {
        source,
        target,
        fence,
        transfer,
        epsilon,
        binds,
    };
    let body = program.body_number(body, shared);
    Ok(NewArc {
        id,
        life: Life {
            body,
            le: le.unwrap_or(i64::MIN),
            re,
        },
        is_final,
        asked: is_final || epsilon || le == Some(i64::MIN) || re == Some(i64::MIN),
        fence: fence_text,
    })
}

/// Applies an arc that the caller has checked; `record` is the JSON that named it, so that its text is known next time.
pub(crate) fn apply_arc(engine: &mut Engine, pattern: usize, arc: &[u8], record: &[u8]) -> Result<u32, Malformed> {
    let (program, shared) = engine.program_and_shared(pattern);
    let arc = read_arc(&mut Reader::new(arc), program, shared)?;
    if arc.is_final {
        let target = program.state_name(program.body(arc.life.body).target).clone();
        engine.make_final(pattern, &target);
    }
    if !arc.asked
        && let Some(text) = read_arc_record(record).and_then(|record| record.body)
    {
        engine.books[pattern].learn(text, arc.life.body, BodyFacts::default());
    }
    engine.set_arc(pattern, &arc.id, arc.life, arc.asked);
    Ok(arc.life.body)
}
