"""``python -m lockstep.cli``."""

from lockstep.cli.main import main

if __name__ == "__main__":
    main()
