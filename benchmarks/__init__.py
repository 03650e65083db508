"""Benchmarks of this package against manual tools, on a minicluster."""
