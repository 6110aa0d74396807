"""Evaluation as in the paper: many samples of a model, from scratch and improving on each."""
