"""Lines of logs, and what they are taken for."""
