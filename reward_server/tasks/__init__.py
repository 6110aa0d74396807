"""Task cards, prepared data, twins and the leak lint; one folder per task."""
