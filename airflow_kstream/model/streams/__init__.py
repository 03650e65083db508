"""What a stream is: its declaration, its generations, what is seen of it and planned for it."""
