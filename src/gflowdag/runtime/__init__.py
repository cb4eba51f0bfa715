"""What every room may use: files, progress, interrupts, devices, processes, precision, messages."""
