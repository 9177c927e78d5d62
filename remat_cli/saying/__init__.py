"""What the user is told: units, tables, pictures."""
