"""From bronze to silver: parse, set aside what is bad, remove duplicates, apply changes."""
