"""Prometheus and the StatsD exporter as an administrator runs them, and an incident that they see."""
