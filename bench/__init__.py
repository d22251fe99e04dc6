"""How fast Ostinato is, beside the least that an engine must do to write the same rows. Run `python -m bench`."""
