"""From bronze to silver: parse, quarantine what fails validation, remove duplicates, apply changes."""
