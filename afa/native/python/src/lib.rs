//! `afa._native`: the one door between Python and the engine. Only `afa/engine.py` goes through it.

use pyo3::prelude::*;

mod door;
mod pattern;

/// The native part of `afa`; import `afa`, not this.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::door::NativeEngine;
    use super::pyfunction;

    /// The version of the native engine.
    #[pyfunction]
    fn version() -> &'static str {
        afa_engine::version()
    }

    /// How the native engine was built: `release` or `debug`.
    #[pyfunction]
    fn build_profile() -> &'static str {
        afa_engine::build_profile()
    }
}
