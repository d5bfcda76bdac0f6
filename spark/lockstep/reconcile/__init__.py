"""Hold the live layer against the batch layer, window by window."""
