"""Keeps streaming jobs alive on kerberized Hadoop, from Apache Airflow."""

__version__ = "0.1.0"
