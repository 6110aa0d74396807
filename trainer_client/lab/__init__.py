"""The lab: the method's three effects on one machine, with whole programs and a small policy."""
