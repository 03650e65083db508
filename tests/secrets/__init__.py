"""Secrets that must not be found anywhere after the tests ran, and the places that are searched."""
