"""One module for each command; its click command is named `command`."""
