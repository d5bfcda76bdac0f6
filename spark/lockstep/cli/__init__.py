"""The command line: one module for each command, under the command's name."""
