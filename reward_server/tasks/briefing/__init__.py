"""What a language model is told about a task: from public files alone, within a budget."""
