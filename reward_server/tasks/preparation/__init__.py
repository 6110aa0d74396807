"""Prepares the data of tasks: raw files in, public and private folders out."""
