"""What the author of a task imports."""
