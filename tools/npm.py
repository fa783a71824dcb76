"""Fetches files of packages on npm, by version and digest."""

import hashlib
import subprocess
import tarfile
import tempfile


def fetched(package: str, version: str, sha256s: dict[str, str | None]) -> list[bytes]:
    """Return the bytes of files of a package.

    `sha256s` has the digest of each file by its path; None for a file that is not pinned.
    npm verifies the package against the registry's digest. Raises ValueError if a file is missing
    or has another digest.
    """
    with tempfile.TemporaryDirectory(prefix="npm-") as folder:
        command = ["npm", "pack", "--silent", f"{package}@{version}"]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        contents = []
        with tarfile.open(f"{folder}/{process.stdout.strip()}") as archive:
            for path, sha256 in sha256s.items():
                stream = archive.extractfile(f"package/{path}")
                contents.append(b"" if stream is None else stream.read())
                digest = hashlib.sha256(contents[-1]).hexdigest()
                if sha256 not in {None, digest}:
                    raise ValueError(f"{package}@{version}: sha256 of {path} is {digest}")
    return contents
