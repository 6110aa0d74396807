"""Runs each program in a Docker container."""
