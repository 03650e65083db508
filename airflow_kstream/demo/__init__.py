"""The demonstration: a real Airflow and a real cluster on loopback, under a small process supervisor."""
