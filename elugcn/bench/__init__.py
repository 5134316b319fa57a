"""Speed, memory and scaling, measured beside the peers in the same run."""
