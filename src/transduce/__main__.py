"""``python -m transduce``: the command line."""

from transduce.app.cli.app import main

if __name__ == "__main__":
    main()
