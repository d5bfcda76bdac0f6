"""*Is it all right?* Everything that an operator asks first, on one screen."""
