"""From a ranking to the list that someone acts on: how long it may be, and how wrong it may be."""
