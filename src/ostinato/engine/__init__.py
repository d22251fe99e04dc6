"""The loops: committing, working, heartbeats, timers, taking over from the dead."""
