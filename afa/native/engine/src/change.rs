//! What the engine says: matches that came or went, and their ids.

use std::sync::Arc;

use blake2::Blake2bVar;
use blake2::digest::{Update, VariableOutput};

use crate::event::{Data, Id};
use crate::value::Value;

/// A match came to be, or was wrong after all.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whether it is taken back.
    pub retracts: bool,
    /// The pattern, by its index in order of names.
    pub pattern: usize,
    /// The pattern's name.
    pub name: Arc<str>,
    /// The key.
    pub key: Arc<str>,
    /// Time of the start event.
    pub start: i64,
    /// Time of the end event.
    pub end: i64,
    /// End of its life, if the window is one of time.
    pub until: Option<i64>,
    /// Id of the start event.
    pub first: Id,
    /// Id of the end event.
    pub last: Id,
    /// The final state.
    pub state: Arc<str>,
    /// The register values, in order of names.
    pub registers: Arc<[Value]>,
}

impl Change {
    /// The match id: BLAKE2b-128 over `[pattern, key, start.ts, start.id, end.ts, end.id, [state, [registers]]]`.
    ///
    /// # Panics
    /// Never: 16 bytes are a legal length.
    #[must_use]
    pub fn id(&self) -> [u8; 16] {
        let registers = self.registers.iter().map(|value| match value {
            Value::Int(number) => Data::Int(*number),
            Value::Float(number) => Data::Float(*number),
            Value::Bool(truth) => Data::Bool(*truth),
            Value::Str(text) => Data::Str(text.clone()),
            Value::Unknown | Value::List(_) => Data::Null,
        });
        let content = Data::List(vec![
            Data::Str(self.name.clone()),
            Data::Str(self.key.clone()),
            Data::Int(self.start),
            Data::Str(self.first.text()),
            Data::Int(self.end),
            Data::Str(self.last.text()),
            Data::List(vec![Data::Str(self.state.clone()), Data::List(registers.collect())]),
        ]);
        let mut bytes = Vec::with_capacity(96);
        content.write_canonical(&mut bytes);
        let mut hasher = Blake2bVar::new(16).expect("a legal length");
        hasher.update(&bytes);
        let mut id = [0; 16];
        hasher.finalize_variable(&mut id).expect("the same length");
        id
    }

    /// Sorts the changes of one record: by key, start, end, and id where these are equal.
    pub fn sort(changes: &mut [Self]) {
        changes.sort_by(|a, b| {
            let plain = (&a.key, a.start, a.end).cmp(&(&b.key, b.start, b.end));
            plain.then_with(|| a.id().cmp(&b.id()))
        });
    }
}
