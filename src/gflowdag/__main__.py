"""`python -m gflowdag`."""

from gflowdag.cli.app import main

if __name__ == "__main__":
    main()
