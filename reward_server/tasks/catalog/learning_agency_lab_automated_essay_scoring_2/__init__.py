"""How good a student's essay is."""
