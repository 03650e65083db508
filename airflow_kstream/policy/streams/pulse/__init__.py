"""Whether a stream makes progress."""
