"""The page of a run: one HTML file that needs no network and no server."""
