from airflow_kstream.dags.tickets import declared_dags

globals().update(declared_dags())
