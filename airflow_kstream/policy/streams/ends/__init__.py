"""Whether a generation is dead, how it died, and when the next one follows."""
