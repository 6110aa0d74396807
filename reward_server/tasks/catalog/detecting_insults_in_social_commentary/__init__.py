"""Whether a comment insults someone in the conversation."""
