//! Limits: what the engine refuses to outgrow. At a limit it refuses new runs, marks the key degraded, and goes on.

/// The limits of an engine; the names are those of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Partial matches of a key, of all patterns together. Above the limit the newest go.
    pub max_partial_matches_per_key: usize,
    /// Bytes of stored events and lists, about. Above the limit the oldest events are let go.
    pub max_bytes_per_key: usize,
    /// Stored events. Above the limit the oldest are let go, as if a punctuation had passed them.
    pub max_events_per_key: usize,
    /// Keys. At the limit records of new keys are refused.
    pub max_keys: usize,
    /// Live arcs of all patterns. At the limit new arcs are refused.
    pub max_program_arcs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_partial_matches_per_key: 100_000,
            max_bytes_per_key: 64 << 20,
            max_events_per_key: 1_000_000,
            max_keys: 10_000_000,
            max_program_arcs: 100_000,
        }
    }
}

impl Limits {
    /// Sets a limit by its name; false if there is none of that name.
    pub fn set(&mut self, name: &str, value: usize) -> bool {
        let limit = match name {
            "max_partial_matches_per_key" => &mut self.max_partial_matches_per_key,
            "max_bytes_per_key" => &mut self.max_bytes_per_key,
            "max_events_per_key" => &mut self.max_events_per_key,
            "max_keys" => &mut self.max_keys,
            "max_program_arcs" => &mut self.max_program_arcs,
            _ => return false,
        };
        *limit = value;
        true
    }
}
