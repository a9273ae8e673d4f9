"""Tables of the command line: read from files of every kind, and ranked lists written to them."""
