"""The scanner of logs: finds the lines of many patterns, without a row or a step of Python for any other line.

Blocks of bytes go through an engine that knows all patterns at once: Hyperscan (Vectorscan, from PyPI), or where that
is missing Python's own `re` behind a search for each pattern's plain words. Only matches become objects, and of a
pattern that matches a million times only the first and the last are kept, with the line that begins their record.
Memory depends on the patterns, not on the log.

`jobs/triage.py` runs it on the cluster, where this folder is shipped alone: it imports nothing of the package.
"""
