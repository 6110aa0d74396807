"""Who wrote a sentence."""
