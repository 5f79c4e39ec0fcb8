//! How matches ended: final states and registers, which tables of changes share.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;

use crate::changes::arrow::{TextBuffer, Texts};
use crate::changes::json_text::{write_text, write_value};
use crate::changes::table::{PatternFace, packed};
use crate::program::value::Value;

/// How a match of a pattern ended. Equal outcomes may stand in a table more than once.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The pattern: it has the names of the registers.
    pub pattern: u32,
    /// The final state.
    pub state: Arc<str>,
    /// The values of the registers, in order of names.
    pub registers: Arc<[Value]>,
}

impl Outcome {
    /// Appends `[state, [registers]]` as match ids have it.
    pub(crate) fn pack(&self, buffer: &mut Vec<u8>) {
        packed(rmp::encode::write_array_len(buffer, 2));
        packed(rmp::encode::write_str(buffer, &self.state));
        packed(rmp::encode::write_array_len(
            buffer,
            u32::try_from(self.registers.len()).unwrap_or(0),
        ));
        for value in &*self.registers {
            match value {
                Value::Int(number) => packed(rmp::encode::write_sint(buffer, *number)),
                // Minus zero is zero.
                Value::Float(number) => packed(rmp::encode::write_f64(buffer, number + 0.0)),
                Value::Bool(truth) => packed(rmp::encode::write_bool(buffer, *truth)),
                Value::Str(text) => packed(rmp::encode::write_str(buffer, text)),
                Value::Unknown | Value::List(_) => packed(rmp::encode::write_nil(buffer)),
            }
        }
    }

    /// The registers as a JSON object.
    pub(crate) fn write_registers(&self, patterns: &[PatternFace], out: &mut Vec<u8>) {
        let names = &patterns[self.pattern as usize].registers;
        write_values(names.iter(), &self.registers, out);
    }
}

/// Appends named values as a JSON object.
pub(crate) fn write_values<'a>(names: impl Iterator<Item = &'a Arc<str>>, values: &[Value], out: &mut Vec<u8>) {
    out.push(b'{');
    for (place, (name, value)) in names.zip(values).enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_text(out, name);
        out.push(b':');
        write_value(out, value);
    }
    out.push(b'}');
}

/// Outcomes by number. Most tables have those of the one before, and their texts, so clones share all of it until one
/// gets another outcome.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    shared: Arc<Shared>,
}

#[derive(Clone, Debug, Default)]
struct Shared {
    list: Vec<Outcome>,
    texts: OnceLock<OutcomeTexts>,
}

/// The distinct texts of outcomes, and their number for each outcome.
#[derive(Clone, Debug)]
pub(crate) struct OutcomeTexts {
    states: TextBuffer,
    registers: TextBuffer,
    pub(crate) state_of: Vec<i32>,
    pub(crate) registers_of: Vec<i32>,
}

impl Outcomes {
    /// Adds an outcome.
    pub fn push(&mut self, outcome: Outcome) {
        let shared = Arc::make_mut(&mut self.shared);
        shared.list.push(outcome);
        shared.texts = OnceLock::new();
    }

    /// Their texts; the patterns have the names of registers.
    pub(crate) fn texts(&self, patterns: &[PatternFace]) -> &OutcomeTexts {
        self.shared
            .texts
            .get_or_init(|| OutcomeTexts::of(&self.shared.list, patterns))
    }
}

impl Deref for Outcomes {
    type Target = [Outcome];

    fn deref(&self) -> &[Outcome] {
        &self.shared.list
    }
}

impl Extend<Outcome> for Outcomes {
    fn extend<T: IntoIterator<Item = Outcome>>(&mut self, outcomes: T) {
        outcomes.into_iter().for_each(|outcome| self.push(outcome));
    }
}

impl OutcomeTexts {
    fn of(outcomes: &[Outcome], patterns: &[PatternFace]) -> Self {
        let (states, state_of) = numbered(outcomes.iter().map(|outcome| outcome.state.as_bytes()));
        let mut all = TextBuffer::for_texts(outcomes.len(), 32);
        for outcome in outcomes {
            all.push_with(|bytes| outcome.write_registers(patterns, bytes));
        }
        let (registers, registers_of) = numbered(all.texts().iter());
        Self {
            states,
            registers,
            state_of,
            registers_of,
        }
    }

    pub(crate) fn states(&self) -> Texts<'_> {
        self.states.texts()
    }

    pub(crate) fn registers(&self) -> Texts<'_> {
        self.registers.texts()
    }
}

/// The distinct texts in order of appearance, and the number of each.
fn numbered<'a>(texts: impl Iterator<Item = &'a [u8]>) -> (TextBuffer, Vec<i32>) {
    let mut distinct = TextBuffer::for_texts(1, 32);
    let mut known: HashMap<&[u8], i32, FixedState> = HashMap::default();
    let mut numbers: Vec<i32> = Vec::new();
    let mut last: Option<&[u8]> = None;
    for text in texts {
        // Most tables have one state.
        let number = match (last, numbers.last()) {
            (Some(last), Some(number)) if last == text => *number,
            _ => *known.entry(text).or_insert_with(|| distinct.push_numbered(text)),
        };
        last = Some(text);
        numbers.push(number);
    }
    (distinct, numbers)
}
