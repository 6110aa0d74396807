"""Which disease an apple leaf has."""
