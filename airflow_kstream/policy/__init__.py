"""What should be done: pure functions from model values to verdicts and plans. `now` is always an argument."""
