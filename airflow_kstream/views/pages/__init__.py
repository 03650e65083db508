"""What web pages show, as plain data: masked, bounded, and in an order that puts the most urgent first."""
