"""What makes gates and rules happen: definitions in, jobs of the engine out."""
