"""Playbooks as data: which agents there are, who needs whom, and what their answers come to. Pure, like the core."""
