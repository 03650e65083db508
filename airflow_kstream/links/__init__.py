"""Buttons on the task's page that lead to the cluster's own pages."""
