//! What an engine has counted, as Python sees it.

use afa_engine::engine::Engine;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// All counters by name.
pub(crate) fn counted<'py>(py: Python<'py>, engine: &Engine) -> PyResult<Bound<'py, PyDict>> {
    let counters = &engine.counters;
    let counted = PyDict::new(py);
    counted.set_item("events", counters.events)?;
    counted.set_item("late", counters.late)?;
    counted.set_item("conflicts", counters.conflicts)?;
    counted.set_item("idle_retractions", counters.idle_retractions)?;
    counted.set_item("unseen", counters.unseen)?;
    counted.set_item("peak_partial_matches", counters.peak_partial_matches)?;
    counted.set_item("degraded_keys", counters.degraded_keys)?;
    counted.set_item("refused_keys", counters.refused_keys)?;
    counted.set_item("refused_partial_matches", counters.refused_partial_matches)?;
    counted.set_item("dropped_events", counters.dropped_events)?;
    counted.set_item("dropped_for_bytes", counters.dropped_for_bytes)?;
    counted.set_item("refused_arcs", counters.refused_arcs)?;
    counted.set_item("skipped", counters.skipped)?;
    let (errors, evaluations) = engine.evaluations();
    counted.set_item("errors", errors)?;
    counted.set_item("condition_evaluations", evaluations)?;
    Ok(counted)
}
