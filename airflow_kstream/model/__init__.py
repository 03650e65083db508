"""What things are: frozen values and enums. No IO, no Airflow, no clock."""
