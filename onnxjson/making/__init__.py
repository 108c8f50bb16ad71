"""Models made from nothing: of one operator, from what its schema says, and of ready components."""
