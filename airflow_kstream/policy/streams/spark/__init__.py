"""Spark: its client, its command line, and the words of its logs and threads."""
