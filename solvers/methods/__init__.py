"""Methods, and nothing but methods: each answers a Problem with an order of computes."""
