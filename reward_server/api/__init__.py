"""HTTP in and out; nothing else in the package knows HTTP."""
