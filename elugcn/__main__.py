"""``python -m elugcn`` is ``elugcn``."""

from elugcn.cli import main

if __name__ == "__main__":
    main()
