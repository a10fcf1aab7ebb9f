"""What it is worth: pure functions over arrays and records, no I/O, no model."""
