//! What is called of pyarrow, looked up once.

use afa_engine::changes::arrow::{COLUMNS, Kind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static PYARROW: PyOnceLock<Pyarrow> = PyOnceLock::new();

/// pyarrow, and the schemas of changes, which are always the same.
pub(crate) struct Pyarrow {
    batch_type: Py<PyAny>,
    /// `RecordBatch._import_from_c`, which takes the address of a C structure.
    pub(crate) import: Py<PyAny>,
    schema: Py<PyAny>,
    schema_with_ids: Py<PyAny>,
}

impl Pyarrow {
    /// Imports it the first time.
    ///
    /// # Errors
    /// If it is not installed.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        PYARROW.get_or_try_init(py, || Self::look_up(py))
    }

    /// Whether an object is a record batch of pyarrow. If nobody has imported pyarrow, it is none.
    pub(crate) fn made(object: &Bound<'_, PyAny>) -> bool {
        let py = object.py();
        let known = PYARROW.get(py).or_else(|| {
            let modules = py.import("sys").and_then(|sys| sys.getattr("modules")).ok()?;
            let loaded = modules.contains("pyarrow").is_ok_and(|loaded| loaded);
            loaded.then(|| Self::get(py).ok()).flatten()
        });
        known.is_some_and(|known| object.get_type().is(&known.batch_type))
    }

    /// The schema of changes.
    pub(crate) fn schema(&self, with_ids: bool) -> &Py<PyAny> {
        if with_ids { &self.schema_with_ids } else { &self.schema }
    }

    fn look_up(py: Python<'_>) -> PyResult<Self> {
        let module = py.import("pyarrow")?;
        let text = module.call_method0("string")?;
        let dictionary = module.call_method1("dictionary", (module.call_method0("int32")?, &text))?;
        let time = module.call_method0("int64")?;
        let fields = PyDict::new(py);
        let mut schemas = Vec::new();
        for (name, kind) in COLUMNS {
            let of_kind = match kind {
                Kind::Time => &time,
                Kind::Text => &text,
                Kind::Dictionary => &dictionary,
            };
            if name == "match" {
                schemas.push(module.call_method1("schema", (&fields,))?);
            }
            fields.set_item(name, of_kind)?;
        }
        let batch_type = module.getattr("RecordBatch")?;
        Ok(Self {
            import: batch_type.getattr("_import_from_c")?.unbind(),
            batch_type: batch_type.unbind(),
            schema: schemas.remove(0).unbind(),
            schema_with_ids: module.call_method1("schema", (&fields,))?.unbind(),
        })
    }
}
