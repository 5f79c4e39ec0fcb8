"""What users of Arcfleet import and run."""
