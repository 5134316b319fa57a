"""Every method behind one small protocol: ``fit(problem, config, seed)``."""
