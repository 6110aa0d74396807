"""Extracts the program from a model's completion."""
