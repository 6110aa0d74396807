"""Reward schemes: from an execution and its grade to the number that a trainer learns from."""
