"""From a file to a subject; from a subject and a budget to an answer that fits as it really runs."""
