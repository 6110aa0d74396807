"""The lab: reproduces three effects of the method on one machine with a small policy."""
