"""How stable and transparent a material is."""
