"""Which species a leaf belongs to."""
