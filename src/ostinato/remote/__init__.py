"""Workers without a database: the protocol that they speak with a server, and the one in Python."""
