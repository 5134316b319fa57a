"""Figures: drawn without a screen, all in one style."""
