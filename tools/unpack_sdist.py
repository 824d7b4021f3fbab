"""unpack_sdist.py DIRECTORY NAME==VERSION... - unpacks source archives of packages.

pip downloads an archive only if it can build it, which some packages refuse without
CUDA. The archives come from pip's index (PIP_INDEX_URL, default: PyPI), and their
SHA-256 has to be the one that the index lists.
"""
import hashlib
import io
import os
import re
import sys
import tarfile
import urllib.parse
import urllib.request

INDEX = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")


def get(url):
    with urllib.request.urlopen(url, timeout=60) as r:
        return r.read()


def unpack(where, name, version):
    page = f"{INDEX}/{name}/"
    archive = re.escape(f"{name}-{version}.tar.gz")
    found = re.search(rf'href="([^"#]*{archive})#sha256=([0-9a-f]{{64}})',
                      get(page).decode())
    if not found:
        sys.exit(f"unpack_sdist: {page} lists no {name}-{version}.tar.gz")
    data = get(urllib.parse.urljoin(page, found[1]))
    if hashlib.sha256(data).hexdigest() != found[2]:
        sys.exit(f"unpack_sdist: {found[1]} has another SHA-256 than {found[2]}")
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        t.extractall(where, filter="data")


for package in sys.argv[2:]:
    unpack(sys.argv[1], *package.split("=="))
