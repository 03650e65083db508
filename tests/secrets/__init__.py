"""What must not be found anywhere after the tests ran, and where it is looked for."""
