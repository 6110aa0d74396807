"""Adapters for trainers, one module or package per trainer."""
