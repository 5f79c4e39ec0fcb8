//! What is counted while an engine runs.

/// What has been counted since the engine began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Event records.
    pub events: u64,
    /// Records that came too late.
    pub late: u64,
    /// Different inserts of one identity at equal `rev`.
    pub conflicts: u64,
    /// Retractions with a lower `rev` than their event.
    pub idle_retractions: u64,
    /// Events that a pattern does not see because its key field differs.
    pub unseen: u64,
    /// The most start events of partial matches that keys with new events had together.
    pub peak_partial_matches: usize,
    /// Keys that a limit has degraded.
    pub degraded_keys: u64,
    /// Records of new keys that `max_keys` refused.
    pub refused_keys: u64,
    /// Partial matches that `max_partial_matches_per_key` refused.
    pub refused_partial_matches: u64,
    /// Stored events that went early because of `max_events_per_key`.
    pub dropped_events: u64,
    /// Stored events that went early because of `max_bytes_per_key`.
    pub dropped_for_bytes: u64,
    /// New arcs that `max_program_arcs` refused.
    pub refused_arcs: u64,
    /// Replayed records that their keys hold.
    pub skipped: u64,
}
