"""One object for each kind of session: what a model holds there, and how a plan is made to fit."""
