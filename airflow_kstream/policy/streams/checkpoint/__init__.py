"""Whose a checkpoint is, and where it was left."""
