"""What each kind of session decides, one object each: what a model holds there, and how a plan is made to fit."""
