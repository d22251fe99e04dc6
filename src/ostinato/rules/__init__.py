"""Rules as data: which events they select, and what is to happen then. Pure, like the core."""
