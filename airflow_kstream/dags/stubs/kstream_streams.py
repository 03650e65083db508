from airflow_kstream.dags.streams import declared_dags

globals().update(declared_dags())
