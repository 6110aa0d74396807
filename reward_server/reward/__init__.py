"""From what a program did to the number a trainer learns from."""
