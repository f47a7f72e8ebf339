#!/usr/bin/env python3
"""Writes a software bill of materials (SPDX 2.3, JSON) of Debian packages: what they contain, and the
installed packages whose libraries their programs load.

    sbom.py -o meshwright.spdx.json meshwright_0.1.0_amd64.deb ...

The same packages on the same system give the same file, but for the time, which SOURCE_DATE_EPOCH sets.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(deb):
    """Real paths of the shared libraries that the programs of a package load."""
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        output_of("dpkg-deb", "-x", deb, folder)
        for path in pathlib.Path(folder).rglob("*"):
            if not path.is_file() or path.is_symlink() or path.read_bytes()[:4] != b"\x7fELF":
                continue
            listed = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
            found |= {os.path.realpath(name) for name in re.findall(r"=> (/\S+)", listed)
                      if not name.startswith(folder)}
    return found


def package_of(library):
    """The installed package with this library; None for one that came without a package."""
    # Where /lib is a link to /usr/lib, some packages name the one and some the other.
    for name in (library, library.removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return found.stdout.rsplit(": ", 1)[0].split(",")[0]
    return None


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def entry(name, version, **more):
    return {"SPDXID": spdx_id(name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, **more}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("debs", nargs="+")
    arguments = parser.parse_args()
    packages, relations = {}, []
    for deb in sorted(arguments.debs):
        name, version = output_of("dpkg-deb", "-W", "--showformat=${Package} ${Version}", deb).split()
        digest = hashlib.sha256(pathlib.Path(deb).read_bytes()).hexdigest()
        packages[name] = entry(name, version, packageFileName=os.path.basename(deb),
                               checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", spdx_id(name)))
        for library in sorted({package_of(path) for path in libraries_of(deb)} - {None}):
            version = output_of("dpkg-query", "-W", "-f=${Version}", library)
            packages.setdefault(library, entry(library, version))
            relations.append((spdx_id(name), "DYNAMIC_LINK", spdx_id(library)))
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp()))
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    contents = json.dumps(list(packages.values()), sort_keys=True)
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "meshwright",
        "documentNamespace": "https://spdx.org/spdxdocs/meshwright-"
                             + hashlib.sha256(contents.encode()).hexdigest(),
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: meshwright-sbom"]},
        "packages": sorted(packages.values(), key=lambda package: package["name"]),
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations]}
    with open(arguments.output, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
