"""A module next to the script."""

import os


def mean_sizes(folder):
    sizes = {}
    for root, _, names in os.walk(folder):
        for name in names:
            sizes.setdefault(name.split("-")[0], []).append(os.path.getsize(os.path.join(root, name)))
    return {name: sum(found) / len(found) for name, found in sorted(sizes.items())}
