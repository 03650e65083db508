"""When a generation's credentials end, and what renews them before."""
