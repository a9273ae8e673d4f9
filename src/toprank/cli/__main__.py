"""`python -m toprank.cli` is the command line `toprank`."""

from toprank.cli import main

if __name__ == "__main__":
    main()
