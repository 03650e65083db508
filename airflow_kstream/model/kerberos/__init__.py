"""Principals, keytabs, tickets and delegation tokens."""
