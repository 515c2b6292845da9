"""``python -m transduce``: the command line."""

from transduce.cli.app import main

if __name__ == "__main__":
    main()
