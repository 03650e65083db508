"""What was seen of each stream, in Airflow's asset state store: written by triggers and tasks, read by pages.

The store is a cache. The scheduler deletes the rows of an asset that no DAG names any longer, so everything is written
again, and what can't be written is not an error of a watch.
"""
