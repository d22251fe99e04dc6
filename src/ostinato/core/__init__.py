"""Pure rules: values in, values out. Nothing here does I/O, reads a clock, draws a random number or logs."""
