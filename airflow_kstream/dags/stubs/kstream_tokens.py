from airflow_kstream.dags.tokens import declared_dags

globals().update(declared_dags())
