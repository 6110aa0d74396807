"""Places markers with a frozen language model."""
