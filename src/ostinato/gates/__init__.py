"""Gates as data: who is expected, what counts, what comes of it, and how an instance stands. Pure, like the core."""
