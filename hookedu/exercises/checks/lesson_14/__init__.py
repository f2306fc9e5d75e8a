"""What decides about the exercises of lesson 14, Inside a language model."""
