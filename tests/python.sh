#!/bin/sh
# python.sh DIR - runs python/tests on the package lowbit in DIR, with the first
# Python from 3.11 on that has numpy and pytest; skipped if there is none.
# ctest: skip-asan skip-tsan
dir=$(realpath "${1:?usage: tests/python.sh DIR}")
cd "$(dirname "$0")/.." || exit 1

chosen=
for python in ${PYTHON:-} python3 /usr/bin/python3; do
    "$python" -c 'import sys, numpy, pytest
assert sys.version_info >= (3, 11)' 2>/dev/null || continue
    chosen=$python
    break
done
if [ -z "$chosen" ]; then
    echo "python: skipped: no Python from 3.11 on has numpy and pytest" \
        "(Debian: python3-numpy python3-pytest)"
    exit 77
fi
export PYTHONPATH="$dir" PYTHONDONTWRITEBYTECODE=1
exec "$chosen" -m pytest -p no:cacheprovider
