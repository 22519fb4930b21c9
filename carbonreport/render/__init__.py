"""Numbers to words (compose), words to files (formats, through templates)."""
