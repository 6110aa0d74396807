"""Which words of a tweet carry its sentiment."""
