"""Keeps streaming jobs alive on kerberized Hadoop, from Apache Airflow."""
