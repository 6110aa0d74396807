"""Which kind of forest covers a patch of land."""
