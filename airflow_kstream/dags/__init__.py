"""The shipped DAGs: one module for each kind of declaration; `stubs` has the files that Airflow reads."""
