//! `afa._native`: the one door between Python and the engine. Only `afa/native_engine.py` goes through it.

#![deny(unsafe_code)]

use pyo3::prelude::*;

// The C structures of the Arrow interface lie behind bare pointers.
#[allow(unsafe_code)]
mod arrow_capsule;
mod changes;
mod counted;
mod door;
mod guard;
mod pattern;
mod pyarrow;
mod raw_input;

/// A batch makes and frees many small pieces of memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The native part of `afa`; import `afa`, not this.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::changes::NativeChanges;
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
