"""Methods of users without an optimizer, and the methods that the papers compare with."""
