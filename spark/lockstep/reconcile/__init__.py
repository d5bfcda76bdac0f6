"""Compare the live layer with the batch layer, window by window."""
