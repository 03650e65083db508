"""What runs on the cluster: PySpark, free of Airflow and of the rest of this package."""
