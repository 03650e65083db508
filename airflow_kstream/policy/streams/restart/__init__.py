"""What is done next with a stream, and what stands in its way."""
