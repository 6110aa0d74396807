"""Who receives a pizza."""
