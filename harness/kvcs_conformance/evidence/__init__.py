"""What a run leaves behind, and all that a judge may look at."""
