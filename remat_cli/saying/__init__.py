"""What users read: tables, charts, pictures, the page of `show --html`, and JSON."""
