"""Prompts for training and evaluation: from scratch, and to improve on a stored solution."""
