"""Flink: its configuration for one generation, its checkpoints, and the words of its logs."""
