"""What the shipped DAG files of `dags/` are made with."""
