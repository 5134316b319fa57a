"""Networks: each reads like the equations of its paper."""
