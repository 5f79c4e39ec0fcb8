//! Raw records on their way in: copied together while the interpreter's lock is held, read when it is not.

use afa_engine::engine::Engine;
use afa_engine::input::{Feeding, RawBatch};
use afa_engine::progress::domain::Origin;
use afa_engine::raw::scan::{Envelope, Padded, Records};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyList};

/// Room that is kept for the next batch.
const KEPT_BYTES: usize = 16 << 20;

/// Kafka knows headers without a value: those count as missing.
type Headers = Vec<(PyBackedStr, Option<PyBackedBytes>)>;

/// What comes beside the values.
#[derive(FromPyObject)]
pub(crate) struct Beside {
    keys: Option<Keys>,
    timestamps: Option<Vec<Option<i64>>>,
    headers: Option<Vec<Option<Headers>>>,
    /// One for each record, or one for all.
    partitions: Option<Vec<(PyBackedStr, u32)>>,
    offsets: Option<Vec<i64>>,
    numbers: Option<Vec<u64>>,
    replays: bool,
}

/// Keys of records, one after the other: to hold and release each of them would cost more than to copy it.
#[derive(Default)]
struct Keys {
    bytes: Vec<u8>,
    /// Of each key where it begins and ends; none: there is no key.
    places: Vec<Option<(u32, u32)>>,
}

impl Keys {
    fn get(&self, index: usize) -> Option<&[u8]> {
        let (begin, end) = self.places[index]?;
        Some(&self.bytes[begin as usize..end as usize])
    }

    fn push_any(&mut self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(bytes) = key.cast::<PyBytes>() {
            self.push(bytes.as_bytes())
        } else if key.is_none() {
            self.places.push(None);
            Ok(())
        } else {
            self.push(&key.extract::<PyBackedBytes>()?)
        }
    }

    fn push(&mut self, key: &[u8]) -> PyResult<()> {
        let end_of = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| PyValueError::new_err("keys of 4 GB"));
        let begin = end_of(&self.bytes)?;
        self.bytes.extend_from_slice(key);
        self.places.push(Some((begin, end_of(&self.bytes)?)));
        Ok(())
    }
}

impl FromPyObject<'_, '_> for Keys {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let mut keys = Self::default();
        if let Ok(list) = given.cast::<PyList>() {
            list.iter().try_for_each(|key| keys.push_any(&key))?;
        } else {
            given.try_iter()?.try_for_each(|key| keys.push_any(&key?))?;
        }
        Ok(keys)
    }
}

/// The raw records of the batch that is being fed.
#[derive(Default)]
pub(crate) struct RawInput {
    records: Records,
    beside: Option<Beside>,
    /// The number of the first record.
    first_number: u64,
}

impl RawInput {
    /// Copies the values: that costs less than to hold and release every one of them.
    pub(crate) fn load(
        &mut self,
        values: &Bound<'_, PyList>,
        first_number: u64,
        beside: Option<Beside>,
    ) -> PyResult<()> {
        self.clear();
        for value in values {
            if let Ok(bytes) = value.cast::<PyBytes>() {
                self.records.push(bytes.as_bytes());
            } else if value.is_none() {
                self.records.push_tombstone();
            } else {
                self.records.push(&value.extract::<PyBackedBytes>()?);
            }
        }
        (self.first_number, self.beside) = (first_number, beside);
        Ok(())
    }

    /// Forgets the records.
    pub(crate) fn clear(&mut self) {
        self.records.clear(KEPT_BYTES);
        self.beside = None;
    }

    /// Feeds the records from this one on.
    pub(crate) fn feed(&self, engine: &mut Engine, feeding: &mut Feeding, from: usize) {
        let alone = Alone {
            records: &self.records,
            first_number: self.first_number,
        };
        let Some(beside) = &self.beside else {
            return engine.feed_raw(feeding, from, &alone);
        };
        let origins = origins(engine, beside);
        let headers = borrowed_headers(beside);
        let accompanied = Accompanied {
            alone,
            beside,
            origins,
            headers,
        };
        engine.feed_raw(feeding, from, &accompanied);
    }
}

/// Values with nothing beside them: nothing to look up per record.
struct Alone<'a> {
    records: &'a Records,
    first_number: u64,
}

impl RawBatch for Alone<'_> {
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
        Some(self.records)
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

/// Values with something beside them.
struct Accompanied<'a> {
    alone: Alone<'a>,
    beside: &'a Beside,
    origins: Option<Vec<Origin>>,
    headers: Vec<Vec<(&'a str, &'a [u8])>>,
}

impl RawBatch for Accompanied<'_> {
    fn len(&self) -> usize {
        self.alone.len()
    }

    fn value(&self, index: usize) -> Option<Padded<'_>> {
        self.alone.value(index)
    }

    fn bytes_from(&self, index: usize) -> usize {
        self.alone.bytes_from(index)
    }

    fn alone(&self) -> Option<&Records> {
        None
    }

    fn has_positions(&self) -> bool {
        self.beside.partitions.is_some() && self.beside.offsets.is_some()
    }

    fn envelope(&self, index: usize) -> Envelope<'_> {
        envelope(self.beside, &self.headers, index)
    }

    fn origin(&self, index: usize) -> Origin {
        let origins = self.origins.as_ref();
        origins.map_or(Origin::default(), |origins| origins[index.min(origins.len() - 1)])
    }

    fn replayed(&self, index: usize) -> Option<i64> {
        let offsets = self.beside.offsets.as_ref().filter(|_| self.beside.replays);
        offsets.map(|offsets| offsets[index])
    }

    fn number(&self, index: usize) -> u64 {
        let numbers = self.beside.numbers.as_ref();
        numbers.map_or_else(|| self.alone.number(index), |numbers| numbers[index])
    }
}

fn origins(engine: &mut Engine, beside: &Beside) -> Option<Vec<Origin>> {
    Some(numbered(engine, beside.partitions.as_ref()?))
}

/// The numbers of topics and partitions.
pub(crate) fn numbered(engine: &mut Engine, partitions: &[(PyBackedStr, u32)]) -> Vec<Origin> {
    let mut last: Option<(&PyBackedStr, u32, Origin)> = None;
    let mut origins = Vec::with_capacity(partitions.len());
    for (topic, partition) in partitions {
        let known = last.filter(|(known, number, _)| **known == **topic && number == partition);
        let origin = known.map_or_else(|| engine.origin(topic, *partition), |(.., origin)| origin);
        last = Some((topic, *partition, origin));
        origins.push(origin);
    }
    origins
}

fn borrowed_headers(beside: &Beside) -> Vec<Vec<(&str, &[u8])>> {
    let Some(headers) = &beside.headers else {
        return Vec::new();
    };
    let mut borrowed = Vec::with_capacity(headers.len());
    for header in headers {
        let pairs = header.iter().flatten();
        let present = pairs.filter_map(|(name, value)| Some((&**name, &**value.as_ref()?)));
        borrowed.push(present.collect());
    }
    borrowed
}

fn envelope<'a>(beside: &'a Beside, headers: &'a [Vec<(&'a str, &'a [u8])>], index: usize) -> Envelope<'a> {
    let position = match (&beside.partitions, &beside.offsets) {
        (Some(partitions), Some(offsets)) => {
            let (topic, partition) = &partitions[index.min(partitions.len() - 1)];
            Some((&**topic, *partition, offsets[index]))
        }
        _ => None,
    };
    Envelope {
        key: beside.keys.as_ref().and_then(|keys| keys.get(index)),
        timestamp_ms: beside.timestamps.as_ref().and_then(|times| times[index]),
        headers: headers.get(index).map_or(&[], Vec::as_slice),
        position,
    }
}
