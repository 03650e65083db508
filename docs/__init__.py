"""The site, and the programs that make it."""
