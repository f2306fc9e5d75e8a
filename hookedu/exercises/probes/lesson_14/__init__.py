"""What is observed of answers to the exercises of lesson 14, Inside a language model."""
