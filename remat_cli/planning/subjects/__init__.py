"""What is planned: a problem with its names, and the graph that a session kind really runs."""
