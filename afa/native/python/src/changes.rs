//! What a batch led to, as Python sees it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use afa_engine::changes::table::{ChangeKind, ChangeRow, ChangeTable};
use afa_engine::program::value::Value;
use afa_engine::segment::Fed;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::arrow_capsule::{Sheets, to_pyarrow};

/// Changes that need nothing of the engine any more.
#[pyclass(module = "afa._native")]
pub(crate) struct NativeChanges {
    table: ChangeTable,
    fed: Fed,
    settled: bool,
    memory: Arc<Memory>,
}

/// What the changes of an engine use one after the other.
#[derive(Default)]
pub(crate) struct Memory {
    /// Where small batches are written.
    sheets: Mutex<Sheets>,
    /// The memory of changes that nobody needs any more.
    rows: Mutex<Vec<ChangeRow>>,
}

/// The memory of more changes is not kept.
const MOST_SPARE_ROWS: usize = 1 << 16;

impl Memory {
    /// Memory for changes, if there is any.
    pub(crate) fn take_rows(&self) -> Vec<ChangeRow> {
        self.rows
            .lock()
            .map(|mut rows| std::mem::take(&mut *rows))
            .unwrap_or_default()
    }
}

impl Drop for NativeChanges {
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.table.rows);
        if rows.capacity() <= MOST_SPARE_ROWS
            && let Ok(mut spare) = self.memory.rows.lock()
            && spare.capacity() < rows.capacity()
        {
            *spare = rows;
        }
    }
}

/// For each variable its events' times and ids.
type Bindings = Vec<(String, Vec<(i64, String)>)>;

/// `(kind, record, pattern, key, (start, end, until), state, registers, (first, last), degraded, match id, bindings)`.
type Row<'py> = (
    &'static str,
    u32,
    String,
    Option<String>,
    (i64, i64, Option<i64>),
    String,
    Vec<Bound<'py, PyAny>>,
    (String, String),
    bool,
    String,
    Option<Bindings>,
);

impl NativeChanges {
    pub(crate) fn new(table: ChangeTable, fed: Fed, memory: Arc<Memory>) -> Self {
        Self {
            table,
            fed,
            settled: false,
            memory,
        }
    }

    /// Ids decide between changes of one record that agree in key, start and end; only now they are made.
    fn settle(&mut self) {
        if !self.settled {
            self.table.settle_ties();
            self.settled = true;
        }
    }
}

#[pymethods]
impl NativeChanges {
    fn __len__(&self) -> usize {
        self.table.rows.len()
    }

    /// Bad records: index and reason.
    fn bad(&self) -> Vec<(u32, String)> {
        self.fed.bad.clone()
    }

    /// Late records: index and reason.
    fn late(&self) -> Vec<(u32, String)> {
        self.fed.late.clone()
    }

    /// The changes as tuples, in order.
    fn rows<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.settle();
        self.table.rows.iter().map(|row| self.row(py, row)).collect()
    }

    /// The changes as JSON, with key and match id: `(kind, record, pattern, key or partition, match id, value)`.
    fn encoded<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.settle();
        let encode = |row: &ChangeRow| {
            let value = PyBytes::new(py, &self.table.json(row));
            let pattern = &*self.table.patterns[row.pattern as usize].name;
            if row.kind == ChangeKind::Punctuation {
                return (
                    row.kind.name(),
                    row.record,
                    pattern,
                    py.None(),
                    row.key,
                    py.None(),
                    value,
                )
                    .into_pyobject(py);
            }
            let key = self.table.keys[row.key as usize].into_pyobject(py)?.unbind().into_any();
            let id = if row.kind == ChangeKind::Timeout {
                py.None()
            } else {
                hex(self.table.match_id(row)).into_pyobject(py)?.unbind().into_any()
            };
            (row.kind.name(), row.record, pattern, key, 0_u32, id, value).into_pyobject(py)
        };
        self.table.rows.iter().map(encode).collect()
    }

    /// The partition of each change, in order.
    fn partitions(&self) -> Vec<u32> {
        self.table.rows.iter().map(|row| row.partition).collect()
    }

    /// The changes as a `pyarrow.RecordBatch`.
    fn arrow<'py>(&mut self, py: Python<'py>, ids: bool) -> PyResult<Bound<'py, PyAny>> {
        if ids {
            self.settle();
        }
        let columns = py.detach(|| self.table.to_columns(ids));
        to_pyarrow(py, columns.map_err(PyValueError::new_err)?, ids, &self.memory.sheets)
    }
}

impl NativeChanges {
    fn bindings(&self, row: &ChangeRow) -> Option<Bindings> {
        let bindings = self.table.bindings(row)?;
        let named = bindings.into_iter().map(|(name, events)| (name.to_string(), events));
        Some(named.collect())
    }

    fn row<'py>(&self, py: Python<'py>, row: &ChangeRow) -> PyResult<Bound<'py, PyTuple>> {
        let pattern = self.table.patterns[row.pattern as usize].name.to_string();
        if row.kind == ChangeKind::Punctuation {
            return (row.kind.name(), row.record, pattern, row.end, row.key).into_pyobject(py);
        }
        if let Some(graph) = self.table.graph(row) {
            let key = self.table.keys[row.key as usize].to_string();
            let end = (row.end, self.table.id_text(row.last));
            return ("graph", row.record, pattern, key, end, row.degraded, graph.text()).into_pyobject(py);
        }
        let bindings = self.bindings(row);
        if row.kind == ChangeKind::Timeout {
            let key = self.table.keys[row.key as usize].to_string();
            let reached = self.table.reached(row).map(ToString::to_string);
            let span = (row.start, row.until);
            return (row.kind.name(), row.record, pattern, key, span, reached, bindings).into_pyobject(py);
        }
        let outcome = self.table.outcome(row);
        let registers = outcome
            .registers
            .iter()
            .map(|value| plain(py, value))
            .collect::<PyResult<Vec<_>>>()?;
        let told: Row<'py> = (
            row.kind.name(),
            row.record,
            pattern,
            Some(self.table.keys[row.key as usize].to_string()),
            (row.start, row.end, row.has_until.then_some(row.until)),
            outcome.state.to_string(),
            registers,
            (
                self.table.id_text(row.first).into_owned(),
                self.table.id_text(row.last).into_owned(),
            ),
            row.degraded,
            hex(self.table.match_id(row)),
            bindings,
        );
        told.into_pyobject(py)
    }
}

fn hex(id: [u8; 16]) -> String {
    let mut text = String::with_capacity(32);
    for byte in id {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
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
