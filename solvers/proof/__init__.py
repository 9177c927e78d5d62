"""What a certificate says, and its check: exact integers and the standard library, no code of any solver."""
