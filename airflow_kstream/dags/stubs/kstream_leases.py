from airflow_kstream.dags.leases import declared_dags

globals().update(declared_dags())
