"""Pictures, and one self-contained page, of a solved problem."""
