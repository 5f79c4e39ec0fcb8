//! The class behind `afa.Engine`.

use std::fmt::Write as _;

use afa_engine::change::Change;
use afa_engine::engine::{Engine, Outcome};
use afa_engine::expression::Node;
use afa_engine::json;
use afa_engine::msgpack::{Malformed, Reader};
use afa_engine::record::Record;
use afa_engine::value::Value;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::pattern::{read_arc, read_pattern};

/// Patterns and the state of all keys. Every answer is `(changes, punctuation, late, bad)`.
#[pyclass(module = "afa._native")]
pub(crate) struct NativeEngine {
    engine: Engine,
}

#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` asks for
fn malformed(error: Malformed) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl NativeEngine {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // a list of bytes has no borrowed form
    fn new(patterns: Vec<Vec<u8>>) -> PyResult<Self> {
        let programs = patterns
            .iter()
            .map(|bytes| read_pattern(bytes))
            .collect::<Result<Vec<_>, _>>();
        Ok(Self {
            engine: Engine::new(programs.map_err(malformed)?),
        })
    }

    /// Feeds one record (JSON); `number` makes the id of an event without one. None: the record names an arc or a
    /// condition, whose text only the caller can check.
    fn feed<'py>(&mut self, py: Python<'py>, value: &[u8], number: u64) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let record = match json::read(value) {
            Ok(data) => Record::read(data, number),
            Err(error) => Err(format!("not JSON: {} (byte {})", error.what, error.at + 1)),
        };
        let outcome = match record {
            Ok(Record::Event(event)) => py.detach(|| self.engine.feed(event)),
            Ok(Record::Punctuation(ts, None)) => py.detach(|| self.engine.punctuate(ts)),
            Ok(Record::ArcPunctuation(ts)) => py.detach(|| self.engine.punctuate_arcs(ts)),
            Ok(Record::Punctuation(_, Some(_)) | Record::Arc) => return Ok(None),
            Err(bad) => return Ok(Some((PyList::empty(py), py.None(), py.None(), bad).into_pyobject(py)?)),
        };
        answer(py, &outcome).map(Some)
    }

    /// A punctuation with a condition, in the compact form.
    fn punctuate_when<'py>(
        &mut self,
        py: Python<'py>,
        ts: i64,
        condition: &[u8],
        text: &str,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let condition = Node::read(condition, &[]).map_err(malformed)?;
        answer(py, &self.engine.punctuate_when(ts, condition, text))
    }

    /// Inserts or replaces an arc of the pattern with this index in order of names.
    fn set_arc<'py>(&mut self, py: Python<'py>, pattern: usize, arc: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let arc = read_arc(&mut Reader::new(arc), &mut self.engine.programs[pattern]).map_err(malformed)?;
        answer(py, &py.detach(|| self.engine.set_arc(pattern, arc)))
    }

    /// Removes an arc.
    fn remove_arc<'py>(&mut self, py: Python<'py>, pattern: usize, id: &str) -> PyResult<Bound<'py, PyTuple>> {
        answer(py, &py.detach(|| self.engine.remove_arc(pattern, id)))
    }

    /// The bound below which an arc record is late.
    fn arc_bound(&self) -> Option<i64> {
        self.engine.arc_bound()
    }

    /// The names of the keys that have state.
    fn keys(&self) -> Vec<String> {
        self.engine.key_names().iter().map(ToString::to_string).collect()
    }

    /// What has been counted so far.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = &self.engine.counters;
        let counted = PyDict::new(py);
        counted.set_item("events", counters.events)?;
        counted.set_item("late", counters.late)?;
        counted.set_item("conflicts", counters.conflicts)?;
        counted.set_item("idle_retractions", counters.idle_retractions)?;
        counted.set_item("unseen", counters.unseen)?;
        counted.set_item("peak_partial_matches", counters.peak_partial_matches)?;
        counted.set_item(
            "errors",
            self.engine.programs.iter().map(|program| program.errors).sum::<u64>(),
        )?;
        let evaluations = self
            .engine
            .programs
            .iter()
            .map(|program| program.evaluations)
            .sum::<u64>();
        counted.set_item("condition_evaluations", evaluations)?;
        Ok(counted)
    }
}

fn answer<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyTuple>> {
    let changes = outcome
        .changes
        .iter()
        .map(|change| told(py, change))
        .collect::<PyResult<Vec<_>>>()?;
    (changes, outcome.punctuation, outcome.late.as_deref(), py.None()).into_pyobject(py)
}

/// `(retracts, id, pattern, key, (start, end, until), state, register values, (first, last))`.
fn told<'py>(py: Python<'py>, change: &Change) -> PyResult<Bound<'py, PyTuple>> {
    let mut id = String::with_capacity(32);
    for byte in change.id() {
        write!(id, "{byte:02x}").map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    let registers = change
        .registers
        .iter()
        .map(|value| plain(py, value))
        .collect::<PyResult<Vec<_>>>()?;
    let span = (change.start, change.end, change.until);
    let events = (&*change.first.text(), &*change.last.text());
    (
        change.retracts,
        id,
        &*change.name,
        &*change.key,
        span,
        &*change.state,
        registers,
        events,
    )
        .into_pyobject(py)
}

fn plain<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Str(text) => (&**text).into_pyobject(py)?.into_any(),
        Value::Unknown | Value::List(_) => py.None().into_bound(py),
    })
}
