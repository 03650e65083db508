"""Airflow hooks: a connection turned into what the rest of the package works with."""
