"""Whether a machine fails within a week (replace by your own task)."""
