"""Where state lives: the only place with SQL and transactions."""
