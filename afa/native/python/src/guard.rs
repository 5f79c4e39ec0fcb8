//! A panic never crosses into Python: it becomes an error with a report, and the process goes on.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

static HOOK: Once = Once::new();

thread_local! {
    /// Whether this thread is inside the engine, and what its panic said.
    static REPORT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does something that must not panic. If it does all the same, the answer is what to report.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |info| {
            let inside = REPORT.with_borrow_mut(|report| report.as_mut().map(|text| *text = told(info)).is_some());
            if !inside {
                others(info);
            }
        }));
    });
    REPORT.with_borrow_mut(|report| *report = Some(String::new()));
    let done = catch_unwind(AssertUnwindSafe(work));
    let report = REPORT.with_borrow_mut(Option::take);
    done.map_err(|_| report.unwrap_or_default())
}

fn told(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let what = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let what = what.unwrap_or("no message");
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let trace = std::backtrace::Backtrace::capture();
    format!("{what} at {place}\n{trace}")
}

/// The error for an engine that has panicked before or now.
pub(crate) fn broken(report: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "the native engine failed, and its state can not be trusted any more: {report}"
    ))
}
