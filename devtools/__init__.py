"""What tests and benchmarks share; never part of the wheel."""
