"""`python -m gflowdag`."""

from gflowdag.cli import main

if __name__ == "__main__":
    main()
