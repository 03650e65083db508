"""The values that everything else works with: frozen dataclasses and enums. No IO, no Airflow, no clock."""
