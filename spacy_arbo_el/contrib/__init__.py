"""Official add-ons, built on the public names of the core, which imports nothing of them."""
