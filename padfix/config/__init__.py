"""What a user can set: in a file for a project, and for one call."""
