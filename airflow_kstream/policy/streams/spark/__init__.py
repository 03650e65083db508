"""Spark's own words: the one engine so far."""
