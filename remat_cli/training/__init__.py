"""A training step with all that it carries from one run to the next: parameters, state, running statistics."""
