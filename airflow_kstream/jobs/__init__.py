"""The code that runs on the cluster: PySpark, independent of Airflow and of the rest of this package."""
