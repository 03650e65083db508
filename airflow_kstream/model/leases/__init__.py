"""Files that are open for write, and what is asked of their leases."""
