"""How close two phrases of patents are in meaning."""
