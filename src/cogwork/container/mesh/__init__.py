"""This container among others: links to neighbours, and what goes over them."""
