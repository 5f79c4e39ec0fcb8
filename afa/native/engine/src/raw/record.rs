//! Records in the tape's shape, read the plain way: what the scanner is compared with.

use std::sync::Arc;

use crate::program::expression::FieldPath;
use crate::program::value::Value;
use crate::rows::event::{Data, Id};

/// An insert, a revision or a retraction.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) key: Arc<str>,
    pub(crate) ts: i64,
    pub(crate) id: Id,
    pub(crate) retracts: bool,
    pub(crate) seq: Option<i64>,
    pub(crate) rev: i64,
    pub(crate) kind: Option<Arc<str>>,
    pub(crate) data: Data,
}

impl Event {
    /// The field at a path, as it is declared.
    pub(crate) fn field(&self, path: &FieldPath) -> Value {
        let found = path.steps.iter().try_fold(&self.data, |data, step| data.get(step));
        path.conform(found.map_or(Value::Unknown, Data::value))
    }
}

/// One record.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An insert, revision or retraction.
    Event(Event),
    /// A punctuation, perhaps with a condition.
    Punctuation(i64, Option<Arc<str>>),
    /// An arc punctuation.
    ArcPunctuation(i64),
    /// An arc change or retraction: its checking is not this crate's business.
    Arc,
}

impl Record {
    /// Reads a record; `number` is its position, for events without an id.
    ///
    /// # Errors
    /// Says for people why the record is bad.
    pub(crate) fn read(data: Data, number: u64) -> Result<Self, String> {
        let Data::Map(members) = data else {
            return Err("a record must be a mapping".into());
        };
        let mut fields = Fields(members);
        let operation = fields.text("op")?.unwrap_or_else(|| "insert".into());
        match &*operation {
            "insert" | "retract" => fields.event(&*operation == "retract", number).map(Self::Event),
            "punctuation" => Ok(Self::Punctuation(fields.ts()?, fields.text("when")?)),
            "arc-punctuation" => fields.ts().map(Self::ArcPunctuation),
            "arc" | "arc-retract" => Ok(Self::Arc),
            other => Err(format!("unknown op `{other}`")),
        }
    }
}

struct Fields(Vec<(Arc<str>, Data)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Data> {
        let at = self.0.iter().position(|(known, _)| &**known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    fn text(&mut self, name: &str) -> Result<Option<Arc<str>>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Data::Str(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{name}` must be a text")),
        }
    }

    fn int(&mut self, name: &str) -> Result<Option<i64>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Data::Int(number)) => Ok(Some(number)),
            Some(Data::OutOfRange) => Err(format!("`{name}` is outside 64 bits")),
            Some(_) => Err(format!("`{name}` must be an integer")),
        }
    }

    fn ts(&mut self) -> Result<i64, String> {
        self.int("ts")?.ok_or_else(|| "a record needs `ts`".into())
    }

    fn event(&mut self, retracts: bool, number: u64) -> Result<Event, String> {
        let id = self.text("id")?;
        if retracts && id.is_none() {
            return Err("a retraction needs the `id` of the event it takes back".into());
        }
        Ok(Event {
            key: self.text("key")?.ok_or("a record needs `key`")?,
            ts: self.ts()?,
            id: id.map_or(Id::Number(number), |text| Id::of(&text)),
            retracts,
            seq: self.int("seq")?,
            rev: self.int("rev")?.unwrap_or(0),
            kind: self.text("type")?,
            data: match self.take("data") {
                None => Data::Map(Vec::new()),
                Some(data @ Data::Map(_)) => data,
                Some(_) => return Err("`data` must be a mapping".into()),
            },
        })
    }
}
