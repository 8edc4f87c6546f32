//! Programs that fail in one chosen way each.
