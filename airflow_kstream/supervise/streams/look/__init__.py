"""What is seen of a stream, without changing anything."""
