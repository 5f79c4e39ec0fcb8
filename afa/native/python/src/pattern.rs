//! Patterns and arcs as the Python facade packs them.

use std::sync::Arc;

use afa_engine::expression::{FieldPath, Node};
use afa_engine::live_arcs::NewArc;
use afa_engine::msgpack::{Malformed, Reader};
use afa_engine::pattern::{Body, Frame, Register, Window};
use afa_engine::program::Program;

/// `[name, window, registers, start, finals, key field, speculation, hold, gap free, [[arc, le, re]...]]`.
pub(crate) fn read_pattern(bytes: &[u8]) -> Result<Program, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.array(10)?;
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
    let frame = Frame {
        name,
        window,
        registers,
        start,
        finals,
        key_field,
        speculation,
        hold,
        gap_free,
    };
    let mut program = Program::new(frame);
    for _ in 0..reader.any_array()? {
        let arc = read_arc(&mut reader, &mut program)?;
        program.set_arc(&arc.id, arc.body, arc.le, arc.re);
    }
    reader.end()?;
    Ok(program)
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

/// `[id, from, to, fence, [[register, transfer]...], epsilon, final, le, re]`.
pub(crate) fn read_arc(reader: &mut Reader<'_>, program: &mut Program) -> Result<NewArc, Malformed> {
    reader.array(9)?;
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
    let le = if reader.nil() { i64::MIN } else { reader.int()? };
    let re = if reader.nil() { None } else { Some(reader.int()?) };
    Ok(NewArc {
        id,
        body: Body {
            source,
            target,
            fence,
            transfer,
            epsilon,
        },
        le,
        re,
        is_final,
    })
}
