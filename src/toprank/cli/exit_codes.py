"""How a command ends: its exit code for shells and scripts. 0 means that all is done."""

#: A limit of `toprank monitor` is passed.
LIMIT_PASSED = 1
#: The input or the options cannot be used.
UNUSABLE = 2
#: A fault of toprank itself.
FAULT = 70
#: The user interrupted the program; and the message then.
INTERRUPTED, INTERRUPTED_NOTE = 130, "interrupted; no file is half-written."
#: The reader of a pipe left.
PIPE_CLOSED = 141
