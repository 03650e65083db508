"""What this package promises in figures, measured on a minicluster against what is done by hand today."""
