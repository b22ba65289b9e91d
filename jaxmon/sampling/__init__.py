"""From a prompt to chains and answers."""
