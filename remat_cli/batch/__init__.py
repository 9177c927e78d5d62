"""`remat batch`: many models, budgets and methods as jobs that fail alone, and are not done twice."""
