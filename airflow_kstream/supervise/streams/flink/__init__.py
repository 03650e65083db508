"""Flink: its client, what its JobManager tells, and how its jobs are stopped."""
