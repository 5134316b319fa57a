"""What huge pages do for a product with Â of a million nodes.

    python benchmarks/huge_pages.py

Times one product of ten million random entries with 64 columns, as training computes
it, in a process with huge pages and in one without, and prints both medians.
"""

import os
import subprocess
import sys

SCRIPT = """
import time
from statistics import median
import torch
import elugcn
from elugcn.core.sparse import multiply

torch.set_num_threads(1)
torch.manual_seed(0)
n, degree = 1_000_000, 10
col = torch.randint(0, n, (n * degree,), dtype=torch.int32)
crow = torch.arange(0, n * degree + 1, degree, dtype=torch.int32)
value, z = torch.rand(n * degree), torch.rand(n, 64)
times = []
for _ in range(6):
    start = time.process_time()
    multiply(crow, col, value, n, z)
    times.append(time.process_time() - start)
print(1000 * median(times[1:]))
"""


def milliseconds(huge: bool) -> float:
    """Median processor time of a product, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ
        | {"THP_MEM_ALLOC_ENABLE": str(int(huge)), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


if __name__ == "__main__":
    small, huge = milliseconds(False), milliseconds(True)
    print(f"small pages {small:.0f} ms, huge pages {huge:.0f} ms, {huge / small:.2f}")
