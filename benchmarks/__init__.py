"""What this package promises in figures, measured on a stand against what is done by hand today."""
