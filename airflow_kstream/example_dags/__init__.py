"""One DAG file for each use of this package, to copy from; the connection in them is `example`."""
