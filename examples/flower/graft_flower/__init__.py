"""A Flower app over Graft."""
