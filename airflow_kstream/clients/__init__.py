"""Clients for everything outside: the only network and subprocess code. No decisions, no Airflow."""
