"""What trains the towers: one file a method."""
