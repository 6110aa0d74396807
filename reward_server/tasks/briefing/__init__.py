"""The briefing of a task for a language model, from public files alone, within a budget."""
