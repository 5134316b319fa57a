"""The adaptive default: a mean of members that validation weighs."""
