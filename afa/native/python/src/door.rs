//! The class behind `afa.Engine`.

use std::sync::Arc;

use afa_engine::arrow::rows::ArrowRows;
use afa_engine::engine::Engine;
use afa_engine::input::Feeding;
use afa_engine::program::expression::Node;
use afa_engine::progress::domain::Origin;
use afa_engine::progress::gauges::PartitionGauges;
use afa_engine::progress::limits::Limits;
use afa_engine::progress::slack::{Promise, Trust};
use afa_engine::raw::msgpack::Malformed;
use afa_engine::raw::scan::Mapping;
use afa_engine::segment::{Fed, Net};
use afa_engine::state::dirty::Snapshot;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arrow_capsule::{KnownSchema, import_batch};
use crate::changes::{Memory, NativeChanges};
use crate::counted::counted;
use crate::guard::{broken, guarded};
use crate::pattern::{apply_arc, build_engine};
use crate::raw_input::{Beside, RawInput, numbered};

/// Patterns and the state of all keys. A batch is begun, fed in parts and finished; in between the caller checks what
/// only it can check.
#[pyclass(module = "afa._native")]
pub(crate) struct NativeEngine {
    engine: Engine,
    feeding: Feeding,
    raw: RawInput,
    batch: Option<Batch>,
    schema: Option<KnownSchema>,
    memory: Arc<Memory>,
    /// What a panic left behind.
    failure: Option<String>,
}

/// A record batch that is being fed.
struct Batch {
    rows: ArrowRows,
    /// Makes the ids of rows without one.
    first_number: u64,
    /// One for all rows, or one for each.
    origins: Vec<Origin>,
}

/// What feeding rows led to.
#[derive(IntoPyObject)]
#[allow(clippy::large_enum_variant)] // on its way to Python, never kept
enum Answer {
    /// The index of a row whose texts have to be checked first.
    Asks(u32),
    /// The batch has ended.
    Changes(NativeChanges),
}

#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` asks for
fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A key, its snapshot if there is one, and by topic the first offset that it does not hold.
type KeptKey = (PyBackedStr, Option<PyBackedBytes>, Vec<(PyBackedStr, i64)>);

/// A partition, its keys, those that are degraded, and partial matches by pattern.
type OfPartition = (u32, usize, usize, Vec<usize>);

/// Id, number of the body, lifetime.
type ArcLife = (String, u32, i64, Option<i64>);

impl NativeEngine {
    fn begin(&mut self, net_per_batch: bool, stops_at_bad: bool) {
        let net = if net_per_batch { Net::Batch } else { Net::Record };
        self.feeding.begin(net, stops_at_bad);
        self.engine.reuse(self.memory.take_rows());
    }

    fn changes(&mut self) -> NativeChanges {
        self.engine.finish(&mut self.feeding);
        self.raw.clear();
        let fed = std::mem::take(&mut self.feeding.fed);
        NativeChanges::new(self.engine.take_changes(), fed, self.memory.clone())
    }

    /// What was said without a batch.
    fn told_so_far(&mut self) -> NativeChanges {
        NativeChanges::new(self.engine.take_changes(), Fed::default(), self.memory.clone())
    }

    fn feed_batch(&mut self, from: usize) -> Answer {
        if let Some(batch) = self.batch.take() {
            let Batch {
                rows,
                first_number,
                origins,
            } = &batch;
            self.engine
                .feed_arrow(&mut self.feeding, rows, from, *first_number, origins);
            if let Some(asks) = self.feeding.fed.asks {
                self.batch = Some(batch);
                return Answer::Asks(asks);
            }
        }
        Answer::Changes(self.changes())
    }

    /// Works on the engine without the interpreter's lock; a panic is reported, now and ever after.
    fn work<T: Send>(&mut self, py: Python<'_>, work: impl FnOnce(&mut Self) -> T + Send) -> PyResult<T> {
        if let Some(report) = &self.failure {
            return Err(broken(report));
        }
        match py.detach(|| guarded(|| work(self))) {
            Ok(done) => Ok(done),
            Err(report) => {
                let error = broken(&report);
                self.failure = Some(report);
                Err(error)
            }
        }
    }
}

#[pymethods]
impl NativeEngine {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // a list of bytes has no borrowed form
    fn new(patterns: Vec<Vec<u8>>, mapping: &[u8], limits: Vec<(String, usize)>) -> PyResult<Self> {
        let mut set = Limits::default();
        for (name, value) in &limits {
            if !set.set(name, *value) {
                return Err(PyValueError::new_err(format!("there is no limit `{name}`")));
            }
        }
        let engine = guarded(|| build_engine(&patterns, mapping, set)).map_err(|report| broken(&report))?;
        Ok(Self {
            engine: engine.map_err(malformed)?,
            feeding: Feeding::new(Net::Record, false),
            raw: RawInput::default(),
            batch: None,
            schema: None,
            memory: Arc::default(),
            failure: None,
        })
    }

    /// The batches from now on have this stamp; an error if it is smaller than the one before.
    fn set_stamp(&mut self, stamp: u64) -> PyResult<()> {
        let fault = || PyValueError::new_err(format!("stamp: {stamp} after a greater one"));
        self.engine.set_stamp(stamp).then_some(()).ok_or_else(fault)
    }

    /// Begins a batch and feeds its raw records. The answer is the index of a record whose texts have to be checked
    /// first, or what the batch led to.
    fn feed_raw(
        &mut self,
        py: Python<'_>,
        values: &Bound<'_, PyList>,
        first_number: u64,
        beside: Option<Beside>,
        net_per_batch: bool,
        stops_at_bad: bool,
    ) -> PyResult<Answer> {
        self.raw.load(values, first_number, beside)?;
        self.begin(net_per_batch, stops_at_bad);
        self.feed_raw_from(py, 0)
    }

    /// Feeds the raw records of the batch from the one with this index on; answers like `feed_raw`.
    fn feed_raw_from(&mut self, py: Python<'_>, from: usize) -> PyResult<Answer> {
        self.work(py, |native| {
            let Self {
                raw, engine, feeding, ..
            } = native;
            raw.feed(engine, feeding, from);
            match feeding.fed.asks {
                Some(asks) => Answer::Asks(asks),
                None => Answer::Changes(native.changes()),
            }
        })
    }

    /// The JSON of the arc change in a row.
    fn arrow_arc(&self, row: usize) -> Option<String> {
        let batch = self.batch.as_ref()?;
        batch.rows.arc(row).map(ToOwned::to_owned)
    }

    /// The condition of the punctuation that has to be checked.
    fn condition(&self) -> Option<String> {
        let condition = self.feeding.fed.condition.as_ref();
        condition.map(|(.., text)| text.clone())
    }

    /// Begins a batch with the rows of a record batch, anything with `__arrow_c_array__`, and feeds them. The answer is
    /// their number, and that of `feed_arrow_from`.
    fn feed_arrow(
        &mut self,
        batch: &Bound<'_, PyAny>,
        first_number: u64,
        partitions: Option<Vec<(PyBackedStr, u32)>>,
        net_per_batch: bool,
    ) -> PyResult<(usize, Answer)> {
        let rows = import_batch(batch, &mut self.schema)?;
        let length = rows.len();
        let partitions = partitions.unwrap_or_default();
        if partitions.len() > 1 && partitions.len() != length {
            let entries = partitions.len();
            let what = format!("partitions: {entries} entries for {length} rows; give one for each, or one for all");
            return Err(PyValueError::new_err(what));
        }
        let answer = self.work(batch.py(), |native| {
            let mut origins = numbered(&mut native.engine, &partitions);
            if origins.is_empty() {
                origins.push(Origin::default());
            }
            native.begin(net_per_batch, false);
            native.batch = Some(Batch {
                rows,
                first_number,
                origins,
            });
            native.feed_batch(0)
        })?;
        Ok((length, answer))
    }

    /// Feeds the rows of the batch from one on. The answer is the index of a row whose texts have to be checked first, or
    /// what the batch led to.
    fn feed_arrow_from(&mut self, py: Python<'_>, from: usize) -> PyResult<Answer> {
        self.work(py, |native| native.feed_batch(from))
    }

    /// Ends the batch and tells what it led to.
    fn finish(&mut self, py: Python<'_>) -> PyResult<NativeChanges> {
        self.work(py, Self::changes)
    }

    /// Begins a batch of one record that the caller has read.
    #[pyo3(name = "begin")]
    fn begin_change(&mut self, py: Python<'_>, net_per_batch: bool, is_punctuation: bool) -> PyResult<()> {
        self.work(py, |native| {
            native.begin(net_per_batch, false);
            native.engine.before_other(&mut native.feeding, is_punctuation);
        })
    }

    /// No later event with a smaller `ts`, or none for which a condition holds: its compact form and its text.
    fn punctuate(
        &mut self,
        py: Python<'_>,
        ts: i64,
        partition: Option<(PyBackedStr, u32)>,
        when: Option<(PyBackedBytes, PyBackedStr)>,
    ) -> PyResult<()> {
        let read = |(packed, text): (PyBackedBytes, PyBackedStr)| Node::read(&packed, &[]).map(|node| (node, text));
        let when = when.map(read).transpose().map_err(malformed)?;
        self.work(py, |native| {
            let origin = partition.map_or(Origin::default(), |(topic, number)| {
                native.engine.origin(&topic, number)
            });
            match when {
                Some((condition, text)) => native.engine.punctuate_when(origin, ts, condition, &text),
                None => native.engine.punctuate(origin, ts, native.feeding.tells_each()),
            }
        })
    }

    /// No later arc record that changes anything before `ts`.
    fn punctuate_arcs(&mut self, py: Python<'_>, ts: i64) -> PyResult<()> {
        self.work(py, |native| {
            native.engine.punctuate_arcs(ts, native.feeding.tells_each());
        })
    }

    /// Takes the JSON of an arc change; false if the caller has to check its texts first.
    fn change_arc(&mut self, py: Python<'_>, record: &[u8]) -> PyResult<bool> {
        self.work(py, |native| native.engine.take_arc(record, 0, &mut native.feeding.fed))
    }

    /// Names a topic and the mapping that its records are read by; without one they are as if they had never come.
    fn name_topic(&mut self, py: Python<'_>, topic: &str, mapping: Option<&[u8]>) -> PyResult<()> {
        let mapping = mapping.map(Mapping::read).transpose().map_err(malformed)?;
        self.work(py, |native| native.engine.name_topic(topic, mapping))
    }

    /// Says what is promised of a topic.
    #[pyo3(signature = (topic, slack, max_ahead, has_no_punctuations))]
    fn promise(
        &mut self,
        py: Python<'_>,
        topic: &str,
        slack: Option<i64>,
        max_ahead: Option<i64>,
        has_no_punctuations: bool,
    ) -> PyResult<()> {
        let promise = Promise {
            slack,
            max_ahead,
            has_no_punctuations,
        };
        self.work(py, |native| native.engine.promise(topic, promise))
    }

    /// From now on changes of patterns among raw records are bad records.
    fn take_only_events(&mut self, py: Python<'_>) -> PyResult<()> {
        self.work(py, |native| native.engine.take_only_events())
    }

    /// From now on records with a time after `until`, or too far ahead of `now`, move no punctuation.
    fn trust_times(&mut self, py: Python<'_>, until: i64, now: Option<i64>) -> PyResult<()> {
        self.work(py, |native| native.engine.trust_times(Trust { until, now }))
    }

    /// How far topics have come: topic, partition, punctuation, greatest time.
    fn reached(&self) -> Vec<(&str, u32, Option<i64>, Option<i64>)> {
        self.engine.reached().collect()
    }

    /// Emitted punctuations: pattern, partition, time.
    fn emitted(&self) -> Vec<(&str, u32, i64)> {
        self.engine.emitted().collect()
    }

    /// Conditional punctuations that hold.
    fn conditions(&self) -> Vec<(&str, u32, i64, &str)> {
        self.engine.conditions().collect()
    }

    /// The condition that had to be checked, in the compact form.
    fn punctuate_when(&mut self, py: Python<'_>, condition: &[u8]) -> PyResult<()> {
        let condition = Node::read(condition, &[]).map_err(malformed)?;
        self.work(py, |native| {
            if let Some((origin, ts, text)) = native.feeding.fed.condition.take() {
                native.engine.punctuate_when(origin, ts, condition, &text);
            }
        })
    }

    /// Inserts or replaces an arc of the pattern with this index in order of names; `record` is the JSON that said so.
    /// The answer is the number of its body.
    fn set_arc(&mut self, py: Python<'_>, pattern: usize, arc: &[u8], record: &[u8]) -> PyResult<u32> {
        self.work(py, |native| apply_arc(&mut native.engine, pattern, arc, record))?
            .map_err(malformed)
    }

    /// Removes an arc.
    fn remove_arc(&mut self, py: Python<'_>, pattern: usize, id: &str) -> PyResult<()> {
        self.work(py, |native| native.engine.remove_arc(pattern, id))
    }

    /// The arcs of a pattern as they are now: id, number of the body, lifetime.
    fn arcs(&mut self, py: Python<'_>, pattern: usize) -> PyResult<Vec<ArcLife>> {
        self.work(py, |native| {
            let book = &native.engine.books[pattern];
            let told = |id: &str| {
                let life = native.engine.life_of(pattern, id)?;
                Some((id.to_owned(), life.body, life.le, life.re))
            };
            book.iter().filter_map(|(id, ..)| told(id)).collect()
        })
    }

    /// Notes that a record came too late.
    fn note_late(&mut self, index: u32, reason: String) {
        self.engine.counters.late += 1;
        self.feeding.fed.late.push((index, reason));
    }

    /// Notes that a record is bad.
    fn note_bad(&mut self, index: u32, reason: String) {
        self.feeding.fed.bad.push((index, reason));
    }

    /// Whether another arc would be one too many.
    fn too_many_arcs(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.work(py, |native| {
            let refuses = native.engine.too_many_arcs();
            native.engine.counters.refused_arcs += u64::from(refuses);
            refuses
        })
    }

    /// The bound below which an arc record is late.
    fn arc_bound(&self) -> Option<i64> {
        self.engine.arc_bound()
    }

    /// The names of the keys that have state.
    fn keys(&mut self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.work(py, |native| native.engine.key_names())
    }

    /// The snapshot of a key; none if nothing is known of it.
    fn snapshot<'py>(&mut self, py: Python<'py>, key: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let snapshot = self.work(py, |native| native.engine.snapshot(key))?;
        let bytes = snapshot.map_err(|fault| PyValueError::new_err(fault.to_string()))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Makes a key what its snapshot says.
    fn restore(&mut self, py: Python<'_>, key: &str, data: &[u8]) -> PyResult<()> {
        let restored = self.work(py, |native| native.engine.restore(key, data))?;
        restored.map_err(|fault| PyValueError::new_err(fault.to_string()))
    }

    /// Makes keys of a partition what their snapshots say; without a snapshot nothing is known of a key. The answer is
    /// what stands of them, if that is to be told.
    #[allow(clippy::needless_pass_by_value)] // a list has no borrowed form
    fn restore_keys(
        &mut self,
        py: Python<'_>,
        partition: u32,
        snapshots: Vec<KeptKey>,
        tells: bool,
    ) -> PyResult<NativeChanges> {
        let restored = self.work(py, |native| {
            snapshots.iter().try_for_each(|(key, bytes, held)| {
                let held = held.iter().map(|(topic, offset)| (&**topic, *offset));
                let restored = native.engine.restore_in(partition, key, bytes.as_deref(), held, tells);
                restored.map_err(|fault| format!("key {:?}: {fault}", &**key))
            })
        })?;
        restored.map_err(PyValueError::new_err)?;
        Ok(self.told_so_far())
    }

    /// Forgets what keys of a partition hold of records that are replayed.
    fn end_replay(&mut self, py: Python<'_>, partition: u32) -> PyResult<()> {
        self.work(py, |native| native.engine.end_replay(partition))
    }

    /// Forgets a partition.
    fn drop_partition(&mut self, py: Python<'_>, partition: u32) -> PyResult<()> {
        self.work(py, |native| native.engine.drop_partition(partition))
    }

    /// Keys of a partition that are dirty since before a stamp, with their snapshots: they are clean then.
    fn take_dirty<'py>(
        &mut self,
        py: Python<'py>,
        partition: u32,
        before: u64,
        most: usize,
    ) -> PyResult<Vec<(String, Option<Bound<'py, PyBytes>>)>> {
        let taken = self.work(py, |native| native.engine.take_dirty(partition, before, most))?;
        let taken = taken.map_err(|fault| PyValueError::new_err(fault.to_string()))?;
        let told = |(name, snapshot): Snapshot| (name.to_string(), snapshot.map(|bytes| PyBytes::new(py, &bytes)));
        Ok(taken.into_iter().map(told).collect())
    }

    /// The stamp since which the key of a partition is dirty that is so longest.
    fn oldest_dirty(&mut self, py: Python<'_>, partition: u32) -> PyResult<Option<u64>> {
        self.work(py, |native| native.engine.oldest_dirty(partition))
    }

    /// How many keys of a partition are dirty, at most.
    fn dirty_keys(&mut self, py: Python<'_>, partition: u32) -> PyResult<usize> {
        self.work(py, |native| native.engine.dirty_keys(partition))
    }

    /// The hash of all that is known of a key, in hex; none if nothing is.
    fn state_hash(&mut self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        let digest = self.work(py, |native| native.engine.state_hash(key))?;
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or_default();
        let hex = |byte: u8| [digit(byte >> 4), digit(byte & 15)];
        Ok(digest.map(|digest| digest.into_iter().flat_map(hex).collect()))
    }

    /// What there is now: keys, stored events, bytes; and by partition keys, degraded keys, partial matches by pattern.
    fn gauges(&mut self, py: Python<'_>) -> PyResult<(usize, usize, usize, Vec<OfPartition>)> {
        let gauges = self.work(py, |native| native.engine.gauges())?;
        let of_partition = |gauges: PartitionGauges| {
            let PartitionGauges {
                partition,
                keys,
                degraded_keys,
                partial_matches,
            } = gauges;
            (partition, keys, degraded_keys, partial_matches)
        };
        let partitions = gauges.partitions.into_iter().map(of_partition).collect();
        Ok((gauges.keys, gauges.events, gauges.bytes, partitions))
    }

    /// What has been counted so far.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counted(py, &self.engine)
    }
}
