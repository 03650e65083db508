"""Planted defects: each breaks one promise of the protocol, and names the tests of CI that fail under it."""
